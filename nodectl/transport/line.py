"""A process on a node, as three byte streams. Over SSH or on this machine: what is above cannot tell."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Chunk(NamedTuple):
    """What arrived. ``ended``: both streams are at their end and nothing is left in them."""

    out: bytes = b""
    err: bytes = b""
    ended: bool = False


class Line(Protocol):
    def read(self, timeout: float) -> Chunk:
        """Whatever arrived on both streams, after at most ``timeout`` seconds; an empty Chunk when nothing did."""

    def write(self, data: bytes, timeout: float) -> None:
        """All of ``data``. Raises TimeoutError when the peer takes nothing for ``timeout`` seconds, OSError on a broken line."""

    def status(self, timeout: float) -> int | None:
        """The exit status of a process that ended; None when it is not known (yet)."""

    def hang_up(self) -> None:
        """End of input for the process: the agent then stops whatever it runs and exits."""

    def discard(self) -> None:
        """This line alone ends; what shares its connection goes on."""

    def abort(self) -> None:
        """Drop the line at once and for all who share it. Never blocks."""


class Tail:
    """The last ``size`` bytes of a stream, for error messages: 4 KiB is about 50 lines, more than a person reads."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._kept = b""

    def add(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-self._size :]

    def text(self) -> str:
        """Printable text, control characters and bytes that are not UTF-8 replaced: it may end up on a terminal."""
        decoded = self._kept.decode("utf-8", "replace")
        return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in decoded.replace("\r\n", "\n")).strip()
