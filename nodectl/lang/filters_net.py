"""Filters over addresses and networks, named as those of ansible.utils; pure functions on the standard library's ipaddress."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Interface, IPv6Interface
from typing import Any

Interface = IPv4Interface | IPv6Interface
_MAC = re.compile(
    r"[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}|[0-9a-f]{12}|[0-9a-f]{6}[:-][0-9a-f]{6}", re.IGNORECASE
)
# How `hwaddr` writes six bytes: digits of a group, and what stands between groups.
_MAC_FORMS = {
    "": (2, ":"), "linux": (2, ":"), "unix": (2, ":"), "bare": (12, ""), "cisco": (4, "."), "eui48": (2, "-"), "win": (2, "-"),
    "psql": (6, ":"), "pgsql": (6, ":"), "postgresql": (6, ":"),
}  # fmt: skip


def interface(value: Any) -> tuple[Interface, bool] | None:
    """The address with its network, and whether a prefix was written; None for what is none of both."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    try:
        text = int(value) if str(value).isdecimal() else str(value)
        return ipaddress.ip_interface(text), "/" in str(value)
    except ValueError:
        return None


def _is_network(one: Interface, prefix: bool) -> bool:
    """A network is written with its first address; one address alone (/32, /128) is a host."""
    return prefix and one.ip == one.network.network_address and one.network.num_addresses > 1


def _host(one: Interface, prefix: bool) -> Any:
    if not prefix:
        return str(one)
    return False if _is_network(one, prefix) and one.network.num_addresses > 2 else str(one)


def _usable(one: Interface) -> tuple[int, int]:
    """First and last host of the network; both ends count where it is too small to lose them (point to point, one host)."""
    first, last = int(one.network.network_address), int(one.network.broadcast_address)
    return (first + 1, last - 1) if last - first > 1 else (first, last)


def _address(one: Interface, number: int) -> str:
    return str(type(one.ip)(number))


def _with_prefix(one: Interface, number: int) -> str:
    return f"{_address(one, number)}/{one.network.prefixlen}"


def _range(one: Interface, prefix: bool) -> Any:
    first, last = _usable(one)
    return f"{_address(one, first)}-{_address(one, last)}" if prefix and one.network.num_addresses > 1 else False


def _kind(name: str) -> Callable[[Interface, bool], Any]:
    return lambda one, prefix: _shown(one, prefix) if getattr(one.ip, name) else False


def _shown(one: Interface, prefix: bool) -> str:
    return str(one) if prefix else str(one.ip)


def _as_ipv4(one: Interface, prefix: bool) -> Any:
    """An IPv6 address below 2^32 is an IPv4 address that somebody wrote as one."""
    if one.version == 4:
        return _shown(one, prefix)
    return f"{ipaddress.IPv4Address(int(one.ip))}/{max(one.network.prefixlen - 96, 0)}" if int(one.ip) < 2**32 else False


def _as_ipv6(one: Interface, prefix: bool) -> Any:
    """An IPv4 address as IPv6 writes it (::ffff:…)."""
    return _shown(one, prefix) if one.version == 6 else f"::ffff:{one.ip}/{one.network.prefixlen + 96}"


def _in_net(one: Interface) -> bool:
    """A host in a network: neither alone nor the network itself."""
    return _many(one) and (one.ip != one.network.network_address or one.network.num_addresses == 2)


def _many(one: Interface) -> bool:
    return one.network.num_addresses > 1


def _neighbour(step: int) -> Callable[[Interface, bool], Any]:
    def near(one: Interface, prefix: bool) -> Any:
        first, last = _usable(one)
        wanted = int(one.ip) + step
        return _address(one, wanted) if prefix and _many(one) and first <= wanted <= last else False

    return near


_QUERIES: Mapping[str, Callable[[Interface, bool], Any]] = {
    "": _shown,
    "address": lambda one, prefix: False if one.version == 4 and _is_network(one, prefix) and one.network.num_addresses > 2 else str(one.ip),
    "address/prefix": lambda one, prefix: False if _is_network(one, prefix) and one.network.num_addresses > 2 else str(one),
    "bool": lambda one, prefix: True,
    "broadcast": lambda one, prefix: str(one.network.broadcast_address) if one.network.num_addresses > 2 else False,
    "cidr": lambda one, prefix: str(one),
    "first_usable": lambda one, prefix: _address(one, _usable(one)[0]) if _many(one) else False,
    "last_usable": lambda one, prefix: _address(one, _usable(one)[1]) if _many(one) else False,
    "host": _host,
    "host/prefix": _host,
    "hostmask": lambda one, prefix: str(one.network.hostmask),
    "wildcard": lambda one, prefix: str(one.network.hostmask),
    "int": lambda one, prefix: f"{int(one.ip)}/{one.network.prefixlen}" if prefix else int(one.ip),
    "ip": lambda one, prefix: str(one.ip),
    "ipv4": _as_ipv4,
    "ipv6": _as_ipv6,
    "link-local": _kind("is_link_local"),
    "loopback": _kind("is_loopback"),
    "multicast": _kind("is_multicast"),
    "unicast": lambda one, prefix: False if one.ip.is_multicast else _shown(one, prefix),
    "private": _kind("is_private"),
    "public": lambda one, prefix: _shown(one, prefix) if one.ip.is_global and not one.ip.is_multicast else False,
    "net": lambda one, prefix: str(one) if _is_network(one, prefix) else False,
    "netmask": lambda one, prefix: str(one.network.netmask),
    "network": lambda one, prefix: str(one.network.network_address),
    "network_id": lambda one, prefix: str(one.network.network_address),
    "network/prefix": lambda one, prefix: str(one.network),
    "network_netmask": lambda one, prefix: f"{one.network.network_address} {one.network.netmask}",
    "network_wildcard": lambda one, prefix: f"{one.network.network_address} {one.network.hostmask}",
    "ip/prefix": lambda one, prefix: str(one) if _in_net(one) else False,
    "ip_netmask": lambda one, prefix: f"{one.ip} {one.network.netmask}" if _in_net(one) else False,
    "ip_wildcard": lambda one, prefix: f"{one.ip} {one.network.hostmask}" if _in_net(one) else False,
    "next_usable": _neighbour(1),
    "previous_usable": _neighbour(-1),
    "prefix": lambda one, prefix: one.network.prefixlen,
    "range_usable": _range,
    "revdns": lambda one, prefix: one.ip.reverse_pointer + ".",
    "size": lambda one, prefix: one.network.num_addresses,
    "size_usable": lambda one, prefix: _usable(one)[1] - _usable(one)[0] + 1 if _many(one) else 0,
    "subnet": lambda one, prefix: str(one.network),
    "type": lambda one, prefix: "network" if _is_network(one, prefix) else "address",
    "version": lambda one, prefix: one.version,
    "wrap": lambda one, prefix: f"[{one.ip}]" + (f"/{one.network.prefixlen}" if prefix else "") if one.version == 6 else _shown(one, prefix),
}  # fmt: skip


def ipaddr(value: Any, query: Any = "", version: Any = False) -> Any:
    """What ``query`` asks about an address or network; False where it does not hold. Of a list those for which it does."""
    if isinstance(value, (list, tuple)):
        found = (ipaddr(item, query, version) for item in value)
        return [item for item in found if item is not False]
    parsed = interface(value)
    if parsed is None or (version and parsed[0].version != int(version)):
        return False
    number = _number(query)
    if number is not None:
        return _nth(parsed[0], number) if _many(parsed[0]) else _shown(*parsed)
    if str(query) in _QUERIES:
        return _QUERIES[str(query)](*parsed)
    return _inside(parsed, query)


def _number(query: Any) -> int | None:
    return int(query) if not isinstance(query, bool) and re.fullmatch(r"-?\d+", str(query)) else None


def _nth(one: Interface, number: int) -> Any:
    if not -one.network.num_addresses <= number < one.network.num_addresses:
        return False
    start = one.network.network_address if number >= 0 else one.network.broadcast_address + 1
    return _with_prefix(one, int(start) + number)


def _inside(parsed: tuple[Interface, bool], query: Any) -> Any:
    outer = interface(query)
    if outer is None:
        raise ValueError(f"ipaddr knows no query {query!r}")
    one, prefix = parsed
    fits = outer[0].version == one.version and int(outer[0].network.network_address) <= int(one.ip) <= int(outer[0].network.broadcast_address)
    return _shown(one, prefix) if fits else False


def ipv4(value: Any, query: Any = "") -> Any:
    return ipaddr(value, query, 4)


def ipv6(value: Any, query: Any = "") -> Any:
    return ipaddr(value, query, 6)


def ipwrap(value: Any, query: Any = "") -> Any:
    """IPv6 addresses in brackets; anything else as it is."""
    if isinstance(value, (list, tuple)):
        return [ipwrap(item, query) for item in value]
    found = ipaddr(value, query)
    return value if found is False else ipaddr(found, "wrap")


def ipmath(value: Any, amount: int) -> str:
    parsed = interface(value)
    if parsed is None or isinstance(amount, bool) or not isinstance(amount, int):
        raise ValueError(f"ipmath wants an address and a whole number, not {value!r} and {amount!r}")
    return _address(parsed[0], int(parsed[0].ip) + amount)


def ipsubnet(value: Any, query: Any = "", index: Any = None) -> Any:
    """Subnets of a network: how many of a size there are, or the one at ``index``; of an address the network around it."""
    parsed = interface(value)
    if parsed is None:
        return False
    one = parsed[0]
    if query == "":
        return str(one.network) if parsed[1] else str(one)
    size = _number(query)
    if size is None:
        return _place_of(one, query)
    if not parsed[1] or size < one.network.prefixlen:
        return str(one.network.supernet(new_prefix=size)) if index is None and size <= one.network.prefixlen else False
    count = 2 ** (size - one.network.prefixlen)
    return str(count) if index is None else _subnet(one, size, int(index), count)


def _subnet(one: Interface, size: int, index: int, count: int) -> Any:
    if not -count <= index < count:
        return False
    step = 2 ** (one.network.max_prefixlen - size)
    return f"{_address(one, int(one.network.network_address) + index % count * step)}/{size}"


def _place_of(one: Interface, query: Any) -> Any:
    """Which of the subnets of ``query`` this is, counted from 1."""
    outer = interface(query)
    if outer is None:
        raise ValueError(f"ipsubnet wants a size or a network, not {query!r}")
    if outer[0].version != one.version or not outer[0].network.supernet_of(one.network):  # type: ignore[arg-type]  # both of one version
        return False
    return str((int(one.network.network_address) - int(outer[0].network.network_address)) // one.network.num_addresses + 1)


def nthhost(value: Any, query: Any = "") -> Any:
    parsed, number = interface(value), _number(query)
    if parsed is None or number is None:
        return False
    found = _nth(parsed[0], number)
    return found if found is False else found.split("/")[0]


def next_nth_usable(value: Any, offset: int) -> Any:
    return _moved(value, offset)


def previous_nth_usable(value: Any, offset: int) -> Any:
    return _moved(value, -offset)


def _moved(value: Any, offset: int) -> Any:
    parsed = interface(value)
    if parsed is None:
        return False
    first, last = _usable(parsed[0])
    wanted = int(parsed[0].ip) + offset
    return _address(parsed[0], wanted) if first <= wanted <= last else None


def network_in_network(value: Any, test: Any) -> bool:
    outer, inner = interface(value), interface(test)
    if outer is None or inner is None or outer[0].version != inner[0].version:
        return False
    around, own = outer[0].network, inner[0].network if inner[1] else ipaddress.ip_network(inner[0].ip)
    return int(around.network_address) <= int(own.network_address) and int(own.broadcast_address) <= int(around.broadcast_address)


def network_in_usable(value: Any, test: Any) -> bool:
    outer, inner = interface(value), interface(test)
    if outer is None or inner is None or outer[0].version != inner[0].version:
        return False
    first, last = _usable(outer[0])
    own = inner[0].network if inner[1] else ipaddress.ip_network(inner[0].ip)
    return first <= int(own.network_address) and int(own.broadcast_address) <= last


def reduce_on_network(value: Iterable[Any], network: Any) -> list[Any]:
    return [item for item in value if network_in_network(network, item)]


def usable_range(ip: Any) -> dict[str, Any]:
    parsed = interface(ip)
    if parsed is None:
        raise ValueError(f"usable_range wants an address or a network, not {ip!r}")
    every = [str(address) for address in parsed[0].network]
    return {"number_of_ips": len(every), "usable_ips": every}


def cidr_merge(value: Any, action: str = "merge") -> Any:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"cidr_merge wants a list, not {value!r}")
    networks = [ipaddress.ip_network(str(item), strict=False) for item in value]
    if action == "merge":
        merged = [one for kind in (4, 6) for one in ipaddress.collapse_addresses([net for net in networks if net.version == kind])]  # type: ignore[type-var]
        return [str(one) for one in merged]
    if action != "span":
        raise ValueError(f"cidr_merge: the action is merge or span, not {action!r}")
    return _span(networks)


def _span(networks: list[Any]) -> Any:
    if not networks:
        return None
    first, last = min(int(one.network_address) for one in networks), max(int(one.broadcast_address) for one in networks)
    one = networks[0]
    prefix = one.max_prefixlen - (first ^ last).bit_length()
    return str(ipaddress.ip_network((first, prefix), strict=False) if one.version == 4 else ipaddress.IPv6Network((first, prefix), strict=False))


def ip4_hex(value: Any, delimiter: str = "") -> str:
    return delimiter.join(f"{part:02x}" for part in ipaddress.IPv4Address(str(value)).packed)


def hwaddr(value: Any, query: str = "") -> Any:
    """A hardware address in another spelling, or False."""
    plain = re.sub(r"[^0-9a-f]", "", str(value).lower()) if is_mac(value) else ""
    if query == "bool":
        return bool(plain)
    if not plain:
        return False
    if query in ("int", ""):
        return int(plain, 16) if query == "int" else str(value)
    if query not in _MAC_FORMS:
        raise ValueError(f"hwaddr knows {', '.join(filter(None, _MAC_FORMS))}, not {query!r}")
    digits, between = _MAC_FORMS[query]
    grouped = between.join(plain[at : at + digits] for at in range(0, 12, digits))
    return grouped.upper() if query in ("bare", "eui48", "win") else grouped


def is_mac(value: Any) -> bool:
    return bool(_MAC.fullmatch(str(value)))


def slaac(value: Any, query: Any = "") -> Any:
    """The address that a host with this hardware address makes for itself in an IPv6 network."""
    parsed = interface(value)
    if parsed is None or parsed[0].version != 6 or not is_mac(query):
        return False
    plain = int(re.sub(r"[^0-9a-f]", "", str(query).lower()), 16) ^ (2 << 40)
    low = (plain >> 24 << 40) | (0xFFFE << 24) | (plain & 0xFFFFFF)
    return str(ipaddress.IPv6Address(int(parsed[0].network.network_address) | low))


NET_FILTERS: Mapping[str, Callable[..., Any]] = {
    "ipaddr": ipaddr, "ipv4": ipv4, "ipv6": ipv6, "ipwrap": ipwrap, "ipmath": ipmath, "ipsubnet": ipsubnet, "nthhost": nthhost,
    "next_nth_usable": next_nth_usable, "previous_nth_usable": previous_nth_usable, "network_in_network": network_in_network,
    "network_in_usable": network_in_usable, "reduce_on_network": reduce_on_network, "usable_range": usable_range, "cidr_merge": cidr_merge,
    "ip4_hex": ip4_hex, "hwaddr": hwaddr, "macaddr": hwaddr, "slaac": slaac,
}  # fmt: skip


def _address_test(name: str) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        parsed = interface(value)
        return parsed is not None and bool(getattr(parsed[0].ip, name))

    return holds


def _is(version: int | None, network: bool) -> Callable[[Any], bool]:
    """An address, or with ``network`` an address or network, of this version."""

    def holds(value: Any) -> bool:
        try:
            found: Any = ipaddress.ip_network(str(value)) if network else ipaddress.ip_address(str(value))
        except ValueError:
            return False
        return version is None or found.version == version

    return holds


def in_network(value: Any, network: Any) -> bool:
    return network_in_network(network, value)


def subnet_of(value: Any, other: Any) -> bool:
    return network_in_network(other, value)


def supernet_of(value: Any, other: Any) -> bool:
    return network_in_network(value, other)


NET_TESTS: Mapping[str, Callable[..., bool]] = {
    "ip": _is(None, True), "ip_address": _is(None, False), "ipv4": _is(4, True), "ipv6": _is(6, True),
    "ipv4_address": _is(4, False), "ipv6_address": _is(6, False),
    "loopback": _address_test("is_loopback"), "multicast": _address_test("is_multicast"), "private": _address_test("is_private"),
    "public": _address_test("is_global"), "reserved": _address_test("is_reserved"), "unspecified": _address_test("is_unspecified"),
    "in_network": in_network, "in_any_network": lambda value, networks: any(in_network(value, one) for one in networks),
    "in_one_network": lambda value, networks: sum(in_network(value, one) for one in networks) == 1,
    "subnet_of": subnet_of, "supernet_of": supernet_of, "mac": is_mac,
}  # fmt: skip
