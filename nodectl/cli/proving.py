"""The second half of a bootstrap: verify what is up, hand off what passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.cli.session import Session
from nodectl.diagnostics.model import Collector
from nodectl.engine.run import RunResult
from nodectl.engine.targets import target_of
from nodectl.handoff.write import write_handoff
from nodectl.verify.stage import Node, verify
from nodectl.verify.suite_load import Suite, SuiteError, load_suite


def nodes_of(result: RunResult, hosts: Sequence[str]) -> list[Node]:
    """The hosts that the engine left in good order. The others are excluded with the engine's reason, not measured."""
    return [_node(host, result.variables(host)) for host in hosts if result.status.get(host) == "ok"]


def _node(host: str, variables: Mapping[str, Any]) -> Node:
    return Node(host, target_of(host, variables), variables)


def prove(session: Session, nodes: Sequence[Node], suite: Suite) -> None:
    """Verdicts into the journal, then the handoff from the journal."""
    if nodes:
        verify(nodes, suite, session.connections, session.emit)
    handoff = write_handoff(session.events(), session.folder / "handoff")
    session.tell("handoff", path=str(session.folder / "handoff"), hosts=handoff.hosts, excluded=handoff.excluded, world_size=handoff.world_size)


def read_suite(name: str, found: Collector) -> Suite | None:
    """The suite, or None with the reason in ``found``."""
    try:
        return load_suite(name)
    except SuiteError as error:
        found.error("suite", str(error), None, help="nodectl's suites are TOML files; name a shipped one, or give the path of yours")
        return None
