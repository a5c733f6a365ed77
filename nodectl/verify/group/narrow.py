"""Pairs are fine and the whole group is slow: which part of it? Halves of what is slow, level by level. Pure: who measures is handed in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Group = tuple[str, ...]
# Groups of one level have no node in common, so they are measured at once. True where the group is slow.
Slow = Callable[[Sequence[Group]], Sequence[bool]]
# Two nodes are a pair, and pairs were measured.
LEAST = 3


@dataclass(frozen=True)
class Narrowed:
    """``groups``: the smallest groups that are slow together although their halves are not. ``levels`` is how often was measured."""

    groups: tuple[Group, ...]
    levels: int


def narrow(hosts: Sequence[str], slow: Slow) -> Narrowed:
    """``hosts`` are slow together, in the inventory's order: neighbours share a switch. At most log2(n) levels, rounded up."""
    groups: list[Group] = [tuple(hosts)]
    found: list[Group] = []
    levels = 0
    while groups:
        halves = [(group, half) for group in groups for half in _halves(group) if len(half) >= LEAST]
        verdicts = list(slow([half for _, half in halves])) if halves else []
        levels += bool(halves)
        parts = [(group, half) for (group, half), bad in zip(halves, verdicts, strict=True) if bad]
        found += [group for group in groups if not any(parent == group for parent, _ in parts)]
        groups = [half for _, half in parts]
    return Narrowed(tuple(found), levels)


def most_levels(count: int) -> int:
    """How often ``count`` nodes are measured at most."""
    return math.ceil(math.log2(count)) if count >= 2 * LEAST else 0


def _halves(group: Group) -> tuple[Group, Group]:
    middle = len(group) // 2
    return group[:middle], group[middle:]


def narrowed_text(hosts: Sequence[str], narrowed: Narrowed) -> str:
    """A sentence on where the slow part lies."""
    if narrowed.groups == (tuple(hosts),) and narrowed.levels:
        half = len(hosts) // 2
        joined = f"{hosts[0]} to {hosts[half - 1]} with {hosts[half]} to {hosts[-1]}"
        return f"each half of the nodes is fine alone: what joins {joined} (spine, uplinks) is too narrow"
    spans = " and ".join(f"{group[0]} to {group[-1]} ({len(group)} nodes)" for group in narrowed.groups)
    return f"slow together, though their pairs are fine, are {spans}: what those share (leaf switch, its buffers or uplink)"
