"""The kinds of steps that a suite may hold, as data: what each takes, and what has to stand before it.

A new kind is one line here (what a suite has to say), one function in a table (what it does), and a line in docs/verification.md:
`CHECKS` of node_checks.py for what asks one node (all nodes at once), `GROUPS` of group_steps.py for what needs several at a time,
`COMPARE` of fleet_checks.py for what is only seen over all nodes once CHECKS went through them. A kind whose function asks more
than one question of `deadline` seconds says how many in bounds.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Kind:
    """``options`` by name with their base unit, ``sized`` names of lists of sizes (B), ``words`` names of lists with the words allowed.

    All of them must be given in a suite, so that its file says everything it does. ``after`` are kinds that find out what this one needs.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    sized: tuple[str, ...] = ()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: frozenset[str] = frozenset()


_RANKS: Mapping[str, str] = MappingProxyType({"iterations": "count", "warmup": "count", "timeout": "s"})
# Which address and interpreter a group uses; whether the folder to be measured is a mount.
_GROUP, _MOUNTS = frozenset(["route", "torch"]), frozenset(["mounts"])

KINDS: Mapping[str, Kind] = MappingProxyType({
    "login": Kind(),
    "fabric": Kind(),
    "route": Kind(),
    "mounts": Kind(),
    "torch": Kind(),
    "clock": Kind({"max_offset": "s"}),
    "node_all_reduce": Kind(_RANKS, ("gpu_sizes",), after=frozenset(["torch"])),
    "pairs": Kind({**_RANKS, "rounds": "count"}, ("sizes", "gpu_sizes"), after=_GROUP),
    "all_reduce": Kind(_RANKS, ("sizes", "gpu_sizes"), after=_GROUP),
    "scratch": Kind({"size": "B", "gpu_size": "B", "runtime": "s"}, after=_MOUNTS),
    "phases": Kind({"model_size": "B", "checkpoint_size": "B", "batches": "count", "batch_size": "B"}, after=_MOUNTS),
})
# Options that may be 0: no warm-up is a choice.
MAY_BE_ZERO = frozenset(["warmup"])
