"""probe_pci: GPUs, NVSwitches, network cards, NVMe disks and bridges on the PCI bus; ACS, IOMMU and links. From sysfs, without a program."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional, Tuple

from nodectl.agent import pci_config, recorded
from nodectl.agent.contract import Args
from nodectl.agent.facts import hardware
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="PCI devices that a training job depends on, their links and settings; ACS of the bridges; mode of the IOMMU.",
    params={"timeout": Param("float", "seconds for reading the bus; a device that hangs it is left behind", default=10.0), "root": recorded.PARAM},
    returns={
        "devices": "per device: address, kind (gpu, nvswitch, hca, nvme), model (vendor:device), driver, numa_node (null: not said), alive, "
        "whole (false: only root reads the rest), width, width_max, speed, speed_max (GT/s; what both ends of the link could do), max_read_request (B), "
        "relaxed_ordering, iommu (off, passthrough, translated)",
        "bridges": "per PCI bridge: address, alive, whole, acs (bits that are on; null: no ACS, or only root reads it), redirect (those that do harm)",
        "virtualization": "kind and role as Ansible names them", "container": "kind, \"\" outside of one: its bus is the machine's",
        "numa_nodes": "how many there are", "simulated": "whether a recorded tree was read",
    },
    example="- probe_pci: {}\n",
)
_BUS = "sys/bus/pci/devices"
_NVIDIA, _MELLANOX = "0x10de", "0x15b3"
# PCI classes (base and sub): 3D and VGA controllers, other bridges (NVSwitch), InfiniBand and Ethernet controllers, NVM Express, PCI-to-PCI bridge.
_GPU, _SWITCH, _INFINIBAND, _ETHERNET, _NVME, _BRIDGE = ("0x0302", "0x0300"), "0x0680", "0x0207", "0x0200", "0x0108", "0x0604"
_MOST = 4096


def act(system: System, args: Args, check: bool) -> Outcome:
    tree = recorded.Tree(system, args["root"])
    devices, bridges = tree.within("the PCI bus", lambda: _bus(tree), args["timeout"])
    virtual = hardware.virtualization(tree.root)
    kinds = {"kind": virtual["ansible_virtualization_type"], "role": virtual["ansible_virtualization_role"]}
    nodes = len([name for name in tree.names("sys/devices/system/node") if re.match(r"^node\d+$", name)])
    return Outcome(values={
        "devices": devices, "bridges": bridges, "virtualization": kinds, "container": hardware.container(tree.root), "numa_nodes": nodes,
        "simulated": tree.simulated,
    })


def _bus(tree: recorded.Tree) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
    addresses = tree.names(_BUS)
    devices = [found for found in (_device(tree, address) for address in addresses) if found is not None]
    return devices, [_bridge(tree, address) for address in addresses if tree.text(f"{_BUS}/{address}/class").startswith(_BRIDGE)]


def _kind(tree: recorded.Tree, place: str) -> str:
    vendor, device_class = tree.text(f"{place}/vendor"), tree.text(f"{place}/class")[:6]
    if vendor == _NVIDIA and device_class in _GPU:
        return "gpu"
    if vendor == _NVIDIA and device_class == _SWITCH:
        return "nvswitch"
    # An Ethernet card counts where it has an RDMA device, or is of the maker whose cards all can have one.
    if device_class == _INFINIBAND or (device_class == _ETHERNET and (vendor == _MELLANOX or tree.exists(f"{place}/infiniband"))):
        return "hca"
    return "nvme" if device_class == _NVME else ""


def _device(tree: recorded.Tree, address: str) -> Optional[Dict[str, Any]]:
    place = f"{_BUS}/{address}"
    kind = _kind(tree, place)
    if not kind:
        return None
    config = _config(tree, place)
    node = tree.number(f"{place}/numa_node")
    return {
        "address": address, "kind": kind, "model": f"{tree.text(f'{place}/vendor')}:{tree.text(f'{place}/device')}",
        "driver": tree.linked(f"{place}/driver"), "numa_node": node if node is not None and node >= 0 else None,
        "alive": config.alive, "whole": config.whole, "max_read_request": config.max_read_request, "relaxed_ordering": config.relaxed_ordering,
        "iommu": _iommu(tree, place), **_link(tree, place),
    }


def _config(tree: recorded.Tree, place: str) -> pci_config.Config:
    try:
        with open(tree.path(f"{place}/config"), "rb") as file:
            return pci_config.decode(file.read(_MOST))
    except OSError:
        return pci_config.Config(False, False, False)


def _link(tree: recorded.Tree, place: str) -> Dict[str, Any]:
    """What the link does, and what both of its ends could do; None where there is no link to speak of (a virtual function, a guest's device)."""
    above = os.path.dirname(os.path.realpath(tree.path(place)))
    parent = os.path.relpath(above, tree.root) if os.path.exists(os.path.join(above, "max_link_width")) else ""
    result: Dict[str, Any] = {}
    for key, what, read in (("width", "link_width", _width), ("speed", "link_speed", _speed)):
        most = [read(tree.text(f"{end}/max_{what}")) for end in (place, parent) if end]
        known = [figure for figure in most if figure]
        result[key] = read(tree.text(f"{place}/current_{what}")) if known else None
        result[f"{key}_max"] = min(known) if known else None
    return result


def _width(text: str) -> Optional[float]:
    """ "16"; 255 and 0 are the kernel's way to say that it does not know."""
    return float(text) if text.isdigit() and 0 < int(text) < 255 else None


def _speed(text: str) -> Optional[float]:
    """ "32.0 GT/s PCIe" in GT/s."""
    found = re.match(r"^([\d.]+) GT/s", text)
    return float(found.group(1)) if found else None


def _iommu(tree: recorded.Tree, place: str) -> str:
    group = tree.linked(f"{place}/iommu_group")
    if not group:
        return "off"
    return "passthrough" if tree.text(f"sys/kernel/iommu_groups/{group}/type") == "identity" else "translated"


def _bridge(tree: recorded.Tree, address: str) -> Dict[str, Any]:
    config = _config(tree, f"{_BUS}/{address}")
    acs: Optional[List[str]] = None if config.acs is None else list(config.acs)
    return {"address": address, "alive": config.alive, "whole": config.whole, "acs": acs, "redirect": pci_config.redirecting(config)}
