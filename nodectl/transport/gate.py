"""How many handshakes may knock at one door at once, and what the others hear when nobody opens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nodectl.transport.channel import Unreachable

# sshd's stock MaxStartups is 10:30:100: from the eleventh on it drops at random. Eight leaves room for people.
SLOTS = 8


class NoAnswer(Unreachable):
    """The address let us wait until the end of the time limit: it will do so to the next one too."""


class Gate:
    """One address. A door at which one handshake got no answer at all is dead for those who queue behind it too:
    without this, a run through a dead bastion would take its timeout once per eight nodes."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots = threading.Semaphore(slots)
        self._lock = threading.Lock()
        self._deaths = 0
        self._last: NoAnswer | None = None

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Waits for a free slot: bounded, because each holder is bounded and a dead door frees all at once. Raises NoAnswer."""
        deaths = self._deaths
        with self._slots:
            self._hear_of_death(deaths)
            try:
                yield
            except NoAnswer as error:
                with self._lock:
                    self._deaths += 1
                    self._last = error
                raise

    def _hear_of_death(self, deaths: int) -> None:
        with self._lock:
            if self._deaths > deaths and self._last:
                raise NoAnswer(self._last.why, self._last.reason, self._last.hint)


class Gates:
    """The gate of each address of a run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gates: dict[tuple[str, int], Gate] = {}

    def at(self, address: str, port: int) -> Gate:
        with self._lock:
            return self._gates.setdefault((address, port), Gate())
