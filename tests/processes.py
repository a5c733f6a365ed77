"""Whether a process is there, and waiting until it is not: what was killed takes a moment to go."""

from __future__ import annotations

import time
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int, patience: float = 8.0) -> bool:
    end = time.monotonic() + patience
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)
