"""What a check of one node is: a function from a session, its step and what is known of the node to a reading. The files *_checks.py hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nodectl.verify.judging.reading import Reading
from nodectl.verify.members import NodeFacts
from nodectl.verify.session import Session
from nodectl.verify.suite_load import SuiteStep


@dataclass(frozen=True)
class Peers:
    """Addresses of the other nodes, as their inventory entries name them."""

    addresses: tuple[str, ...]


Check = Callable[[Session, SuiteStep, NodeFacts, Peers], Reading]
