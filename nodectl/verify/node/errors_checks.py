"""Step errors: what links counted while the run's own groups used them. It asks what step hca asked, and judges the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.members import NodeFacts
from nodectl.verify.node.check import Peers
from nodectl.verify.node.node_table import load_table
from nodectl.verify.node.pci_checks import hardware_root
from nodectl.verify.node.table_reading import Context, read_rows
from nodectl.verify.session import Session
from nodectl.verify.suite_load import SuiteStep

KIND = "errors"
Counts = Mapping[str, Mapping[str, float]]


def errors(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """Nothing where the first look is missing: then step hca said so itself."""
    before = facts.hardware.link_errors
    if not before:
        return Reading()
    outcome = session.ask("probe_hca", {"root": hardware_root(session.variables)}, step.deadline)
    if outcome.failed:
        return unknown("errors.interface", (session.host,), "sysfs", outcome.msg)
    said = Answer("probe_hca", outcome.values)
    after = link_errors(said)
    usable = [key for key in facts.hardware.used_ports if key in before and key in after]
    words = {"interface"} if facts.interface and facts.interface in before and facts.interface in after else set()
    answer: dict[str, Any] = {
        "ports": [{"label": key, "delta": grown(before[key], after[key])} for key in usable],
        "interface_errors": sum(grown(before[facts.interface], after[facts.interface]).values()) if words else 0,
    }
    reading, _ = read_rows(load_table(KIND), answer, Context(session.host, frozenset(words), simulated=said.truth("simulated")))
    return reading


def link_errors(said: Answer) -> dict[str, dict[str, float]]:
    """Error counters by port ("mlx5_0 port 1") and interface. Raises Garbled."""
    found = {port_name(port): {**_figures(port.get("counters")), **_figures(port.get("hw_counters"))} for port in said.parts("ports")}
    return {**found, **{name: _figures(figures) for name, figures in said.part("interfaces").values.items()}}


def port_name(port: Mapping[str, Any]) -> str:
    return f"{port.get('device')} port {port.get('port')}"


def _figures(counters: object) -> dict[str, float]:
    if not isinstance(counters, Mapping) or not all(isinstance(figure, (int, float)) for figure in counters.values()):
        raise Garbled(f"probe_hca gave {counters!r} for counters; expected numbers by name")
    return {str(name): float(figure) for name, figure in counters.items()}


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """By how much each counter grew. One that is smaller than before was set back in between, and counts from there."""
    return {name: now - before[name] if now >= before[name] else now for name, now in after.items() if name in before}


def used(ports: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(port_name(port) for port in ports)
