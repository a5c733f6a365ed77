"""probe_hca: every RDMA port with its counters, its GIDs against the addresses of its interface, and the interface's MTU."""

from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, Optional, Sequence

from nodectl.agent import recorded
from nodectl.agent.contract import Args
from nodectl.agent.facts import netlink, rdma
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="RDMA ports: state, rate, firmware, error counters, GID table, MTU and what the link went through since boot.",
    params={
        "subnets": Param("list", default=[], help="networks of the fabric (CIDR); a RoCE port with no address in them is left out"),
        "exclude": Param("list", default=[], help="RDMA devices that belong to storage or management"),
        "timeout": Param("float", "seconds for reading ports; a card whose firmware hangs is left behind", default=10.0),
        "root": recorded.PARAM,
    },
    returns={
        "ports": "per port: device, port, netdev, usable, reason, state, phys_state, rate (Gb/s), link_layer, fw_ver, board_id, lid, pci, numa_node, mtu, "
        "counters and hw_counters by name, gids (index, gid, type, address), addresses, "
        "matching (indices of RoCE v2 GIDs that are an address of the interface)",
        "drivers": "kernel drivers of the devices", "interfaces": "error counters of each network interface but lo, by name",
        "simulated": "whether a recorded tree was read",
    },
    example="- probe_hca: {}\n",
)
_CLASS = "sys/class/infiniband"
ROCE_2 = "RoCE v2"
_ERRORS = ("rx_errors", "rx_crc_errors", "tx_errors", "tx_carrier_errors")


def act(system: System, args: Args, check: bool) -> Outcome:
    tree = recorded.Tree(system, args["root"])
    return Outcome(values=tree.within("RDMA ports", lambda: _all(tree, args), args["timeout"]))


def _all(tree: recorded.Tree, args: Args) -> Dict[str, Any]:
    own = _recorded_addresses(tree) if tree.simulated else netlink.addresses()
    devices = rdma.judged(rdma.devices(tree.root), own, args["subnets"], args["exclude"])
    ports = [_port(tree, device, port, own) for device in devices for port in device["ports"]]
    drivers = sorted({device["driver"] for device in devices if device["driver"]})
    return {"ports": ports, "drivers": drivers, "interfaces": _interfaces(tree), "simulated": tree.simulated}


def _recorded_addresses(tree: recorded.Tree) -> List[netlink.Address]:
    """Lines "interface address/prefix": what the kernel's own table is on a real machine."""
    rows = [line.split() for line in tree.text("addresses").splitlines() if line.strip()]
    places = [(name, ipaddress.ip_interface(place)) for name, place in rows]
    return [netlink.Address(name, place.version, str(place.ip), place.network.prefixlen) for name, place in places]


def _port(tree: recorded.Tree, device: Dict[str, Any], port: Dict[str, Any], own: Sequence[netlink.Address]) -> Dict[str, Any]:
    place = f"{_CLASS}/{device['name']}/ports/{port['port']}"
    netdev = next((gid["ndev"] for gid in port["gids"] if gid["ndev"]), "") or next(iter(device["netdevs"]), "")
    addresses = [str(entry.address) for entry in own if entry.interface == netdev]
    gids = [dict(gid, address=_address(gid["gid"])) for gid in port["gids"]]
    return {
        "device": device["name"], "port": port["port"], "netdev": netdev, "usable": device["usable"], "reason": device["reason"],
        "state": port["state"], "phys_state": port["phys_state"], "rate": port["rate_gbps"], "link_layer": port["link_layer"], "lid": port["lid"],
        "fw_ver": device["fw_ver"], "board_id": device["board_id"], "driver": device["driver"], "pci": device["pci"], "numa_node": device["numa_node"],
        "mtu": tree.number(f"sys/class/net/{netdev}/mtu") if netdev else None, "addresses": addresses, "gids": gids,
        "matching": [gid["index"] for gid in gids if gid["type"] == ROCE_2 and gid["address"] in addresses],
        "counters": _counters(tree, f"{place}/counters"), "hw_counters": _counters(tree, f"{place}/hw_counters"),
    }


def _counters(tree: recorded.Tree, folder: str) -> Dict[str, int]:
    """Those that can be read; a device without them (rxe, efa) has none."""
    found = {name: tree.number(f"{folder}/{name}") for name in tree.names(folder)}
    return {name: figure for name, figure in found.items() if figure is not None}


def _interfaces(tree: recorded.Tree) -> Dict[str, Dict[str, int]]:
    """Frames that came or went damaged. Drops are left out: a full queue is no broken link."""
    base = "sys/class/net"
    names = [name for name in tree.names(base) if name != "lo" and tree.exists(f"{base}/{name}/statistics")]
    found = {name: {counter: tree.number(f"{base}/{name}/statistics/{counter}") for counter in _ERRORS} for name in names}
    return {name: {counter: figure for counter, figure in mine.items() if figure is not None} for name, mine in found.items()}


def _address(gid: str) -> Optional[str]:
    """The address that a RoCE GID stands for: IPv4 in the mapped form, otherwise IPv6."""
    try:
        found = ipaddress.IPv6Address(gid)
    except ValueError:
        return None
    return str(found.ipv4_mapped or found)
