"""What the ranks of a group printed, put together. Pure."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nodectl.verify.formulas import Bandwidth, bandwidth, median

MARK = "NODECTL "


@dataclass(frozen=True)
class SizeResult:
    """One message size that *all* ranks measured. ``seconds`` per iteration: the slowest rank's time; ``wrong`` values in all."""

    bytes: int
    seconds: tuple[float, ...]
    wrong: int

    def bandwidth(self, collective: str, ranks: int, statistic: str) -> Bandwidth:
        """algbw and busbw (B/s) of the ``mean`` or ``median`` iteration. Raises Undefined for one rank."""
        time = median(self.seconds) if statistic == "median" else sum(self.seconds) / len(self.seconds)
        return bandwidth(collective, self.bytes, ranks, time)


@dataclass(frozen=True)
class GroupOutput:
    """``missing`` are ranks that never came to the rendezvous; ``errors`` are texts by rank; ``ready`` are ranks that connected."""

    sizes: tuple[SizeResult, ...] = ()
    missing: frozenset[int] = frozenset()
    errors: Mapping[int, str] = field(default_factory=dict)
    ready: frozenset[int] = frozenset()
    skipped: tuple[str, ...] = ()
    torch: str = ""


def records(stdout: str) -> list[dict[str, Any]]:
    """The marked JSON lines; whatever else a library printed is passed over, and so is a line cut short."""
    found = []
    for line in stdout.splitlines():
        if line.startswith(MARK):
            try:
                value = json.loads(line[len(MARK) :])
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                found.append(value)
    return found


def group_output(outputs: Mapping[str, str], ranks: int) -> GroupOutput:
    """All ranks' lines, by host, as one result. A size counts only when each of ``ranks`` ranks reported it.

    A line that lacks what it promises (no time, a negative count, a rank that is not of this group) is as good as none.
    """
    lines = [record for stdout in outputs.values() for record in records(stdout)]
    by_size: dict[int, dict[int, _Result]] = {}
    for record in lines:
        result = _result(record, ranks)
        if result is not None:
            by_size.setdefault(result.bytes, {})[result.rank] = result
    sizes = tuple(_size(size, list(found.values())) for size, found in sorted(by_size.items()) if len(found) == ranks)
    ready = [record for record in lines if record.get("kind") == "ready"]
    return GroupOutput(
        sizes,
        frozenset(rank for record in lines if record.get("kind") == "missing" for rank in _ranks(record.get("ranks"), ranks)),
        {rank: f"{r.get('phase', '')}: {r.get('error', '')}" for r in lines if r.get("kind") == "error" for rank in _ranks([r.get("rank")], ranks)},
        frozenset(rank for record in ready for rank in _ranks([record.get("rank")], ranks)),
        tuple(sorted({str(record.get("reason", "")) for record in lines if record.get("kind") == "skipped"})),
        next((str(record.get("torch", "")) for record in ready), ""),
    )


class _Result(NamedTuple):
    """One rank's line on one size, all of it plausible."""

    rank: int
    bytes: int
    seconds: tuple[float, ...]
    wrong: int


def _result(record: Mapping[str, Any], ranks: int) -> _Result | None:
    rank, size, times, wrong = (record.get(key) for key in ("rank", "bytes", "seconds", "wrong"))
    if record.get("kind") != "result" or not _ranks([rank], ranks) or not _count(size) or size == 0 or not _count(wrong):
        return None
    if not isinstance(times, list) or not times or not all(_positive(time) for time in times):
        return None
    # A rank that says "not correct" and counts nothing wrong contradicts itself: the worse of both is believed.
    return _Result(int(rank or 0), int(size or 0), tuple(map(float, times)), max(int(wrong or 0), 0 if record.get("correct", True) is True else 1))


def _ranks(found: object, ranks: int) -> list[int]:
    return [rank for rank in found if _count(rank) and rank < ranks] if isinstance(found, list) else []


def _count(value: object) -> bool:
    return type(value) is int and value >= 0


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def _size(size: int, found: list[_Result]) -> SizeResult:
    iterations = zip(*(result.seconds for result in found), strict=False)
    return SizeResult(size, tuple(max(times) for times in iterations), sum(result.wrong for result in found))
