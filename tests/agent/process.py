"""The packed agent in a process of its own, as the transport starts it, and both ends of its line."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from nodectl.transport.bundle import LOADER, pack, sources
from nodectl.wire.frame import Decoder, Frame, encode
from nodectl.wire.outcome import Outcome, outcome_from_json

MARKER = "0123456789abcdef"
# An agent answers a ping in milliseconds; on a machine that builds something else meanwhile, in seconds.
PATIENCE = 20.0


class AgentProcess:
    """Context manager. ``say`` sends a frame, ``step`` a step, ``until`` reads frames until one fits."""

    def __init__(self, python: str, replaced: Mapping[str, str] | None = None) -> None:
        """``replaced``: module name to source, in place of what the tree has: to see what the agent does with a broken module."""
        command = [python, "-I", "-S", "-c", LOADER, MARKER]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        self.decoder = Decoder()
        self.frames: list[Frame] = []
        assert self.process.stdin
        self.process.stdin.write(pack({**sources(), **(replaced or {})}))
        seen = b""
        while len(seen) < len(MARKER):
            data = self._bytes(len(MARKER) - len(seen))
            assert data, f"{python} ended before the marker: {self.errors()}"
            seen += data
        assert seen.decode() == MARKER[::-1]

    def __enter__(self) -> AgentProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()

    def _bytes(self, count: int, patience: float = PATIENCE) -> bytes:
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        assert ready, "the agent says nothing"
        return os.read(self.process.stdout.fileno(), count)

    def say(self, head: dict[str, Any], payload: bytes = b"") -> None:
        self.raw(encode(head, payload))

    def raw(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)

    def step(self, number: int, module: str, args: dict[str, Any], **more: Any) -> None:
        self.say({"t": "step", "step": {"id": number, "module": module, "args": args, **more}})

    def until(self, kind: str, **wanted: Any) -> Frame:
        """The next frame of that type with these header fields; beats and others before it are dropped."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            while self.frames:
                frame = self.frames.pop(0)
                if frame.type == kind and all(frame.head.get(key) == value for key, value in wanted.items()):
                    return frame
            data = self._bytes(65536)
            assert data, f"the agent's output ended before {kind} {wanted}: {self.errors()}"
            self.frames += self.decoder.feed(data)
        raise AssertionError(f"no {kind} {wanted} within {PATIENCE} s")

    def outcome(self, number: int) -> Outcome:
        return outcome_from_json(self.until("outcome", id=number).head["outcome"])

    def errors(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read().decode()

    def end_input(self) -> int:
        """Close the agent's stdin; its exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(PATIENCE)
