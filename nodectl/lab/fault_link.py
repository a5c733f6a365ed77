"""Faults of a host's link: rate, loss, lengths, reach. The host and its neighbours notice them as they would notice a bad cable or port."""

from __future__ import annotations

from collections.abc import Callable

from nodectl.lab import frame_filter, network
from nodectl.lab.fault_kind import Act, FaultKind, whole_number
from nodectl.lab.machine import attempt, run
from nodectl.lab.network import bridge_namespace, host_namespace
from nodectl.lab.plan import CONTROLLER_OCTET, HOST_INTERFACE, SERVICES_OCTET, address
from nodectl.lab.rates import bits_per_second, burst_bytes
from nodectl.lab.state import LabHost, LabState

# A packet waits this long in the shaper before it is dropped, as at a busy switch port.
SHAPER_LATENCY = "50ms"
# IPv4 works from 68 bytes; a veth carries up to 65535. What Ethernet has unless told otherwise is 1500.
LEAST_MTU, MOST_MTU, ETHERNET_MTU = 68, 65535, 1500
# Each kind of loss has a place of its own in the chain, so that several can hold at once and each can be lifted.
LOSS, HOLE, CUT = 11, 12, 13

End = tuple[str, str]
Ends = Callable[[LabState, LabHost], list[End]]


def sending(state: LabState, host: LabHost) -> list[End]:
    """Namespace and interface by which the host's frames leave it."""
    return [(host_namespace(state, host.name), HOST_INTERFACE)]


def receiving(state: LabState, host: LabHost) -> list[End]:
    """Where frames for the host leave the bridge."""
    return [(bridge_namespace(state), host.name)]


def both(state: LabState, host: LabHost) -> list[End]:
    return sending(state, host) + receiving(state, host)


def _shape(ends: Ends) -> Act:
    def apply(state: LabState, host: LabHost, value: str) -> None:
        rate = bits_per_second(value)
        for namespace, interface in ends(state, host):
            shape(namespace, interface, rate)

    return apply


def shape(namespace: str, interface: str, rate: int) -> None:
    """What leaves by this interface is held to ``rate`` bits per second."""
    words = ["root", "tbf", "rate", f"{rate}bit", "burst", str(burst_bytes(rate)), "latency", SHAPER_LATENCY]
    run(["tc", "-netns", namespace, "qdisc", "replace", "dev", interface, *words])


def _unshape(ends: Ends) -> Act:
    def lift(state: LabState, host: LabHost, value: str) -> None:
        for namespace, interface in ends(state, host):
            unshape(namespace, interface)

    return lift


def unshape(namespace: str, interface: str) -> None:
    if " tbf " in run(["tc", "-netns", namespace, "qdisc", "show", "dev", interface]):
        run(["tc", "-netns", namespace, "qdisc", "delete", "dev", interface, "root"])


def _filter(place: int, program: Callable[[LabState, str], str]) -> Act:
    def apply(state: LabState, host: LabHost, value: str) -> None:
        code = program(state, value)
        for namespace, interface in both(state, host):
            tc = ["tc", "-netns", namespace]
            if " clsact " not in run([*tc, "qdisc", "show", "dev", interface]):
                run([*tc, "qdisc", "add", "dev", interface, "clsact"])
            run([*tc, "filter", "add", "dev", interface, "egress", "pref", str(place), "bpf", "da", "bytecode", code])

    return apply


def _unfilter(place: int) -> Act:
    """The last filter takes the hook for filters with it."""

    def lift(state: LabState, host: LabHost, value: str) -> None:
        for namespace, interface in both(state, host):
            tc = ["tc", "-netns", namespace]
            attempt([*tc, "filter", "delete", "dev", interface, "egress", "pref", str(place)])
            if " clsact " in run([*tc, "qdisc", "show", "dev", interface]) and not run([*tc, "filter", "show", "dev", interface, "egress"]).strip():
                run([*tc, "qdisc", "delete", "dev", interface, "clsact"])

    return lift


def _spared(state: LabState) -> list[str]:
    """The controller and the lab's services: they are reached over the management network of a real node."""
    return [address(state.net, octet) for octet in (CONTROLLER_OCTET, SERVICES_OCTET)]


def _loss(state: LabState, value: str) -> str:
    return frame_filter.lose_share(whole_number(value, "a share of frames in percent", 1, 100))


def _hole(state: LabState, value: str) -> str:
    return frame_filter.lose_large(whole_number(value, "an MTU in bytes", LEAST_MTU, MOST_MTU), _spared(state))


def _cut(state: LabState, value: str) -> str:
    return frame_filter.lose_all(_spared(state))


def _set_mtu(state: LabState, host: LabHost, value: str) -> None:
    _mtu(state, host, whole_number(value, "an MTU in bytes", LEAST_MTU, MOST_MTU))


def _reset_mtu(state: LabState, host: LabHost, value: str) -> None:
    _mtu(state, host, ETHERNET_MTU)


def _mtu(state: LabState, host: LabHost, size: int) -> None:
    run(["ip", "-netns", host_namespace(state, host.name), "link", "set", HOST_INTERFACE, "mtu", str(size)])


def _unplug(state: LabState, host: LabHost, value: str) -> None:
    network.set_port(state, host.name, up=False)


def _plug(state: LabState, host: LabHost, value: str) -> None:
    network.set_port(state, host.name, up=True)


RATE = "rate such as 100mbit"


def link_faults() -> tuple[FaultKind, ...]:
    return (
        FaultKind("slow-link", "the host's link carries only this much, both ways", RATE, _shape(both), _unshape(both)),
        FaultKind("slow-out", "only what the host sends is held to this rate", RATE, _shape(sending), _unshape(sending)),
        FaultKind("slow-in", "only what the host receives is held to this rate", RATE, _shape(receiving), _unshape(receiving)),
        FaultKind("lossy-link", "this share of all frames is lost, both ways", "percent", _filter(LOSS, _loss), _unfilter(LOSS), default="2"),
        FaultKind("mtu", "the host's interface has another MTU than its peers'", "bytes", _set_mtu, _reset_mtu, default="1400"),
        FaultKind("mtu-hole", "the switch loses larger packets between the host and its peers", "bytes", _filter(HOLE, _hole), _unfilter(HOLE), default="1300"),
        FaultKind("peers-cut", "the host reaches the controller, and none of its peers", "", _filter(CUT, _cut), _unfilter(CUT)),
        FaultKind("unplugged", "the host's cable is out", "", _unplug, _plug),
    )
