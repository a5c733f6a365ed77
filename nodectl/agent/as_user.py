"""Small Python programs run as another account, in a process of their own: what root can do proves nothing for the user who trains."""

from __future__ import annotations

import os
import pwd
import sys
from typing import List

from nodectl.agent.contract import Failed

# Everything is imported while we are root: the interpreter may lie where the account cannot read.
_BECOME = """\
import contextlib, hashlib, itertools, json, mmap, os, pwd, random, sys, tempfile, threading, time, typing
user = sys.argv[1]
if user:
    entry = pwd.getpwnam(user)
    os.initgroups(user, entry.pw_gid); os.setgid(entry.pw_gid); os.setuid(entry.pw_uid)
sys.argv[1:2] = []
with contextlib.suppress(ImportError, OSError, AttributeError):  # not on every small Python
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: an agent that is killed takes us, and what we become, with it
os.umask(0o077)
"""


def command(user: str, program: str, arguments: List[str]) -> List[str]:
    """argv that runs ``program`` as ``user`` ("" = as we are). Raises Failed for an unknown user, or one that we cannot become."""
    if user:
        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            raise Failed(f"there is no user {user} on this node") from None
        if os.geteuid() == entry.pw_uid:
            user = ""
        elif os.geteuid() != 0:
            raise Failed(f"only root can try as {user}: use become")
    return [sys.executable or "python3", "-I", "-S", "-c", _BECOME + program, user, *arguments]


def last_line(text: str, rc: int) -> str:
    """The sentence of a Python traceback, or the exit code."""
    return (text.strip().splitlines() or [f"exit code {rc}"])[-1]
