"""Interfaces and their addresses, in Ansible's words."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import struct
from typing import Any, Dict, List, Optional, Sequence

from nodectl.agent.facts.netlink import Address
from nodectl.agent.facts.platform import Facts, text

_TYPES = {"1": "ether", "32": "infiniband", "772": "loopback", "512": "ppp", "65534": "tunnel"}
IFF_PROMISC = 0x100


def collect(found: Sequence[Address], root: str = "/") -> Facts:
    """All network facts; ``found`` is the kernel's table of addresses."""
    base = os.path.join(root, "sys/class/net")
    names = sorted(name for name in (os.listdir(base) if os.path.isdir(base) else []) if os.path.isdir(os.path.join(base, name)))
    facts: Facts = {"ansible_interfaces": names, "ansible_default_ipv4": {}, "ansible_default_ipv6": {}}
    for name in names:
        facts[f"ansible_{re.sub(r'[^0-9A-Za-z_]', '_', name)}"] = interface(os.path.join(base, name), name, found)
    outside = [entry for entry in found if entry.interface != "lo"]
    facts["ansible_all_ipv4_addresses"] = [entry.address for entry in outside if entry.family == 4 and not entry.address.startswith("127.")]
    facts["ansible_all_ipv6_addresses"] = [entry.address for entry in outside if entry.family == 6]
    facts["ansible_default_ipv4"] = _default4(text(os.path.join(root, "proc/net/route")), facts, base, found)
    facts["ansible_default_ipv6"] = _default6(text(os.path.join(root, "proc/net/ipv6_route")), base, found)
    facts["ansible_dns"] = dns(text(os.path.join(root, "etc/resolv.conf")))
    return facts


def interface(folder: str, name: str, found: Sequence[Address]) -> Dict[str, Any]:
    """One interface as Ansible shows it."""
    state = text(os.path.join(folder, "operstate"))
    result: Dict[str, Any] = {
        "device": name, "active": state == "up" or (state == "unknown" and _flags(folder) & 1 == 1), "type": kind(folder),
        "macaddress": text(os.path.join(folder, "address")), "mtu": _number(text(os.path.join(folder, "mtu"))), "promisc": bool(_flags(folder) & IFF_PROMISC),
    }
    speed = _number(text(os.path.join(folder, "speed")))
    if speed is not None:
        result["speed"] = speed
    for key, place in (("module", "device/driver/module"), ("pciid", "device")):
        link = os.path.join(folder, place)
        if os.path.exists(link) and result["type"] not in ("loopback", "bridge"):
            result[key] = os.path.basename(os.path.realpath(link))
    if os.path.isdir(os.path.join(folder, "brif")):
        result["interfaces"] = sorted(os.listdir(os.path.join(folder, "brif")))
    if os.path.isdir(os.path.join(folder, "bonding")):
        result["slaves"] = text(os.path.join(folder, "bonding/slaves")).split()
        result["mode"] = text(os.path.join(folder, "bonding/mode")).partition(" ")[0]
    return {**result, **_addresses([entry for entry in found if entry.interface == name])}


def kind(folder: str) -> str:
    """bridge, bonding, ether, loopback, infiniband, …"""
    if os.path.isdir(os.path.join(folder, "bridge")):
        return "bridge"
    if os.path.isdir(os.path.join(folder, "bonding")):
        return "bonding"
    return _TYPES.get(text(os.path.join(folder, "type")), "unknown")


def _flags(folder: str) -> int:
    return int(text(os.path.join(folder, "flags")) or "0", 16)


def _number(value: str) -> Optional[int]:
    return int(value) if re.match(r"^-?\d+$", value) else None


def _addresses(own: Sequence[Address]) -> Dict[str, Any]:
    result: Dict[str, Any] = {}
    four = [_four(entry) for entry in own if entry.family == 4]
    if four:
        result["ipv4"] = four[0]
    if len(four) > 1:
        result["ipv4_secondaries"] = four[1:]
    six = [{"address": entry.address, "prefix": str(entry.prefix), "scope": entry.scope} for entry in own if entry.family == 6]
    if six:
        result["ipv6"] = six
    return result


def _four(entry: Address) -> Dict[str, str]:
    network = ipaddress.ip_network(f"{entry.address}/{entry.prefix}", strict=False)
    wide = entry.broadcast or (str(network.broadcast_address) if entry.prefix < 31 and entry.interface != "lo" else "")
    return {"address": entry.address, "netmask": str(network.netmask), "network": str(network.network_address), "prefix": str(entry.prefix), "broadcast": wide}


def _default4(table: str, facts: Facts, base: str, found: Sequence[Address]) -> Dict[str, Any]:
    """The default route with the lowest metric, with the address of its interface."""
    routes = []
    for line in table.splitlines()[1:]:
        words = line.split()
        if len(words) > 7 and words[1] == "00000000" and words[7] == "00000000" and int(words[3], 16) & 1:
            routes.append((int(words[6]), words[0], socket.inet_ntoa(struct.pack("=I", int(words[2], 16)))))
    if not routes:
        return {}
    _, name, gateway = min(routes)
    own = interface(os.path.join(base, name), name, found)
    return {
        "interface": name, "alias": name, "gateway": gateway, "macaddress": own["macaddress"], "mtu": own["mtu"], "type": own["type"], **own.get("ipv4", {}),
    }


def _default6(table: str, base: str, found: Sequence[Address]) -> Dict[str, Any]:
    routes = []
    for line in table.splitlines():
        words = line.split()
        if len(words) > 9 and words[0] == "0" * 32 and words[1] == "00" and words[9] != "lo":
            routes.append((int(words[5], 16), words[9], str(ipaddress.IPv6Address(int(words[4], 16)))))
    if not routes:
        return {}
    _, name, gateway = min(routes)
    own = interface(os.path.join(base, name), name, found)
    best: List[Dict[str, str]] = [entry for entry in own.get("ipv6", []) if entry["scope"] == "global"]
    return {"interface": name, "gateway": gateway, "macaddress": own["macaddress"], "mtu": own["mtu"], "type": own["type"], **(best[0] if best else {})}


def dns(content: str) -> Dict[str, Any]:
    """nameservers and search of resolv.conf."""
    result: Dict[str, Any] = {}
    for line in content.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            result.setdefault("nameservers", []).append(words[1])
        elif len(words) > 1 and words[0] in ("search", "domain"):
            result[words[0]] = words[1:] if words[0] == "search" else words[1]
    return result
