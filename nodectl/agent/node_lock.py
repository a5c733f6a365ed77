"""One at a time on this node, whoever the controllers are: a lock that ends with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import Iterator

from nodectl.agent.contract import Failed
from nodectl.agent.system import System

# In memory: gone with a reboot, as every holder is.
FOLDER = "/run"
# How often the lock is asked for: it is taken within half a second of becoming free.
_EVERY = 0.5


@contextlib.contextmanager
def alone(system: System, name: str, seconds: float) -> Iterator[None]:
    """Nobody else is inside. Raises Failed, naming the holder, after waiting ``seconds``."""
    handle = _open(name, os.O_RDWR | os.O_CREAT)
    try:
        _take(system, handle, name, fcntl.LOCK_EX, seconds)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def undisturbed(system: System, name: str, seconds: float) -> Iterator[None]:
    """Nobody is in ``alone`` of that name; others may look at the same time. Makes no file: who never wrote has nothing to fear."""
    try:
        handle = os.open(_path(name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        _take(system, handle, name, fcntl.LOCK_SH, seconds)
        yield
    finally:
        os.close(handle)


def _path(name: str) -> str:
    return os.path.join(FOLDER, f"nodectl-{name}.lock")


def _open(name: str, flags: int) -> int:
    try:
        return os.open(_path(name), flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Failed(f"cannot lock {_path(name)}: {error.strerror}: without it another run could do the same at the same time") from None


def _take(system: System, handle: int, name: str, kind: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    said = False
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
        who = f"another run of nodectl (process {holder})" if holder.isdigit() else "another run of nodectl"
        if time.monotonic() >= end:
            raise Failed(f"{name} of this node: {who} is at it, still after waiting {seconds:g} s; two at a time would destroy. Let it end, and run again")
        if not said:
            system.progress(f"{name}: waiting for {who}, which is at it on this node")
            said = True
        system.sleep(_EVERY)
