"""Connections without a network: every host is this machine, through the agent's own runner, unless a test says otherwise."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from nodectl.agent.runner import run_step
from nodectl.agent.system import System
from nodectl.transport.channel import BecomeTarget, Lost, Ran, Target, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step

# What a test may do with a step: answer it, raise Lost or Unreachable, or return None to have it run for real.
Script = Callable[[str, Step], Outcome | None]


class FakePending:
    def __init__(self, answer: Callable[[], Outcome]) -> None:
        self._answer = answer

    def result(self, timeout: float | None = None) -> Outcome:
        return self._answer()

    def cancel(self) -> None:
        return None


@dataclass
class FakeChannel:
    owner: FakeConnections
    target: Target
    become: BecomeTarget | None
    facts: Mapping[str, object] = field(default_factory=dict)

    def submit(self, step: Step, blobs: Mapping[str, BinaryIO] | None = None) -> FakePending:
        self.owner.note(self, step)
        return FakePending(lambda: self.owner.answer(self.target.host, step, blobs))

    def close(self) -> None:
        return None


class FakeConnections:
    """``down``: hosts whose port is closed. ``dies``: after so many steps the line to a host breaks."""

    def __init__(self, down: list[str] | None = None, dies: dict[str, int] | None = None, script: Script | None = None) -> None:
        self.steps: list[tuple[str, Step]] = []
        self.becomes: list[tuple[str, str]] = []
        self.fresh_logins: list[str] = []
        self.closed = False
        self._down = set(down or ())
        self._dies = dict(dies or {})
        self._script = script
        self._lock = threading.Lock()
        self._running = 0
        self.most_running = 0

    def channel(self, target: Target, become: BecomeTarget | None = None) -> FakeChannel:
        if target.host in self._down:
            raise Unreachable("refused", f"{target.address}:{target.port} refused the connection", "is sshd running there?")
        return FakeChannel(self, target, become)

    def fresh(self, target: Target, become: object = None) -> FakeChannel:
        self.fresh_logins.append(target.host)
        return self.channel(target)

    def raw(self, target: Target, become: BecomeTarget | None, command: str, executable: str, seconds: float) -> Ran:
        """Every line prints itself."""
        return Ran(0, command.encode(), b"")

    def reset(self, host: str) -> None:
        return None

    def close(self) -> None:
        self.closed = True

    def note(self, channel: FakeChannel, step: Step) -> None:
        host = channel.target.host
        with self._lock:
            self.steps.append((host, step))
            self.becomes.append((host, channel.become.user if channel.become else ""))
            if host in self._dies:
                self._dies[host] -= 1
                if self._dies[host] < 0:
                    raise Lost("no byte for 20 s", "the node may be frozen")

    def answer(self, host: str, step: Step, blobs: Mapping[str, BinaryIO] | None) -> Outcome:
        with self._lock:
            self._running += 1
            self.most_running = max(self.most_running, self._running)
        try:
            scripted = self._script(host, step) if self._script else None
            arrived = {name: io.BytesIO(blob.read()) for name, blob in (blobs or {}).items()}
            return scripted or run_step(System(step.environment, arrived), step)
        finally:
            with self._lock:
                self._running -= 1
