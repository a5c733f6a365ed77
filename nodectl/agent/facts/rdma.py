"""RDMA devices as sysfs shows them, and which of them a training job may use."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from nodectl.agent.facts.netlink import Address
from nodectl.agent.facts.platform import text

ZERO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
INFINIBAND, ETHERNET = "InfiniBand", "Ethernet"
EFA_DRIVER = "efa"


def natural(name: str) -> List[Tuple[int, str]]:
    """Sort key with mlx5_2 before mlx5_10: every node lists its devices by the same rule."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]


def entries(folder: str) -> List[str]:
    """Names in a folder in natural order; none where there is no folder."""
    return sorted(os.listdir(folder), key=natural) if os.path.isdir(folder) else []


def devices(root: str) -> List[Dict[str, Any]]:
    """Every device of /sys/class/infiniband with its ports."""
    base = os.path.join(root, "sys/class/infiniband")
    return [device(os.path.join(base, name), name) for name in entries(base)]


def device(folder: str, name: str) -> Dict[str, Any]:
    """One device. A virtual one (rxe) has neither board, nor PCI place, nor driver: those are "" then."""
    ports = [port(os.path.join(folder, "ports", number), int(number)) for number in entries(os.path.join(folder, "ports")) if number.isdigit()]
    parent = text(os.path.join(folder, "parent"))
    named = {gid["ndev"] for entry in ports for gid in entry["gids"] if gid["ndev"]}
    netdevs = sorted(named | set(entries(os.path.join(folder, "device/net"))) | ({parent} if parent else set()), key=natural)
    return {
        "name": name, "fw_ver": text(os.path.join(folder, "fw_ver")), "board_id": text(os.path.join(folder, "board_id")),
        "hca_type": text(os.path.join(folder, "hca_type")),
        "node_guid": text(os.path.join(folder, "node_guid")), "driver": linked(folder, "device/driver"), "pci": linked(folder, "device"),
        "numa_node": text(os.path.join(folder, "device/numa_node")), "netdevs": netdevs, "ports": ports,
    }


def linked(folder: str, place: str) -> str:
    """The name of what a link of sysfs leads to; "" where there is none."""
    link = os.path.join(folder, place)
    return os.path.basename(os.path.realpath(link)) if os.path.exists(link) else ""


def port(folder: str, number: int) -> Dict[str, Any]:
    """One port: state ACTIVE, phys_state LinkUp, rate as written and in Gb/s, lid, and the GIDs that are not all zero."""
    rate = text(os.path.join(folder, "rate"))
    speed = re.match(r"^([\d.]+) Gb/sec", rate)
    return {
        "port": number, "state": _word(folder, "state"), "phys_state": _word(folder, "phys_state"), "rate": rate,
        "rate_gbps": float(speed.group(1)) if speed else 0.0,
        "link_layer": text(os.path.join(folder, "link_layer")), "lid": _hex(folder, "lid"), "sm_lid": _hex(folder, "sm_lid"), "gids": _gids(folder),
    }


def _word(folder: str, name: str) -> str:
    """ "4: ACTIVE" means ACTIVE."""
    return text(os.path.join(folder, name)).partition(":")[2].strip()


def _hex(folder: str, name: str) -> int:
    value = text(os.path.join(folder, name))
    return int(value, 16) if re.match(r"^0x[0-9a-fA-F]+$", value) else 0


def _gids(folder: str) -> List[Dict[str, Any]]:
    found = []
    for index in entries(os.path.join(folder, "gids")):
        gid = text(os.path.join(folder, "gids", index))
        if gid and gid != ZERO_GID:
            kind, ndev = (text(os.path.join(folder, "gid_attrs", what, index)) for what in ("types", "ndevs"))
            found.append({"index": int(index), "gid": gid, "type": kind, "ndev": ndev})
    return found


def judged(found: Sequence[Mapping[str, Any]], own: Sequence[Address], subnets: Sequence[str], exclude: Sequence[str]) -> List[Dict[str, Any]]:
    """The devices with ``usable``, ``reason`` (why not), and link_layer, state, rate, lid of their best port.

    One fabric only: where InfiniBand works, Ethernet devices are the front end and left out.
    """
    result = [{**entry, **_summary(entry), "reason": _unusable(entry, own, subnets, exclude)} for entry in found]
    fabric = any(not entry["reason"] and entry["link_layer"] == INFINIBAND for entry in result)
    for entry in result:
        if fabric and not entry["reason"] and entry["link_layer"] == ETHERNET:
            entry["reason"] = "an Ethernet port beside a working InfiniBand fabric: front end or storage"
        entry["usable"] = not entry["reason"]
    return result


def _summary(entry: Mapping[str, Any]) -> Dict[str, Any]:
    best = next((one for one in entry["ports"] if _up(one)), entry["ports"][0] if entry["ports"] else {})
    keys = ("link_layer", "state", "phys_state", "rate", "rate_gbps", "lid")
    return {key: best.get(key, 0 if key in ("rate_gbps", "lid") else "") for key in keys}


def _up(one: Mapping[str, Any]) -> bool:
    return bool(one["state"] == "ACTIVE" and one["phys_state"] == "LinkUp")


def _unusable(entry: Mapping[str, Any], own: Sequence[Address], subnets: Sequence[str], exclude: Sequence[str]) -> str:
    """Why a job must not use this device; "" where it may."""
    if entry["name"] in exclude:
        return "left out by the inventory"
    if not entry["ports"]:
        return "has no port"
    up = [one for one in entry["ports"] if _up(one)]
    if not up:
        one = entry["ports"][0]
        return f"port {one['port']} is {one['state'] or 'without state'} ({one['phys_state'] or 'no physical state'}), not ACTIVE (LinkUp)"
    if entry["driver"] == EFA_DRIVER:
        return ""
    if up[0]["link_layer"] == INFINIBAND:
        return "" if up[0]["lid"] else "the port is up, but no subnet manager gave it a LID"
    return _ethernet(entry, up[0], own, subnets)


def _ethernet(entry: Mapping[str, Any], one: Mapping[str, Any], own: Sequence[Address], subnets: Sequence[str]) -> str:
    mine = [ipaddress.ip_address(address.address) for address in own if address.interface in entry["netdevs"]]
    if not mine:
        return f"its interface {' '.join(entry['netdevs']) or '(none)'} has no address"
    routable = [address for address in mine if not address.is_link_local]
    if not routable:
        return f"its interface has only link-local addresses ({', '.join(map(str, mine))}): not on the fabric"
    nets = [ipaddress.ip_network(subnet, strict=False) for subnet in subnets]
    if nets and not any(address in net for address in routable for net in nets if address.version == net.version):
        return f"its addresses ({', '.join(map(str, routable))}) are outside the fabric's subnet {', '.join(subnets)}"
    if not any(gid["type"] == "RoCE v2" and not gid["gid"].startswith("fe80:") for gid in one["gids"]):
        return "it has no RoCE v2 GID beyond the link-local one"
    return ""
