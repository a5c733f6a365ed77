"""Turns of the tests that run side by side in several workers: a test that measures has the machine to itself, the others share it.

A room that many may be in, or one alone; before it a gate, at which everybody waits for the room one after another, so that one who
wants it alone is not passed by for ever. Both are locks of files: they are free again when their worker is gone, however it went.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(folder: Path, alone: bool) -> Iterator[None]:
    """The caller's turn among all that use ``folder``. Waits without a bound of its own: each test that it waits for has one."""
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "gate", fcntl.LOCK_EX) as gate, _locked(folder / "room", fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[int]:
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, kind)
        yield held
    finally:
        os.close(held)
