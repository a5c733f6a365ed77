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

from nodectl.verify.group.operations import DTYPES, OPS, REDOPS


@dataclass(frozen=True)
class Kind:
    """``options`` by name with their base unit, ``sized`` names of lists of sizes (B), ``words`` names of lists with the words allowed.

    All of them must be given in a suite, so that its file says everything it does. ``after`` are kinds that find out what this one needs.
    ``checks`` are the names of the checks that it makes, with * where a part is the node's own: a waiver that fits none of them is a typing error.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    sized: tuple[str, ...] = ()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    after: frozenset[str] = frozenset()
    checks: tuple[str, ...] = ()


_RANKS: Mapping[str, str] = MappingProxyType({"iterations": "count", "warmup": "count", "timeout": "s"})
# Which address and interpreter a group uses; whether the folder to be measured is a mount.
_GROUP, _MOUNTS = frozenset(["route", "torch"]), frozenset(["mounts"])
_ALL_REDUCE = ("network.all_reduce", "network.all_reduce.*", "network.transport", "network.slow_rank", "network.retransmits")

# What stands on the bus, and whether this is a guest or a container.
_BUS = frozenset(["pci"])

KINDS: Mapping[str, Kind] = MappingProxyType({
    "login": Kind(checks=("login.fresh", "limits.memlock", "limits.nofile")),
    "fabric": Kind(checks=("fabric.kind", "fabric.hcas", "fabric.same", "network_tier")),
    "route": Kind(checks=("network.route", "network.mtu", "network.path_mtu", "network.address_unique")),
    "pci": Kind(checks=("pci.*",)),
    "host": Kind(after=_BUS, checks=("host.*", "dns.*", "mounts.answer", "packages.same", "limits.*.service", "network.bridges")),
    "hca": Kind(after=_BUS, checks=("hca.*",)),
    "gpu": Kind(after=frozenset(["pci", "hca"]), checks=("gpu.*",)),
    "nvme": Kind(after=_BUS, checks=("nvme.*",)),
    "errors": Kind(after=frozenset(["hca", "route"]), checks=("errors.*",)),
    "mounts": Kind(checks=("scratch.*", "mount:*", "disk_tier", "disk_tier:*")),
    "torch": Kind(checks=("torch.import", "torch.gpus_seen", "torch.gpus")),
    "clock": Kind({"max_offset": "s"}, checks=("clock.offset",)),
    "node_all_reduce": Kind(_RANKS, ("gpu_sizes",), after=frozenset(["torch"]), checks=("node.all_reduce", "node.all_reduce.values")),
    "pairs": Kind({**_RANKS, "rounds": "count"}, ("sizes", "gpu_sizes"), after=_GROUP, checks=("network.pairs", "network.slow_rank", "network.retransmits")),
    "rdma": Kind(
        {"rounds": "count", "size": "B", "iterations": "count", "soft_size": "B", "soft_iterations": "count", "queue_pairs": "count"},
        after=frozenset(["fabric", "route"]), checks=("rdma.write_bw", "rdma.write_bw.*", "rdma.write_lat.*"),
    ),
    "all_reduce": Kind(_RANKS, ("sizes", "gpu_sizes"), after=_GROUP, checks=_ALL_REDUCE),
    "collectives": Kind(
        {**_RANKS, "begin": "B", "end": "B", "gpu_begin": "B", "gpu_end": "B", "factor": "count"},
        words={"ops": OPS, "dtypes": tuple(DTYPES), "redops": REDOPS}, after=_GROUP,
        checks=("network.all_reduce.types", *(f"network.{op}" for op in OPS[1:]), *(f"network.{op}.values" for op in OPS[1:]), "network.traffic",
                "network.hcas_used", "network.gpudirect"),
    ),
    "shared": Kind({"within": "s"}, after=_MOUNTS, checks=("mount.shared:*",)),
    "scratch": Kind({"size": "B", "gpu_size": "B", "runtime": "s", "max_fsync": "s"}, after=_MOUNTS, checks=("disk.scratch.*",)),
    "mount_io": Kind({"size": "B", "runtime": "s", "max_fsync": "s"}, after=_MOUNTS, checks=("mount.*:*",)),
    "phases": Kind(
        {"model_size": "B", "checkpoint_size": "B", "batches": "count", "batch_size": "B"}, after=_MOUNTS, checks=("phase:*", "phase.*:*", "mount.content:*"),
    ),
    "flush": Kind(after=_MOUNTS, checks=("mount.flushed:*",)),
})
# Options that may be 0: no warm-up is a choice.
MAY_BE_ZERO = frozenset(["warmup"])


def check_names() -> list[str]:
    """All names of checks, with * where a part is the node's own. A kind's own name stands for a check that could not be made at all."""
    return [*(name for kind in KINDS.values() for name in kind.checks), *KINDS]
