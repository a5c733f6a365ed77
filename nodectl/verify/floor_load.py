"""Floors as data: TOML tables in, checked values out. A floor that nobody could reach, or whose origin is unknown, is refused here."""

from __future__ import annotations

import math
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodectl.verify.units import UnitError, human, quantity, to_base, unit

# The base unit of each family of measurements; a floor in another dimension is a slip (DCGM once shipped MB/s as GB/s).
_BASE = {"network.": "B/s", "node.": "B/s", "disk.": "B/s", "mount.": "B/s", "phase.": "B/s", "clock.": "s"}
_NEEDED = ("metric", "floor", "unit", "statistic", "source", "date", "bound", "bound_reason")
_MATCHED = ("sku", "fabric", "collective", "device")
_KEYS = frozenset([*_NEEDED, *_MATCHED, "reason", "nodes", "gpus", "size"])
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?")


class FloorError(ValueError):
    """A floor that may not be used; names file, number of the entry, and what is wrong."""


@dataclass(frozen=True)
class Floor:
    """The lowest acceptable figure for one kind of measurement. ``floor`` and ``bound`` in the base unit.

    ``match`` holds what the measurement's conditions must equal (sku, fabric, collective, device); ``nodes`` and ``gpus`` are
    closed ranges; ``size`` is the smallest message (B) it holds for. ``statistic`` is what was taken over the iterations.
    """

    metric: str
    floor: float
    unit: str
    statistic: str
    source: str
    date: str
    bound: float
    bound_reason: str
    reason: str = ""
    match: tuple[tuple[str, str], ...] = ()
    nodes: tuple[int, int] | None = None
    gpus: int | None = None
    size: float = 0.0

    def fits(self, metric: str, conditions: Mapping[str, Any]) -> bool:
        """True when this floor speaks about a measurement called ``metric`` made under ``conditions``.

        What stands after a colon in the metric's name is the place it was measured at ("phase.batch_read:/data").
        """
        return (
            metric.partition(":")[0] == self.metric
            and all(str(conditions.get(key, "")) == value for key, value in self.match)
            and (self.nodes is None or self.nodes[0] <= _figure(conditions.get("nodes")) <= self.nodes[1])
            and (self.gpus is None or conditions.get("gpus") == self.gpus)
            and (not self.size or _figure(conditions.get("bytes")) >= self.size)
        )

    def cite(self) -> str:
        where = ", ".join(value for _, value in self.match)
        return f"{self.source} ({where}, {self.date})" if where else f"{self.source} ({self.date})"


def _figure(value: object) -> float:
    """A condition as a number; what a node gave instead of one fits no range."""
    return float(value) if isinstance(value, (int, float)) and abs(value) <= sys.float_info.max else math.nan


def load_floors(folder: Path) -> tuple[Floor, ...]:
    """All ``*.toml`` files of ``folder``. Raises FloorError on the first entry that may not be used."""
    return tuple(floor for path in sorted(folder.glob("*.toml")) for floor in floors_of(path.read_text("utf-8"), path.name))


def floors_of(text: str, name: str) -> list[Floor]:
    """The floors of one file's text; ``name`` is for messages. Raises FloorError."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FloorError(f"{name} is not TOML: {error}") from None
    entries = tables.get("floor", [])
    if set(tables) - {"floor"} or not isinstance(entries, list):
        raise FloorError(f"{name}: expected [[floor]] tables only, found {', '.join(sorted(tables))}")
    return [_floor(entry, f"{name}, floor {number}") for number, entry in enumerate(entries, 1)]


def _floor(entry: Mapping[str, Any], where: str) -> Floor:
    _check_keys(entry, where)
    base = _base_unit(str(entry["metric"]), where)
    try:
        if unit(str(entry["unit"])).base != base:
            raise UnitError(f"{entry['metric']} is measured in {base}, not in {entry['unit']}")
        value, bound = (to_base(_number(entry[key]), str(entry["unit"]), base) for key in ("floor", "bound"))
        size = quantity(entry.get("size", 0), "B")
    except (UnitError, TypeError, ValueError) as error:
        raise FloorError(f"{where}: wrong unit or number: {error}") from None
    if value <= 0:
        raise FloorError(f"{where}: a floor of {value:g} passes everything")
    if value > bound:
        above = f"floor {human(value, base)} is above the physical bound {human(bound, base)} ({entry['bound_reason']})"
        raise FloorError(f"{where}: {above}: every healthy node would fail")
    match = tuple((key, str(entry[key])) for key in _MATCHED if key in entry)
    texts = {key: str(entry.get(key, "")) for key in ("metric", "statistic", "source", "date", "bound_reason", "reason")}
    nodes, gpus = _nodes(entry.get("nodes"), where), _gpus(entry.get("gpus"), where)
    return Floor(**texts, floor=value, unit=base, bound=bound, match=match, nodes=nodes, gpus=gpus, size=size)


def _number(value: object) -> float:
    """Finite: a floor or bound of nan compares with nothing, and a bound of inf bounds nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise TypeError(f"{value!r} is not a finite number")
    return float(value)


def _gpus(value: object, where: str) -> int | None:
    if value is None or (type(value) is int and value >= 1):
        return value
    raise FloorError(f"{where}: gpus is {value!r}; expected a count per node")


def _check_keys(entry: Mapping[str, Any], where: str) -> None:
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise FloorError(f"{where}: unknown key {', '.join(unknown)}; known are {', '.join(sorted(_KEYS))}")
    missing = [key for key in _NEEDED if entry.get(key) in (None, "")]
    if missing:
        raise FloorError(f"{where}: missing {', '.join(missing)}: a floor without its origin and its bound cannot be defended")
    if not _DATE.fullmatch(str(entry["date"])):
        raise FloorError(f"{where}: date {entry['date']!r}; expected YYYY-MM or YYYY-MM-DD, the day the source was read")


def _base_unit(metric: str, where: str) -> str:
    for prefix, base in _BASE.items():
        if metric.startswith(prefix):
            return base
    raise FloorError(f"{where}: no measurement is called {metric!r}; expected a name that begins with {', '.join(_BASE)}")


def _nodes(value: Sequence[int] | int | None, where: str) -> tuple[int, int] | None:
    if value is None:
        return None
    ends = tuple(value) if isinstance(value, (list, tuple)) else (value, value)
    if len(ends) != 2 or not all(type(end) is int for end in ends) or not 1 <= ends[0] <= ends[1]:
        raise FloorError(f"{where}: nodes is {value!r}; expected a count or [from, to]")
    return (ends[0], ends[1])


def best_floor(floors: Sequence[Floor], metric: str, conditions: Mapping[str, Any]) -> Floor | None:
    """The most specific floor that fits (most conditions named; of equals the highest), or None."""
    fitting = [floor for floor in floors if floor.fits(metric, conditions)]
    return max(fitting, key=lambda floor: (len(floor.match), floor.gpus is not None, floor.nodes is not None, floor.floor), default=None)
