"""Bandwidth of collectives as nccl-tests defines it (doc/PERFORMANCE.md and the factors in src/*.cu)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple


class Undefined(ValueError):
    """The figure has no meaning for these numbers (one rank, no time); the text says why."""


class Bandwidth(NamedTuple):
    """Both in B/s."""

    algbw: float
    busbw: float


def _one(_n: int) -> float:
    return 1.0


def _share(n: int) -> float:
    return (n - 1) / n


def _twice(n: int) -> float:
    return 2 * (n - 1) / n


# What S in algbw = S / t counts: "rank" = bytes of one rank's buffer, "total" = that times n (nccl-tests sizes gather-like
# collectives by the sum over all ranks).
_FACTOR: Mapping[str, Callable[[int], float]] = MappingProxyType({
    "all_reduce": _twice, "reduce_scatter": _share, "all_gather": _share, "alltoall": _share, "alltoallv": _share,
    "gather": _share, "scatter": _share, "broadcast": _one, "reduce": _one, "sendrecv": _one, "hypercube": _one,
})
_TOTAL = frozenset(["reduce_scatter", "all_gather", "gather", "scatter"])


def collectives() -> list[str]:
    return sorted(_FACTOR)


def message_bytes(collective: str, piece: int, ranks: int) -> int:
    """S of nccl-tests. ``piece`` is what one rank holds: for all_gather and the like its part, for the others its whole buffer."""
    return piece * ranks if collective in _TOTAL else piece


def bandwidth(collective: str, size: int, ranks: int, seconds: float) -> Bandwidth:
    """algbw and busbw of one operation over ``size`` bytes (S of nccl-tests). Raises Undefined, KeyError for an unknown collective."""
    factor = _FACTOR[collective]
    if ranks < 2:
        raise Undefined(f"busbw of {collective} is not defined for {ranks} rank: nothing travels")
    if not (0 < seconds < math.inf and 0 < size < math.inf):
        raise Undefined(f"busbw of {collective} needs a size and a time above zero, not {size} B in {seconds} s")
    algbw = size / seconds
    return Bandwidth(algbw, algbw * factor(ranks))


def network_bound(nic_total: float, gpus: int, nodes: int) -> float:
    """Largest busbw (B/s) that NICs of ``nic_total`` B/s per node can carry over ``nodes`` nodes of ``gpus`` ranks.

    A hierarchical all-reduce sums inside the node first, so the wire carries (nodes-1)/(gpus*nodes-1) of what busbw counts.
    A plain ring is bound by ``nic_total`` itself; this is the larger of both, hence never too strict.
    """
    if nodes < 2:
        raise Undefined("one node does not use its network")
    return nic_total * (gpus * nodes - 1) / (gpus * (nodes - 1))


def median(values: Sequence[float]) -> float:
    """The middle one; of an even number the upper middle, so that half a fleet being slow does not set the standard. Raises Undefined."""
    if not values:
        raise Undefined("no values to take the median of")
    return sorted(values)[len(values) // 2]
