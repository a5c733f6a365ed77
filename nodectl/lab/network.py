"""The lab's wires: one namespace with a bridge, one namespace per host, one link to the controller. No route leads out."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable
from pathlib import Path

from nodectl.lab.machine import attempt, run
from nodectl.lab.plan import CONTROLLER_OCTET, HOST_INTERFACE, SERVICES_OCTET, address
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState, locked

# 10.77.1.0/24 to 10.77.250.0/24: labs that may stand side by side on one machine.
NETS = range(1, 251)
BRIDGE = "br0"
UPLINK = "uplink"
NAMESPACES = Path("/run/netns")


def bridge_namespace(state: LabState) -> str:
    return f"{state.prefix}-net"


def host_namespace(state: LabState, host: str) -> str:
    return f"{state.prefix}-{host}"


def controller_link(state: LabState) -> str:
    """Interface of this machine that leads to the lab; interface names hold 15 characters, so the id alone names the lab."""
    return f"ndl{state.id}"


def lay(state: LabState) -> None:
    """Makes the bridge and the controller's link, on the first lab network that is free. Sets ``state.net``."""
    # Two labs that start together must not choose the same network; /run is there on every machine and nothing is left in it.
    with locked(Path("/run"), "choosing a network for the lab"):
        state.net = free_net(_used_networks())
        _lay_bridge(state)


def free_net(used: Iterable[ipaddress.IPv4Network]) -> int:
    """The first k whose 10.77.k.0/24 overlaps nothing in ``used``. Raises LabProblem when all are taken."""
    taken = list(used)
    for net in NETS:
        if not any(ipaddress.IPv4Network(f"10.77.{net}.0/24").overlaps(other) for other in taken):
            return net
    span = f"10.77.{NETS[0]}.0/24 to 10.77.{NETS[-1]}.0/24"
    raise LabProblem(f"all of {span} are in use on this machine: take a lab down, or remove a route that covers 10.77.0.0/16")


def _used_networks() -> list[ipaddress.IPv4Network]:
    networks = []
    for route in json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"]) or "[]"):
        if route["dst"] != "default":
            networks.append(ipaddress.IPv4Network(route["dst"], strict=False))
    return networks


def _lay_bridge(state: LabState) -> None:
    space, link = bridge_namespace(state), controller_link(state)
    _namespace(state, space)
    state.claim("link", link)
    inside = f"""\
link set lo up
link add {BRIDGE} type bridge
link set {BRIDGE} up
addr add {address(state.net, SERVICES_OCTET)}/24 dev {BRIDGE}
link set {UPLINK} master {BRIDGE}
link set {UPLINK} up
"""
    run(["ip", "link", "add", link, "type", "veth", "peer", "name", UPLINK, "netns", space])
    run(["ip", "-netns", space, "-batch", "-"], stdin=inside)
    run(["ip", "-batch", "-"], stdin=f"addr add {address(state.net, CONTROLLER_OCTET)}/24 dev {link}\nlink set {link} up\n")


def plug(state: LabState, host: LabHost) -> None:
    """Makes a host's namespace with its interface and plugs the other end, named like the host, into the bridge."""
    own, space = host_namespace(state, host.name), bridge_namespace(state)
    _namespace(state, own)
    port = f"link add {host.name} type veth peer name {HOST_INTERFACE} netns {own}\nlink set {host.name} master {BRIDGE}\nlink set {host.name} up\n"
    run(["ip", "-netns", space, "-batch", "-"], stdin=port)
    run(["ip", "-netns", own, "-batch", "-"], stdin=f"link set lo up\naddr add {host.address}/24 dev {HOST_INTERFACE}\nlink set {HOST_INTERFACE} up\n")


def set_port(state: LabState, host: str, up: bool) -> None:
    """Plugs a host's cable in or out at the bridge."""
    run(["ip", "-netns", bridge_namespace(state), "link", "set", host, "up" if up else "down"])


def _namespace(state: LabState, name: str) -> None:
    state.claim("netns", name)
    run(["ip", "netns", "add", name])


def remove_namespace(name: str) -> None:
    """With it go the interfaces in it and their other ends."""
    if (NAMESPACES / name).exists():
        run(["ip", "netns", "delete", name])


def remove_link(name: str) -> None:
    if attempt(["ip", "link", "show", name]).returncode == 0:
        run(["ip", "link", "delete", name])


def within(namespace: str) -> list[str]:
    """Words that make the command after them run in a network namespace."""
    return ["nsenter", f"--net={NAMESPACES / namespace}", "--"]
