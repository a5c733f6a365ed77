"""The second half of a bootstrap: verify what is up, hand off what passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.cli.session import Session
from nodectl.diagnostics.model import Collector
from nodectl.engine.options import Options
from nodectl.engine.run import RunResult
from nodectl.engine.targets import BadTarget, become_of, needed_become, target_of
from nodectl.handoff.write import write_handoff
from nodectl.lang.task import Become
from nodectl.verify.ledger import NO_TERMS, Terms
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, SuiteError, load_suite
from nodectl.verify.trial import Node


def nodes_of(result: RunResult, options: Options) -> list[Node]:
    """The hosts that the engine left in good order. The others are excluded with the engine's reason, not measured."""
    return [_node(host, result.variables(host), options) for host, status in result.status.items() if status == "ok"]


def _node(host: str, variables: Mapping[str, Any], options: Options) -> Node:
    target = target_of(host, variables, remote_user=options.remote_user, private_key=options.private_key)
    # Some probes read what only root may; where the inventory says `ansible_become: false` they say so instead of a value.
    root = become_of(Become(enabled=True), Become(), variables, options)
    return Node(host, target, variables, needed_become(target, root))


def tell_targets(session: Session, result: RunResult, options: Options) -> None:
    """Where each host of the run is, and what schedulers call it; also of hosts that were not reached: they are to be drained by that name."""
    for host in result.status:
        variables = result.variables(host)
        try:
            address = target_of(host, variables, remote_user=options.remote_user, private_key=options.private_key).address
        except BadTarget:
            continue
        names = {key: str(variables.get(key) or "") for key in ("slurm_node_name", "kubernetes_node_name")}
        session.tell("target", host, address=address, **names)


def prove(session: Session, nodes: Sequence[Node], suite: Suite, terms: Terms = NO_TERMS) -> None:
    """Verdicts into the journal, then the handoff from the journal."""
    if nodes:
        verify(nodes, suite, session.connections, session.emit, terms)
    handoff = write_handoff(session.events(), session.folder / "handoff")
    refused = {name: dict(hosts) for name, hosts in handoff.refused.items()}
    session.tell(
        "handoff", path=str(session.folder / "handoff"), hosts=list(handoff.hosts), excluded=handoff.excluded, world_size=handoff.world_size, refused=refused,
    )


def read_suite(name: str, found: Collector) -> Suite | None:
    """The suite, or None with the reason in ``found``."""
    try:
        return load_suite(name)
    except SuiteError as error:
        for one in error.diagnostics:
            found.error(one.code, one.message, one.origin, label=one.label, help=one.help)
        return None
