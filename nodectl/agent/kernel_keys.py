"""Kernel parameters as the running kernel has them: where a key is in /proc/sys, and its value."""

from __future__ import annotations

import os
from typing import Optional

PROC = "/proc/sys"


def proc_path(name: str) -> str:
    """net.ipv4.conf.eth0/100.rp_filter → …/eth0.100/rp_filter, as sysctl(8) swaps the two."""
    first = next((char for char in name if char in "./"), ".")
    return os.path.join(PROC, name if first == "/" else name.translate(str.maketrans("./", "/.")))


def squeeze(value: str) -> str:
    """The kernel separates numbers by tabs, people by blanks."""
    return " ".join(value.split())


def read_live(name: str) -> Optional[str]:
    """None when this kernel (or this namespace) has no such key; "" for a key that cannot be read, such as route.flush."""
    try:
        with open(proc_path(name), encoding="utf-8", errors="replace") as handle:
            return squeeze(handle.read())
    except FileNotFoundError:
        return None
    except OSError:
        return ""
