"""From a shell that was just started to an agent that said hello."""

from __future__ import annotations

import re
import secrets
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nodectl.transport.become import Sudo
from nodectl.transport.bundle import LOADER
from nodectl.transport.channel import BecomeTarget, Unreachable
from nodectl.transport.line import Chunk, Line, Tail
from nodectl.wire.frame import BadFrame, Decoder, Frame

# What a login may print before the agent speaks: the longest legal banner seen is 8 KiB; a shell that prints for ever
# must not fill our memory.
MAX_NOISE = 64 * 1024

_SLOW_SUDO = "a slow PAM module, an unreachable directory server, or start files of the login shell (.bashrc, .profile) that wait for something?"

# How long we wait for the exit status of a process that closed its streams.
STATUS_WAIT = 2.0


# The loader's own words with a version behind them (a shell that echoes commands prints the words without), or Python 2's.
_TOO_OLD = re.compile(r"Python 3\.8 or later is needed, this is \d|Unknown option: -I")


@dataclass(frozen=True)
class Order:
    """What is to be run: a marker nobody else prints, the interpreter, and the user to become."""

    python: str = "python3"
    sudo: Sudo | None = None
    marker: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def argv(self) -> list[str]:
        # -I -S: no environment, no user site, no site-packages: what is installed on the node cannot change the agent.
        command = [self.python, "-I", "-S", "-c", LOADER, self.marker]
        return self.sudo.argv(command) if self.sudo else command

    @property
    def command(self) -> str:
        return shlex.join(self.argv)

    @property
    def sign(self) -> bytes:
        """What the loader prints: the marker backwards."""
        return self.marker[::-1].encode()


def order(python: str, become: BecomeTarget | None) -> Order:
    return Order(python, Sudo(become) if become else None)


@dataclass
class Started:
    """The agent's hello, and what the decoder already holds beyond it."""

    facts: dict[str, Any]
    decoder: Decoder
    frames: Sequence[Frame]


class _Start:
    """One start, bounded by ``deadline`` (time.monotonic())."""

    def __init__(self, line: Line, order: Order, who: str, deadline: float) -> None:
        self._line = line
        self._order = order
        self._who = who
        self._deadline = deadline
        self._err = Tail()
        self._noise = b""

    def run(self, bundle: bytes) -> Started:
        rest = self._await_marker()
        self._line.write(bundle, self._left())
        decoder = Decoder()
        frames = list(decoder.feed(rest))
        while not frames:
            chunk = self._read("the agent did not say hello")
            frames = list(decoder.feed(chunk.out))
            if chunk.ended and not frames:
                raise self._ended("the agent ended before it said hello")
        if frames[0].type == "crash":
            raise Unreachable("protocol", f"{self._who}: the agent crashed while it started, a bug in nodectl", str(frames[0].head.get("traceback", "")))
        if frames[0].type != "hello":
            raise BadFrame(f"the agent began with '{frames[0].type}' instead of 'hello'")
        return Started({k: v for k, v in frames[0].head.items() if k != "t"}, decoder, frames[1:])

    def _await_marker(self) -> bytes:
        """What came after the marker. Everything before it is noise of start files and is dropped."""
        while True:
            chunk = self._read("the login shell did not start the agent")
            if chunk.err and self._order.sudo and self._order.sudo.asked(chunk.err):
                self._answer()
            self._noise += chunk.out
            before, found, rest = self._noise.partition(self._order.sign)
            if found:
                return rest
            if len(before) > MAX_NOISE:
                reason = f"{self._who}: the login shell printed more than 64 KiB and did not start the agent"
                raise Unreachable("protocol", reason, f"it began with: {_excerpt(before)}")
            if chunk.ended:
                raise self._ended("the login shell ended without starting the agent")

    def _answer(self) -> None:
        sudo = self._order.sudo
        if sudo and sudo.become.password:
            self._line.write(sudo.become.password.reveal().encode() + b"\n", self._left())

    def _read(self, late: str) -> Chunk:
        chunk = self._line.read(self._left(late))
        self._err.add(chunk.err)
        return chunk

    def _left(self, late: str = "the agent's sources could not be sent") -> float:
        left = self._deadline - time.monotonic()
        if left > 0:
            return left
        said = self._said()
        printed = f"it printed: {said}" if said else ""
        if self._order.sudo and not self._noise:
            raise Unreachable("sudo", f"{self._who}: sudo did not answer in time", printed or _SLOW_SUDO)
        raise Unreachable("timeout", f"{self._who}: {late} in time", printed or "do the login shell's start files (.bashrc, .profile) wait for something?")

    def _said(self) -> str:
        text = self._err.text() or _excerpt(self._noise)
        return text.replace(self._order.sudo.prompt, "").strip() if self._order.sudo else text

    def _ended(self, reason: str) -> Unreachable:
        status = self._line.status(STATUS_WAIT)
        said = self._said()
        python = self._order.python
        # sh says it by the exit status, tcsh and sudo by their words only.
        if f"{python}: command not found" in said.lower() or (status in (126, 127) and "sudo" not in said):
            reason = f"{self._who}: there is no interpreter '{python}' ({said or f'exit status {status}'})"
            return Unreachable("python", reason, "install python3, or set ansible_python_interpreter to its path")
        if _TOO_OLD.search(said):
            return Unreachable("python", f"{self._who}: '{python}' is too old ({said})", "set ansible_python_interpreter to a Python 3.8 or later")
        refused = self._order.sudo.refused(said) if self._order.sudo else None
        silent = f"is '{python}' a Python 3.8 or later, and do the login shell's start files (.bashrc, .profile) end in peace?"
        return refused or Unreachable("closed", f"{self._who}: {reason}, exit status {status}", f"it printed: {said}" if said else silent)


def start(line: Line, order: Order, bundle: bytes, who: str, seconds: float) -> Started:
    """Start the agent over ``line`` within ``seconds``. Raises Unreachable with the cause; nothing was done on the node then."""
    deadline = time.monotonic() + seconds
    try:
        return _Start(line, order, who, deadline).run(bundle)
    except Unreachable as error:
        raise error if error.reason.startswith(who) else Unreachable(error.why, f"{who}: {error.reason}", error.hint) from None
    except BadFrame as error:
        raise Unreachable("protocol", f"{who}: the agent's first bytes are not a frame: {error}", "does something else write to its standard output?") from None
    except (OSError, EOFError) as error:
        raise Unreachable("closed", f"{who}: the line broke while the agent was starting: {str(error) or type(error).__name__}") from None


def _excerpt(noise: bytes) -> str:
    tail = Tail(200)
    tail.add(noise[:200])
    return tail.text()
