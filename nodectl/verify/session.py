"""One node during verification: its variables, its channel, and every question with a deadline."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import Any, Literal

from nodectl.transport.channel import BecomeTarget, Channel, Connections, Lost, Pending, Target, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step

# The agent ends a step at its own deadline and needs its grace time (2 x 2 s) for that; what comes later never comes.
GRACE = 10.0
# What a storage probe may take beyond that to remove its folder from a filesystem that hangs (the agent's own limit is 60 s).
CLEANUP = 65.0


class Gone(Exception):
    """The node does not answer any more (lost), or never did (unreachable): nothing that it was asked is known."""

    def __init__(self, kind: Literal["lost", "unreachable"], reason: str, hint: str = "", why: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.hint = hint
        self.why = why


class Session:
    """Asks one node. Every method raises Gone when the node is lost or cannot be reached."""

    def __init__(self, host: str, target: Target, variables: Mapping[str, Any], connections: Connections, become: BecomeTarget | None = None) -> None:
        self.host = host
        self.target = target
        self.variables = variables
        self.become = become
        self._connections = connections
        self._ids = itertools.count(1)
        self._lock = threading.Lock()

    def ask(self, module: str, args: Mapping[str, Any], deadline: float, root: bool = False, cleanup: float = 0.0) -> Outcome:
        """The outcome of one step. ``root`` asks the agent that became another user, where the inventory gives one.

        ``cleanup`` is what the module may need after its deadline before it can answer.
        """
        return self.wait(self.send(module, args, deadline, root), deadline + cleanup)

    def send(self, module: str, args: Mapping[str, Any], deadline: float, root: bool = False) -> Pending:
        """Start a step and come back; ``wait`` has its outcome."""
        try:
            channel = self._connections.channel(self.target, self.become if root else None)
            return channel.submit(self._step(module, args, deadline))
        except Unreachable as error:
            raise Gone("unreachable", error.reason, error.hint, error.why) from None
        except Lost as error:
            raise Gone("lost", error.reason, error.hint) from None

    def wait(self, pending: Pending, deadline: float) -> Outcome:
        """The outcome of a step that was sent with ``deadline``. An agent that does not even end its step counts as lost."""
        try:
            return pending.result(deadline + GRACE)
        except Lost as error:
            raise Gone("lost", error.reason, error.hint) from None
        except TimeoutError:
            self._connections.reset(self.host)
            raise Gone("lost", f"no outcome within {deadline + GRACE:g} s, although the step was to end after {deadline:g} s") from None

    def ask_fresh(self, module: str, args: Mapping[str, Any], deadline: float) -> Outcome:
        """As ``ask``, through a login of its own that is closed afterwards: limits and rules of a new session are seen."""
        try:
            channel = self._connections.fresh(self.target)
        except Unreachable as error:
            raise Gone("unreachable", error.reason, error.hint, error.why) from None
        except Lost as error:
            raise Gone("lost", error.reason, error.hint) from None
        try:
            return self._once(channel, module, args, deadline)
        finally:
            channel.close()

    def _once(self, channel: Channel, module: str, args: Mapping[str, Any], deadline: float) -> Outcome:
        try:
            return channel.submit(self._step(module, args, deadline)).result(deadline + GRACE)
        except Lost as error:
            raise Gone("lost", error.reason, error.hint) from None
        except TimeoutError:
            raise Gone("lost", f"a fresh login gave no outcome within {deadline + GRACE:g} s") from None

    def _step(self, module: str, args: Mapping[str, Any], deadline: float) -> Step:
        with self._lock:
            # Far above what one play can number: the engine counts steps of the same channel from 1.
            return Step(1_000_000 + next(self._ids), module, dict(args), timeout=deadline + GRACE / 2)
