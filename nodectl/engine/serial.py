"""`serial`: a play's hosts in batches."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any


def ordered(hosts: Sequence[str], order: str) -> list[str]:
    """`order`: how a play takes its hosts. (`ansible_play_hosts` stays in the order of the inventory, as in Ansible.)"""
    if order == "shuffle":
        return random.sample(hosts, len(hosts))
    found = sorted(hosts) if "sorted" in order else list(hosts)
    return found[::-1] if order.startswith("reverse") else found


def batches(hosts: Sequence[str], serial: Sequence[Any]) -> list[list[str]]:
    """Numbers are hosts, "30%" a share of all, at least one; the last entry repeats. Raises ValueError for anything else."""
    if not serial:
        return [list(hosts)] if hosts else []
    found: list[list[str]] = []
    left = list(hosts)
    while left:
        size = _size(serial[min(len(found), len(serial) - 1)], len(hosts))
        found.append(left[:size])
        left = left[size:]
    return found


def _size(said: Any, total: int) -> int:
    """0 means all, as in Ansible."""
    share = re.fullmatch(r"(\d+(?:\.\d+)?)%", str(said).strip())
    if share:
        return max(1, int(float(share[1]) / 100 * total))
    if not re.fullmatch(r"\d+", str(said).strip()):
        raise ValueError(f"serial wants a number of hosts or a share such as 30%, not {said!r}")
    return int(said) or total
