"""The locks of dpkg and apt: who holds them, and a bounded wait. The holder is never ended and no lock is ever removed."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from typing import Optional

from nodectl.agent.contract import Failed
from nodectl.agent.system import System

DPKG = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")
LISTS = ("/var/lib/apt/lists/lock",)
# struct flock on 64-bit Linux: type, whence, start, length, pid (with padding).
_FLOCK = "hhqqi4x"
# How often the lock is looked at: a lock that becomes free is taken within a second.
_EVERY = 1.0


def holder(path: str) -> Optional[int]:
    """The process that holds a POSIX lock on ``path``: None when nobody does, 0 when it is outside this PID namespace."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = " (packages are installed by root: use become)" if isinstance(error, PermissionError) else ""
        raise Failed(f"cannot look at the lock {path}: {error.strerror}{hint}") from None
    try:
        answer = fcntl.fcntl(handle, fcntl.F_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    finally:
        os.close(handle)
    kind, _, _, _, pid = struct.unpack(_FLOCK, answer)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)


def command_of(pid: int) -> str:
    """The command line of a process, shortened; "unknown command" when it is gone or not visible."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            text = " ".join(handle.read(4096).replace(b"\0", b" ").decode("utf-8", "replace").split())
    except OSError:
        text = ""
    return text[:120] or "unknown command"


def wait_free(system: System, paths: "tuple[str, ...]", seconds: float) -> None:
    """Wait until nobody holds any of the locks. Raises Failed with the holder's pid and command when the time is up."""
    end = time.monotonic() + seconds
    said = False
    while True:
        held = next(((path, pid) for path, pid in ((p, holder(p)) for p in paths) if pid is not None), None)
        if held is None:
            return
        who = f"process {held[1]} ({command_of(held[1])})" if held[1] else "a process outside this container"
        if time.monotonic() >= end:
            raise Failed(
                f"{held[0]} is held by {who}, still after waiting {seconds:g} s (lock_timeout). It was not disturbed: "
                "wait for it to end (on a first boot this is often unattended-upgrades) and run again, or raise lock_timeout",
                lock=held[0], holder_pid=held[1], holder=command_of(held[1]) if held[1] else "",
            )
        if not said:
            system.progress(f"waiting for {held[0]}, held by {who}")
            said = True
        system.sleep(_EVERY)
