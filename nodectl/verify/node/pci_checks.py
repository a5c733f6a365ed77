"""Step pci: devices on the bus, their links and settings, ACS and IOMMU. Where nothing stands on the bus that a job needs, little is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.members import NodeFacts
from nodectl.verify.node.check import Peers
from nodectl.verify.node.hardware import Hardware
from nodectl.verify.node.node_table import load_table
from nodectl.verify.node.table_reading import Context, read_rows
from nodectl.verify.session import Session
from nodectl.verify.suite_load import SuiteStep

KIND = "pci"
# ConnectX-7 and -8: 400 Gb/s and more, for which the usual read requests of 512 bytes are too small.
FAST_CARDS = frozenset(["0x15b3:0x1021", "0x15b3:0x1023"])


def hardware_root(variables: Mapping[str, Any]) -> str:
    """A recorded tree that stands in for the node's hardware (rehearsals only): all that is read from it is called simulated."""
    return str(variables.get("hardware_root") or "/")


def pci(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """As root where the inventory gives it: the bus shows the rest of its settings to nobody else."""
    outcome = session.ask("probe_pci", {"root": hardware_root(session.variables)}, step.deadline, root=True)
    if outcome.failed:
        return unknown("pci.dead", (session.host,), "sysfs", outcome.msg)
    said = Answer("probe_pci", outcome.values)
    hardware, virtual = facts.hardware, said.part("virtualization")
    hardware.devices, hardware.simulated = said.parts("devices"), said.truth("simulated")
    hardware.container = said.text("container")
    hardware.guest = virtual.text("kind") if virtual.text("role") == "guest" and not hardware.container else ""
    hardware.numa_nodes = int(said.number("numa_nodes"))
    if hardware.container:
        return Reading()
    answer = _derived(hardware, said.parts("bridges"))
    words = hardware.words() | ({"links"} if any(device.get("width_max") for device in hardware.devices) else set())
    context = Context(session.host, frozenset(words), variables=session.variables, simulated=hardware.simulated)
    reading, hardware.traits[KIND] = read_rows(load_table(KIND), answer, context)
    return reading


def _derived(hardware: Hardware, bridges: list[Mapping[str, Any]]) -> dict[str, Any]:
    """What the table reads: lists of what is odd, each device with its address."""
    devices, gpus, cards = hardware.devices, hardware.of("gpu"), hardware.of("hca")
    near = [device for device in devices if device.get("kind") in ("gpu", "hca")]
    unread = any(device.get("alive") and not device.get("whole") for device in [*near, *bridges])
    return {
        "dead": [name(device) for device in devices if not device.get("alive")], "gpus": len(gpus), "hcas": len(cards),
        "narrow": [_short(device, "width", "x") for device in devices if _below(device, "width", hardware.guest)],
        "slow": [_short(device, "speed", " GT/s") for device in devices if device.get("kind") in ("hca", "nvme") and _below(device, "speed", hardware.guest)],
        "cards": [{**device, "label": name(device)} for device in cards if device.get("alive")],
        "redirecting": None if unread else [f"{bridge.get('address')}: {' '.join(bridge['redirect'])}" for bridge in bridges if bridge.get("redirect")],
        "translated": [name(device) for device in near if device.get("iommu") == "translated"],
        "iommu_modes": ", ".join(sorted({str(device.get("iommu")) for device in near})) or None,
        "fast_cards": [{**device, "label": name(device)} for device in cards if device.get("alive") and device.get("model") in FAST_CARDS],
        "placeless": [name(device) for device in near if device.get("numa_node") is None],
    }


def name(device: Mapping[str, Any]) -> str:
    return f"{device.get('kind')} {device.get('address')}"


def _below(device: Mapping[str, Any], what: str, guest: str) -> bool:
    """True where a link does less than both of its ends could. One that says nothing although its ends do is down; in a guest it is made up."""
    most, now = device.get(f"{what}_max"), device.get(what)
    if most is None:
        return False
    if not isinstance(most, (int, float)) or not (now is None or isinstance(now, (int, float))):
        raise Garbled(f"probe_pci gave {now!r} of {most!r} for the {what} of {name(device)}; expected numbers")
    return not guest if now is None else now < most


def _short(device: Mapping[str, Any], what: str, unit: str) -> str:
    now, most = device.get(what), device.get(f"{what}_max")
    figures = [f"x{figure:g}" if unit == "x" else f"{figure:g}{unit}" for figure in (now, most) if figure is not None]
    return f"{name(device)} runs {figures[0]} of {figures[1]}" if len(figures) == 2 else f"{name(device)} is down, of {figures[0]}"
