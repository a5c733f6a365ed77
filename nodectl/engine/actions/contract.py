"""What a controller-side half of a module is: a SPEC of its parameters, and ``run(context, args) -> Outcome``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from nodectl.lang.task import Task
from nodectl.lang.template import Templar
from nodectl.lang.vault import NO_PASSWORDS, Vault
from nodectl.transport.channel import BecomeTarget, Channel, Ran, Target
from nodectl.wire.outcome import Outcome

Args = dict[str, Any]


class ActionFailed(Exception):
    """The controller's half says no. The text is shown to a person; ``values`` become return values of the failed task."""

    def __init__(self, msg: str, **values: Any) -> None:
        super().__init__(msg)
        self.msg = msg
        self.values = values


class Node(Protocol):
    """The node that the task works on (the one delegated to, where it is)."""

    @property
    def target(self) -> Target:
        """How it is reached."""

    def step(self, module: str, args: Mapping[str, Any], blobs: Mapping[str, BinaryIO] | None = None) -> Outcome:
        """One module on the node, with the task's become, environment, check mode and timeout. Raises Unreachable or Lost."""

    @property
    def become(self) -> BecomeTarget | None:
        """Whom the task becomes there; None for nobody."""

    def raw(self, command: str, executable: str) -> Ran:
        """One line by a shell of the node, without an agent. Raises Unreachable or Lost."""

    def login(self) -> dict[str, str]:
        """The login itself: user, and SSH_CONNECTION where there is one. Raises Unreachable or Lost."""

    def fresh(self) -> Channel:
        """A new login over a new connection, and the task's become in it. Raises Unreachable."""

    def reset(self) -> None:
        """Close the channels: the next step connects anew."""


# (host, groups, parents of the groups, variables) into the inventory of the run; True where something is new.
Grow = Callable[[str, Sequence[str], Sequence[str], Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Context:
    """One task on one host. ``variables`` hold templates; ``given`` names the parameters that the task set."""

    host: str
    task: Task
    variables: Mapping[str, Any]
    templar: Templar
    node: Node
    check: bool
    diff: bool
    playbook_dir: Path
    load_vars: Callable[[Path], dict[str, Any]]
    wait: Callable[[float], None]
    grow: Grow
    given: frozenset[str] = frozenset()
    vault: Vault = NO_PASSWORDS
