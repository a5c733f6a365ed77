"""A folder of a step's own, which nobody else can read, and which is gone afterwards, whatever happens.

It is locked while its step lives. A step that was killed leaves one without a lock: whoever makes the next one takes it away.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from typing import Iterator, Optional, Tuple

PREFIX = "nodectl-step-"
# Another agent that tidies up may hold the lock of a new folder for a moment; that it does so every time is a fault of ours.
TRIES = 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def own_folder(below: str = "") -> Iterator[str]:
    """A new folder of mode 0700 in ``below``, or where the system keeps temporary files. Raises OSError where none can be made."""
    below = below or tempfile.gettempdir()
    remove_leftovers(below)
    path, handle = _made(below)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def _made(below: str) -> Tuple[str, int]:
    for _ in range(TRIES):
        path = tempfile.mkdtemp(prefix=PREFIX, dir=below)
        handle = _locked(path)
        if handle is not None:
            return path, handle
    raise OSError(errno.EBUSY, f"{TRIES} new folders in {below} were taken away at once")


def _locked(path: str) -> Optional[int]:
    """None where another agent took the folder for abandoned before the lock was there."""
    try:
        handle = os.open(path, _FOLDER)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gone = not os.path.lexists(path)
    except OSError as error:
        gone = error.errno == errno.EWOULDBLOCK  # else a filesystem without locks: nobody can take it away there either
    if not gone:
        return handle
    os.close(handle)
    return None


def remove_leftovers(below: str) -> None:
    """Folders of steps that were killed: ours, or anybody's where we are root. What cannot be removed stays."""
    with contextlib.suppress(OSError), os.scandir(below) as found:
        left = [one.path for one in found if one.name.startswith(PREFIX) and os.geteuid() in (0, one.stat(follow_symlinks=False).st_uid)]
        for path in left:
            _remove(path)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(path, _FOLDER)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(handle)
