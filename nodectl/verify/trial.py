"""One verification under way: its nodes with their sessions, what was found out about them, and the ledger of verdicts. What group steps work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from nodectl.transport.channel import BecomeTarget, Connections, Target
from nodectl.verify.group.gang import Member
from nodectl.verify.group.network_checks import Fleet
from nodectl.verify.ledger import Ledger
from nodectl.verify.members import NodeFacts, fleet_of, members_of
from nodectl.verify.session import Session

# Nodes asked at the same time. A question is one waiting thread here and one process there; 64 threads are no load.
FORKS = 64


@dataclass(frozen=True)
class Node:
    """One node to verify. ``variables`` are merged and templated; ``become`` is how its root is reached, None where it is not."""

    host: str
    target: Target
    variables: Mapping[str, Any]
    become: BecomeTarget | None = None


@dataclass
class Trial:
    """``facts`` grow while node checks run. ``best_pairs`` (B/s by host) are what step `pairs` leaves for the group after it."""

    nodes: Mapping[str, Node]
    sessions: Mapping[str, Session]
    facts: Mapping[str, NodeFacts]
    ledger: Ledger
    best_pairs: dict[str, float] = field(default_factory=dict)

    def addresses(self, host: str) -> tuple[str, ...]:
        """Where the other nodes are reached, nearest in the inventory first."""
        return tuple(str(node.variables.get("fabric_address") or node.target.address) for name, node in self.nodes.items() if name != host)

    def members(self, hosts: Sequence[str]) -> list[Member]:
        return members_of([(self.sessions[host], self.facts[host]) for host in hosts])

    def fleet(self, hosts: Sequence[str]) -> Fleet:
        return fleet_of([(self.sessions[host], self.facts[host]) for host in hosts], self.ledger.terms.floors)


def trial_of(nodes: Sequence[Node], connections: Connections, ledger: Ledger) -> Trial:
    return Trial(
        {node.host: node for node in nodes},
        {node.host: Session(node.host, node.target, node.variables, connections, node.become) for node in nodes},
        {node.host: NodeFacts() for node in nodes},
        ledger,
    )


def forks(jobs: int, name: str) -> ThreadPoolExecutor:
    """A pool for ``jobs`` waits at once."""
    return ThreadPoolExecutor(min(FORKS, jobs), thread_name_prefix=name)
