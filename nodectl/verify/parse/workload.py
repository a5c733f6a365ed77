"""What the ranks of a group printed, put together. Pure."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodectl.verify.judging.formulas import Bandwidth, bandwidth

MARK = "NODECTL "


@dataclass(frozen=True)
class SizeResult:
    """One message size that *all* ranks measured. ``bytes`` is nccl-tests' size, ``count`` its number of elements (0: not said).

    ``seconds`` are the iterations of the slowest rank (only their mean in a sweep), ``ranks`` every rank's mean (s) in order of ranks;
    ``wrong`` are the wrong values of all ranks together.
    """

    bytes: int
    seconds: tuple[float, ...]
    wrong: int
    ranks: tuple[float, ...] = ()
    count: int = 0

    def time(self, statistic: str) -> float:
        """Seconds of one operation: the ``mean`` or ``median`` iteration of the slowest rank. Of an even number the median lies between the
        middle two: the upper one would make few iterations slower than they were."""
        return statistics.median(self.seconds) if statistic == "median" else mean(self.seconds)

    def bandwidth(self, collective: str, ranks: int, statistic: str) -> Bandwidth:
        """algbw and busbw (B/s). Raises Undefined for one rank."""
        return bandwidth(collective, self.bytes, ranks, self.time(statistic))


@dataclass(frozen=True)
class Pace:
    """Seconds per round of fixed work without network of one rank: on the host's core (``host``), of which it really had the core (``cpu``),
    on the GPU (``device``, empty without one), and the time it then waited for the slowest (``wait``)."""

    host: tuple[float, ...]
    cpu: tuple[float, ...]
    device: tuple[float, ...]
    wait: tuple[float, ...]


@dataclass(frozen=True)
class GroupOutput:
    """``sizes`` are those of the first case, ``cases`` those of each by its number; ``missing`` are ranks that never came to the rendezvous;
    ``errors`` are texts by rank; ``ready`` are ranks that connected; ``unsupported`` are reasons by case, ``pace`` by rank;
    ``moved`` is what the node of each rank had to send to other nodes for all of it (B); ``resent`` are segments of data that each rank sent
    over TCP and how many of them again, by the peer's address."""

    sizes: tuple[SizeResult, ...] = ()
    missing: frozenset[int] = frozenset()
    errors: Mapping[int, str] = field(default_factory=dict)
    ready: frozenset[int] = frozenset()
    skipped: tuple[str, ...] = ()
    torch: str = ""
    cases: Mapping[int, tuple[SizeResult, ...]] = field(default_factory=dict)
    unsupported: Mapping[int, str] = field(default_factory=dict)
    pace: Mapping[int, Pace] = field(default_factory=dict)
    moved: Mapping[int, int] = field(default_factory=dict)
    resent: Mapping[int, Mapping[str, tuple[int, int]]] = field(default_factory=dict)


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
    cases = _cases(lines, ranks)
    ready = [record for record in lines if record.get("kind") == "ready"]
    return GroupOutput(
        cases.get(0, ()),
        frozenset(rank for record in lines if record.get("kind") == "missing" for rank in _ranks(record.get("ranks"), ranks)),
        {rank: f"{r.get('phase', '')}: {r.get('error', '')}" for r in lines if r.get("kind") == "error" for rank in _ranks([r.get("rank")], ranks)},
        frozenset(rank for record in ready for rank in _ranks([record.get("rank")], ranks)),
        tuple(sorted({str(record.get("reason", "")) for record in lines if record.get("kind") == "skipped"})),
        next((str(record.get("torch", "")) for record in ready), ""),
        cases,
        _unsupported(lines),
        {rank: pace for record in lines if (pace := _pace(record)) for rank in _ranks([record.get("rank")], ranks)},
        {rank: moved for record in lines if (moved := _moved(record)) is not None for rank in _ranks([record.get("rank")], ranks)},
        {rank: _resent(record.get("peers")) for record in lines if record.get("kind") == "resent" for rank in _ranks([record.get("rank")], ranks)},
    )


@dataclass(frozen=True)
class _Result:
    """One rank's line on one size, all of it plausible."""

    case: int
    rank: int
    bytes: int
    count: int
    seconds: tuple[float, ...]
    wrong: int


def _cases(lines: Sequence[Mapping[str, Any]], ranks: int) -> dict[int, tuple[SizeResult, ...]]:
    found: dict[int, dict[int, dict[int, _Result]]] = {}
    for record in lines:
        result = _result(record, ranks)
        if result is not None:
            found.setdefault(result.case, {}).setdefault(result.bytes, {})[result.rank] = result
    return {
        case: tuple(_size(size, [by_rank[rank] for rank in range(ranks)]) for size, by_rank in sorted(sizes.items()) if len(by_rank) == ranks)
        for case, sizes in found.items()
    }


def _result(record: Mapping[str, Any], ranks: int) -> _Result | None:
    rank, size, times, wrong, case = (record.get(key, 0) for key in ("rank", "bytes", "seconds", "wrong", "case"))
    complete = {"rank", "bytes", "seconds", "wrong"} <= record.keys()
    if record.get("kind") != "result" or not complete or not _ranks([rank], ranks) or not _count(size) or size == 0 or not _count(wrong) or not _count(case):
        return None
    times = _times(times)
    if not times:
        return None
    count = record.get("count")
    # A rank that says "not correct" and counts nothing wrong contradicts itself: the worse of both is believed.
    wrong = max(wrong, 0 if record.get("correct", True) is True else 1)
    return _Result(case, rank, size, count if _count(count) and count is not None else 0, times, wrong)


def _unsupported(lines: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Why the backend cannot do a case; one rank's own reason is worth more than "another rank cannot"."""
    found: dict[int, str] = {}
    for record in lines:
        case = record.get("case")
        if record.get("kind") == "unsupported" and _count(case) and case is not None and found.get(case, "another").startswith("another"):
            found[case] = str(record.get("reason") or "no reason was given")
    return found


def _pace(record: Mapping[str, Any]) -> Pace | None:
    """All lists are there, and as long as each other where they are not empty."""
    if record.get("kind") != "pace":
        return None
    host, device, wait = (_times(record.get(key)) for key in ("host", "device", "wait"))
    # A clock of CPU time may stand still during a short round.
    cpu = tuple(float(time) for time in record["cpu"] if _number(time)) if isinstance(record.get("cpu"), list) else ()
    return Pace(host, cpu, device, wait) if host and len(host) == len(cpu) == len(wait) and len(device) in (0, len(host)) else None


def _moved(record: Mapping[str, Any]) -> int | None:
    found = record.get("bytes")
    return found if record.get("kind") == "moved" and _count(found) else None


def _resent(peers: object) -> dict[str, tuple[int, int]]:
    """Those of which as much was sent at least as was sent again."""
    pairs = {address: counts for address, counts in peers.items() if isinstance(counts, list)} if isinstance(peers, dict) else {}
    return {address: (one[0], one[1]) for address, one in pairs.items() if len(one) == 2 and all(map(_count, one)) and one[0] >= one[1]}


def _ranks(found: object, ranks: int) -> list[int]:
    return [rank for rank in found if _count(rank) and rank < ranks] if isinstance(found, list) else []


def _count(value: object) -> bool:
    return type(value) is int and value >= 0


def _times(found: object) -> tuple[float, ...]:
    """A list of times above zero; () for anything else."""
    return tuple(float(time) for time in found) if isinstance(found, list) and all(_number(time) and time > 0 for time in found) else ()


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _size(size: int, found: Sequence[_Result]) -> SizeResult:
    slowest = max(found, key=lambda result: mean(result.seconds))
    return SizeResult(size, slowest.seconds, sum(result.wrong for result in found), tuple(mean(result.seconds) for result in found), found[0].count)
