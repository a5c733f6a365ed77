"""The node's fabric: InfiniBand, RoCE, EFA or plain TCP; devices, interfaces and GPUs, and what was not found."""

from __future__ import annotations

import ipaddress
import os
from typing import Any, Dict, List, Sequence

from nodectl.agent.contract import Args, Failed
from nodectl.agent.facts import gpu, netlink, network, rdma
from nodectl.agent.facts.platform import text
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# PCI class of an InfiniBand controller, and vendor and devices of Amazon's adapter: hardware that has no driver yet.
IB_CLASS = "0x0207"
AMAZON, EFA_DEVICES = "0x1d0f", ("0xefa0", "0xefa1", "0xefa2", "0xefa3")

SPEC = Spec(
    summary="Find the fabric of the node: ib, roce, efa or tcp; its devices, interfaces and GPUs",
    params={
        "subnets": Param("list", default=[], help="networks of the fabric (CIDR); a RoCE port with no address in them is left out"),
        "exclude": Param("list", default=[], help="RDMA devices that belong to storage or management"),
        "sysfs_root": Param("path", default="/", help="where sys/ and proc/ are read: / or a recorded tree"),
    },
    returns={"ansible_facts": "nodectl_fabric: kind, hcas, interfaces, gpus, gpus_on_bus, nvswitches, gpudirect, not_found"},
    example="- fabric_facts: {subnets: [10.224.0.0/12]}\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    for subnet in args["subnets"]:
        try:
            ipaddress.ip_network(subnet, strict=False)
        except ValueError:
            raise Failed(f"subnets: {subnet} is not a network such as 10.224.0.0/12") from None
    root = args["sysfs_root"]
    fabric = collect(root, netlink.addresses(), args["subnets"], args["exclude"])
    fabric["gpus"], missing = gpu.gpus(system, root)
    fabric["gpus_on_bus"], fabric["nvswitches"] = gpu.on_bus(root)
    for entry in fabric["hcas"]:
        entry["near_gpu"] = gpu.nearest(root, entry["pci"], fabric["gpus_on_bus"])
    fabric["gpudirect"] = gpu.direct(root)
    fabric["not_found"] += missing + _no_direct(fabric)
    return Outcome(facts={"nodectl_fabric": fabric}, values={"kind": fabric["kind"]})


def collect(root: str, own: Sequence[netlink.Address], subnets: Sequence[str] = (), exclude: Sequence[str] = ()) -> Dict[str, Any]:
    """Everything but the GPUs; ``own`` is the kernel's table of addresses."""
    found = rdma.judged(rdma.devices(root), own, subnets, exclude)
    dormant = without_driver(root)
    return {"kind": kind(found, dormant), "hcas": found, "interfaces": interfaces(root, own), "not_found": _sentences(found, dormant)}


def kind(found: Sequence[Dict[str, Any]], dormant: Dict[str, List[str]]) -> str:
    """The fastest fabric that works; where none works, the one whose hardware is there, so that a role can set it up."""
    for group in ([entry for entry in found if entry["usable"]], found):
        layers = {rdma.EFA_DRIVER if entry["driver"] == rdma.EFA_DRIVER else entry["link_layer"] for entry in group}
        for layer, name in ((rdma.INFINIBAND, "ib"), (rdma.EFA_DRIVER, "efa"), (rdma.ETHERNET, "roce")):
            if layer in layers:
                return name
    return "ib" if dormant["ib"] else "efa" if dormant["efa"] else "tcp"


def without_driver(root: str) -> Dict[str, List[str]]:
    """PCI addresses of fabric hardware that no driver has taken."""
    base = os.path.join(root, "sys/bus/pci/devices")
    result: Dict[str, List[str]] = {"ib": [], "efa": []}
    for address in rdma.entries(base):
        folder = os.path.join(base, address)
        if os.path.exists(os.path.join(folder, "driver")):
            continue
        if text(os.path.join(folder, "class")).startswith(IB_CLASS):
            result["ib"].append(address)
        if text(os.path.join(folder, "vendor")) == AMAZON and text(os.path.join(folder, "device")) in EFA_DEVICES:
            result["efa"].append(address)
    return result


def _sentences(found: Sequence[Dict[str, Any]], dormant: Dict[str, List[str]]) -> List[str]:
    sentences = [f"{entry['name']} is left out: {entry['reason']}" for entry in found if entry["reason"]]
    sentences += [f"InfiniBand controller at {address} has no driver: install rdma-core and load mlx5_ib" for address in dormant["ib"]]
    sentences += [f"EFA adapter at {address} has no driver: install the efa kernel module" for address in dormant["efa"]]
    if not found and not dormant["ib"] and not dormant["efa"]:
        sentences.append("no RDMA device: /sys/class/infiniband is empty and no InfiniBand or EFA adapter is on the PCI bus; traffic goes over TCP")
    elif not any(entry["usable"] for entry in found):
        sentences.append("no RDMA device is usable")
    return sentences


def _no_direct(fabric: Dict[str, Any]) -> List[str]:
    if not fabric["gpus"] or fabric["kind"] == "tcp" or any(fabric["gpudirect"].values()):
        return []
    return ["neither nvidia_peermem nor DMA-BUF is there: network cards cannot read GPU memory directly"]


def interfaces(root: str, own: Sequence[netlink.Address]) -> List[Dict[str, Any]]:
    """Every interface but lo: speed in Mb/s (None where the driver does not say), mtu, driver, state, addresses."""
    base = os.path.join(root, "sys/class/net")
    result = []
    for name in rdma.entries(base):
        folder = os.path.join(base, name)
        if name == "lo" or not os.path.isdir(folder):
            continue
        speed = text(os.path.join(folder, "speed"))
        result.append({
            "name": name, "type": network.kind(folder), "state": text(os.path.join(folder, "operstate")), "mac": text(os.path.join(folder, "address")),
            "mtu": int(text(os.path.join(folder, "mtu")) or 0), "speed_mbps": int(speed) if speed.isdigit() and speed != "0" else None,
            "driver": rdma.linked(folder, "device/driver"), "pci": rdma.linked(folder, "device"), "numa_node": text(os.path.join(folder, "device/numa_node")),
            "addresses": [f"{entry.address}/{entry.prefix}" for entry in own if entry.interface == name],
        })
    return result
