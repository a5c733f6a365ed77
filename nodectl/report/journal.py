"""The journal of a run: one JSON object per line, appended and never rewritten.

It is the only record; report.json, the closing table and the handoff are made from it. A line is one write(2) on a file opened
with O_APPEND, so a process that dies leaves at most one torn line, the last.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from nodectl.wire.event import Event
from nodectl.wire.secret import MASK, Secret

# Results of modules and facts are a few levels deep; this is far beyond, and far below where Python's own JSON gives up.
DEEPEST = 50
# The first second of the year 10000: no date can be shown from here on.
LAST_SECOND = 253_402_300_800


class BadJournal(ValueError):
    """The file is not a journal of nodectl; the text names file and line."""


class JournalLost(Exception):
    """An event could not be written. Without its record a run must not go on: nobody could say what was done and proven."""


class Journal:
    """Appends events to ``path``; safe to call from any thread. The file is for its owner only: results may hold what a node says.

    A call raises JournalLost when the event cannot be written (disk full, folder gone).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._lock = threading.Lock()
        self._torn = False

    def __call__(self, event: Event) -> None:
        line = _line(event)
        with self._lock:
            if self._torn:  # what is written behind half a line would make the whole file unreadable
                raise JournalLost(f"{self.path} cannot be written: an event before this one was cut off")
            try:
                written = os.write(self._file, line)
                while written < len(line):  # a full disk or a signal can cut a write short
                    written += os.write(self._file, line[written:])
            except OSError as error:
                self._torn = True
                raise JournalLost(f"{self.path} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Idempotent. The data is on the disk afterwards, not only in the kernel."""
        with self._lock:
            if self._file >= 0:
                file, self._file = self._file, -1
                try:
                    os.fsync(file)
                except OSError as error:
                    raise JournalLost(f"{self.path} cannot be written: {error.strerror}") from None
                finally:
                    os.close(file)


def _line(event: Event) -> bytes:
    """JSON that every reader takes: nan and inf, which only Python reads, become texts, and so does what JSON cannot hold."""
    try:
        text = json.dumps(event.to_json(), separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(_plain(event.to_json(), DEEPEST), separators=(",", ":"), allow_nan=False)
    return text.encode("ascii") + b"\n"


def _plain(value: Any, depth: int) -> Any:
    """JSON for the types that ought not to be there; the journal must not be what ends a run."""
    if isinstance(value, Secret):
        return MASK
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float)):
        return value if abs(value) <= sys.float_info.max else "a number too large for JSON" if isinstance(value, int) else str(value)
    if depth and isinstance(value, dict):
        return {str(key): _plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (list, tuple)):
        return [_plain(item, depth - 1) for item in value]
    if depth and isinstance(value, (set, frozenset)):
        return [_plain(item, depth - 1) for item in sorted(value, key=str)]
    return str(value) if depth else "nested too deep for the journal"


def read_journal(path: Path) -> list[Event]:
    """The events of a run, in order. A torn last line is left out: the process died while writing it. Raises BadJournal, OSError."""
    events = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            events.append(_event(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if number == len(lines):
                break
            raise BadJournal(f"{path}:{number}: not an event of nodectl ({error})") from None
    return events


def _event(line: bytes) -> Event:
    data = json.loads(line, parse_constant=str)
    at = float(data.pop("at"))
    if not 0 <= at < LAST_SECOND:
        raise ValueError(f"{at} is not a time")
    return Event(kind=str(data.pop("kind")), at=at, host=str(data.pop("host")), data=data)
