"""Who listens on a TCP port of this node: from /proc alone, so nothing is started and nothing connects."""

from __future__ import annotations

import contextlib
import os
import re
from typing import List, Optional

from nodectl.agent.facts.platform import text

_LISTEN = "0A"


def holder(port: int, proc: str = "/proc") -> str:
    """ "" when nobody listens on ``port``; else the program and its process id, or that only root may see it."""
    inodes = _listening(port, proc)
    if not inodes:
        return ""
    return next((found for found in (_owner(inode, proc) for inode in inodes) if found), None) or "a process that this account may not look at"


def _listening(port: int, proc: str) -> List[str]:
    """Inodes of the sockets; /proc/net is that of the own network namespace."""
    found = []
    for name in ("tcp", "tcp6"):
        for line in _lines(os.path.join(proc, "net", name)):
            words = line.split()
            if len(words) > 9 and words[3] == _LISTEN and int(words[1].rpartition(":")[2], 16) == port:
                found.append(words[9])
    return found


def _lines(path: str) -> List[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().splitlines()[1:]
    except OSError:
        return []


def _owner(inode: str, proc: str) -> Optional[str]:
    wanted = f"socket:[{inode}]"
    for pid in os.listdir(proc):
        if not pid.isdigit():
            continue
        folder = os.path.join(proc, pid, "fd")
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if os.readlink(os.path.join(folder, name)) == wanted:
                        return f"{re.sub(r'[^ -~]', '?', text(os.path.join(proc, pid, 'comm')))} (process {pid})"
    return None
