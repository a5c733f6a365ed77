"""The line to one agent: what the engine and the verification see of the transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, NamedTuple, Protocol

from nodectl.wire.outcome import Outcome
from nodectl.wire.secret import Secret
from nodectl.wire.step import Step

# config: an SSH option or ~/.ssh/config that nodectl cannot follow; everything else is named after what failed.
Why = Literal["refused", "timeout", "dns", "auth", "host_key", "banner", "python", "sudo", "hop", "protocol", "closed", "config"]


class Unreachable(Exception):
    """Nothing was done on the node: the line never stood."""

    def __init__(self, why: Why, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.why: Why = why
        self.reason = reason
        self.hint = hint


class Lost(Exception):
    """The line broke in the middle of a step: what it did is not known."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class AgentCrash(Lost):
    """The agent itself failed: our bug, with its traceback as hint. What the step did is not known, as with every Lost."""


@dataclass(frozen=True)
class BecomeTarget:
    user: str = "root"
    method: str = "sudo"
    password: Secret | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """How to get to one node. ``options`` are OpenSSH options from ansible_ssh_common_args (-o Key=Value), keys in lower case.

    ``user`` "" and ``port`` 22 (or 0) mean that nothing was said: ~/.ssh/config may then say it. With ``key_file`` no other key is offered.
    """

    host: str
    address: str
    port: int = 22
    user: str = ""
    connection: Literal["ssh", "local"] = "ssh"
    key_file: str = ""
    password: Secret | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    python: str = "python3"


@dataclass(frozen=True)
class Limits:
    """Bounds of every wait, in seconds.

    connect: TCP plus handshake plus login; a healthy sshd takes 0.1 to 4 s, a loaded one behind a bastion more.
    start: from the shell's start to the agent's hello. silence: no byte for so long = lost; the agent beats every 2 s.
    """

    connect: float = 20.0
    start: float = 30.0
    silence: float = 20.0


class Pending(Protocol):
    """A step on its way."""

    def result(self, timeout: float | None = None) -> Outcome:
        """The outcome. Raises Lost when the line broke; TimeoutError when ``timeout`` seconds passed (the step goes on)."""

    def cancel(self) -> None:
        """Ask the agent to end the step's process group; ``result`` then says failed."""


class Channel(Protocol):
    """One agent on one node as one user. Steps are run in the order of ``submit``; any thread may submit."""

    @property
    def facts(self) -> Mapping[str, object]:
        """From the agent's hello: user, uid, pid, python (version), hostname."""

    def submit(self, step: Step, blobs: Mapping[str, BinaryIO] | None = None) -> Pending:
        """Send a step, its blobs before it (name in ``step.blobs`` to readable binary file). Raises Lost on a broken line."""

    def close(self) -> None:
        """End the agent; it stops whatever it runs. Idempotent."""


class Ran(NamedTuple):
    """A command that ended. ``dropped``: bytes of both streams beyond what is kept. ``rc`` is -1 where the server did not say it."""

    rc: int
    stdout: bytes
    stderr: bytes
    dropped: int = 0


class Connections(Protocol):
    """All channels of a run. One per (host, user); handshakes are limited per address."""

    def channel(self, target: Target, become: BecomeTarget | None = None) -> Channel:
        """The open channel, or a new one. Raises Unreachable within Limits.connect + Limits.start, or Lost when this host was lost before."""

    def fresh(self, target: Target, become: BecomeTarget | None = None) -> Channel:
        """A new login over a new TCP connection, not shared: proves that a person could still get in. The caller closes it."""

    def raw(self, target: Target, become: BecomeTarget | None, command: str, executable: str, seconds: float) -> Ran:
        """One line by a shell of the node (``executable``, else /bin/sh), without an agent. Raises Unreachable or Lost."""

    def reset(self, host: str) -> None:
        """Close the channels of one host; the next ``channel`` connects anew."""

    def close(self) -> None:
        """Close everything. Idempotent."""
