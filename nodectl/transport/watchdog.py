"""Notices that a line went silent. Its own thread: reader and writer may themselves be stuck in the broken connection."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Watched(Protocol):
    def check(self, now: float) -> None:
        """Give up when nothing was heard for too long; ``now`` is time.monotonic()."""

    def excuse(self, seconds: float) -> None:
        """This process itself was stopped for so long: do not count it against the node."""


class Watchdog:
    """One thread for all channels of a run; it starts with the first channel and ends with ``stop``."""

    def __init__(self, silence: float) -> None:
        # A quarter of the bound, and at most a second: a loss is noticed at most that much late.
        self._tick = min(1.0, silence / 4)
        self._lock = threading.Lock()
        self._watched: list[Watched] = []
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, channel: Watched) -> None:
        with self._lock:
            self._watched.append(channel)
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="nodectl-watchdog", daemon=True)
                self._thread.start()

    def forget(self, channel: Watched) -> None:
        with self._lock:
            self._watched = [other for other in self._watched if other is not channel]

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        before = time.monotonic()
        while not self._stopped.wait(self._tick):
            now = time.monotonic()
            with self._lock:
                watched = list(self._watched)
            late = now - before - self._tick
            before = now
            for channel in watched:
                # Later than two ticks: Ctrl-Z, a paused virtual machine. The bytes wait in the kernel, let the readers fetch them.
                channel.excuse(late) if late > 2 * self._tick else channel.check(now)
