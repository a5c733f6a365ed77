"""What the ranks of a group printed, put together. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
    return found


def group_output(outputs: Mapping[str, str], ranks: int) -> GroupOutput:
    """All ranks' lines, by host, as one result. A size counts only when each of ``ranks`` ranks reported it."""
    lines = [record for stdout in outputs.values() for record in records(stdout)]
    by_size: dict[int, dict[int, dict[str, Any]]] = {}
    for record in lines:
        if record.get("kind") == "result":
            by_size.setdefault(int(record["bytes"]), {})[int(record["rank"])] = record
    sizes = tuple(_size(size, list(found.values())) for size, found in sorted(by_size.items()) if len(found) == ranks)
    return GroupOutput(
        sizes,
        frozenset(rank for record in lines if record.get("kind") == "missing" for rank in record["ranks"]),
        {int(record["rank"]): f"{record['phase']}: {record['error']}" for record in lines if record.get("kind") == "error"},
        frozenset(int(record["rank"]) for record in lines if record.get("kind") == "ready"),
        tuple(sorted({str(record["reason"]) for record in lines if record.get("kind") == "skipped"})),
        next((str(record["torch"]) for record in lines if record.get("kind") == "ready"), ""),
    )


def _size(size: int, found: list[dict[str, Any]]) -> SizeResult:
    iterations = zip(*(record["seconds"] for record in found), strict=False)
    return SizeResult(size, tuple(max(times) for times in iterations), sum(int(record["wrong"]) for record in found))
