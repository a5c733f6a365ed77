"""Floors as data: TOML tables in, checked values out. A floor that nobody could reach, or whose origin is unknown, is refused here.

An entry holds for every combination of its lists (metric, sku, fabric, collective, device, statistic). Its bound is either given (`bound`, with
`bound_reason`), or follows from the rate of a link (`link`, `link_reason`) and from the way the bytes take (`path`):

    hierarchical   link = NICs of a node together; the sum inside a node is free of the wire: N (gk-1) / (g (k-1)) for g GPUs and the most nodes k
    ring           link = what one GPU, or a node's NICs, can send: every byte of busbw goes over it
    in_switch      link = one GPU's way into the switch, which sums: one buffer up and one down at once, 2 (g-1) / g

What all floors of a file have in common stands once, in the table [every].
"""

from __future__ import annotations

import itertools
import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from nodectl.diagnostics.model import Collector, Diagnostic
from nodectl.verify.judging.formulas import network_bound
from nodectl.verify.judging.toml_places import Table, syntax_error, tables
from nodectl.verify.judging.units import UnitError, human, quantity, to_base, unit

# Those that come with nodectl.
FLOORS = Path(__file__).parent / "floors"
# The base units of each family of measurements; a floor in another dimension is a slip (DCGM once shipped MB/s as GB/s).
_BASE = {
    "network.": ("B/s",), "node.": ("B/s",), "collective.": ("B/s",), "rdma.": ("B/s",), "gpu.": ("B/s",), "disk.": ("B/s", "1/s"), "mount.": ("B/s", "1/s"),
    "phase.": ("B/s",),
}
_NEEDED = ("metric", "floor", "unit", "statistic", "source", "date")
_BOUND, _LINK = ("bound", "bound_reason"), ("link", "link_reason", "path")
_MATCHED = ("sku", "fabric", "collective", "algorithm", "device")
_KEYS = frozenset([*_NEEDED, *_BOUND, *_LINK, *_MATCHED, "reason", "low", "nodes", "gpus", "size"])
_TEXTS = ("unit", "source", "bound_reason", "link_reason", "path", "reason", "low")
# Words that other checkers have for a bar from above; OCI's fails a disk that is 2 % faster than its reference.
_TWO_SIDED = ("ceiling", "max", "maximum", "most", "at_most", "tolerance", "deviation", "range", "two_sided")
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?")
ALGORITHMS = ("any", "ring", "tree", "nvls", "nvls_tree", "collnet")
# Bits taken for bytes are a factor of 8, MB/s taken for GB/s one of 1000: no floor of working hardware lies so far below what it can do at most.
SLIP = 8.0
# What share of the bound the best known systems reach with small messages (B): a floor above it fails every healthy node, although the wire could
# carry it. Over the network 4 x P6-B200 (stas00/ml-engineering network/README.md), inside a node 8 x H200 (the same); above 1 GiB the bound rules.
_REACH: Mapping[str, tuple[tuple[float, float], ...]] = {
    "hierarchical": ((2.0**24, 0.125), (2.0**27, 0.386), (2.0**30, 0.70)),
    "in_switch": ((2.0**20, 0.051), (2.0**24, 0.28), (2.0**27, 0.511), (2.0**30, 0.59)),
}


class FloorError(ValueError):
    """Floors that may not be used; ``diagnostics`` has each mistake with its place."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(f"{one.origin}: {one.message}" if one.origin else one.message for one in diagnostics))
        self.diagnostics = tuple(diagnostics)


@dataclass(frozen=True)
class Floor:
    """The lowest acceptable figure for one kind of measurement. ``floor`` and ``bound`` in the base unit.

    ``match`` holds what the measurement's conditions must equal (sku, fabric, collective, algorithm, device); ``nodes`` and ``gpus`` are
    closed ranges; ``size`` is the smallest message (B) it holds for. ``statistic`` is what was taken over the iterations.
    ``site`` is True for a floor of the user's own file.
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
    site: bool = False

    def fits(self, metric: str, conditions: Mapping[str, Any]) -> bool:
        """True when this floor speaks about a measurement called ``metric`` made under ``conditions``.

        What stands after a colon in the metric's name is the place it was measured at ("phase.batch_read:/data"). A measurement that names
        its statistic is not held against a floor of another one.
        """
        return (
            metric.partition(":")[0] == self.metric
            and all(str(conditions.get(key, "")) == value for key, value in self.match)
            and (self.nodes is None or self.nodes[0] <= _figure(conditions.get("nodes")) <= self.nodes[1])
            and (self.gpus is None or conditions.get("gpus") == self.gpus)
            and (not self.size or _figure(conditions.get("bytes")) >= self.size)
            and conditions.get("statistic", self.statistic) == self.statistic
        )

    def cite(self) -> str:
        where = ", ".join(value for _, value in self.match)
        return f"{self.source} ({where}, {self.date})" if where else f"{self.source} ({self.date})"


def _figure(value: object) -> float:
    """A condition as a number; what a node gave instead of one fits no range."""
    return float(value) if isinstance(value, (int, float)) and abs(value) <= sys.float_info.max else math.nan


def best_floor(floors: Sequence[Floor], metric: str, conditions: Mapping[str, Any]) -> Floor | None:
    """The floor that counts, or None: the most specific shipped one, and the site's own beside it; of the two the higher."""
    fitting = [floor for floor in floors if floor.fits(metric, conditions)]
    of_each = [max((floor for floor in fitting if floor.site is site), key=_specific, default=None) for site in (False, True)]
    return max((floor for floor in of_each if floor is not None), key=lambda floor: floor.floor, default=None)


def _specific(floor: Floor) -> tuple[int, bool, bool, float]:
    """Most conditions named; of equals the highest."""
    return len(floor.match), floor.gpus is not None, floor.nodes is not None, floor.floor


def floor_to_json(floor: Floor) -> dict[str, Any]:
    return dict(vars(floor))  # all of it is immutable, so nothing needs copying


def floor_of_json(data: Mapping[str, Any]) -> Floor:
    """The inverse, also of what JSON made of it. Raises ValueError for what no floor is."""
    names = {one.name for one in fields(Floor)}
    try:
        values = {**data, "match": tuple((str(key), str(value)) for key, value in data["match"])}
        nodes = data.get("nodes")
        floor = Floor(**{**values, "nodes": None if nodes is None else (int(nodes[0]), int(nodes[1]))})
    except (TypeError, KeyError, ValueError, IndexError):
        raise ValueError(f"this is no floor: expected {', '.join(sorted(names))}") from None
    if not (isinstance(floor.floor, (int, float)) and isinstance(floor.bound, (int, float)) and 0 < floor.floor <= floor.bound):
        raise ValueError(f"the floor of {floor.metric} is {floor.floor!r}, its bound {floor.bound!r}")
    return floor


# -- reading


@cache  # files of the package never change while it runs
def shipped_floors() -> tuple[Floor, ...]:
    """The floors that come with nodectl. Raises FloorError when they are wrong (a bug of ours)."""
    return load_floors(FLOORS)


def load_floors(folder: Path) -> tuple[Floor, ...]:
    """All ``*.toml`` files of ``folder``. Raises FloorError with all that is wrong in them."""
    found = Collector()
    floors = [floor for path in sorted(folder.glob("*.toml")) for floor in read_floors(path.read_text("utf-8"), path.name, found)]
    if found.errors:
        raise FloorError(found.errors)
    return tuple(floors)


def floors_of(text: str, name: str, site: bool = False) -> list[Floor]:
    """The floors of one file's text; ``name`` is for messages. Raises FloorError."""
    found = Collector()
    floors = read_floors(text, name, found)
    if found.errors:
        raise FloorError(found.errors)
    return [replace(floor, site=site) for floor in floors]


def read_floors(text: str, file: str, found: Collector) -> list[Floor]:
    """Those that are right; mistakes are in ``found``."""
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found.error("E408", f"{file} is not TOML: {error}", syntax_error(str(error), file), help="the position is where reading ended")
        return []
    entries, every = parsed.get("floor", []), parsed.get("every", {})
    if set(parsed) - {"floor", "every"} or not isinstance(entries, list) or not all(isinstance(one, dict) for one in [every, *entries]):
        advice = "two brackets, one table for each floor; [every] holds what all floors of the file have in common"
        found.error("E408", f"{file}: expected [[floor]] tables only, found {', '.join(sorted(parsed))}", None, help=advice)
        return []
    places = tables(text, file, "floor")
    floors: list[Floor] = []
    for index, entry in enumerate(entries):
        place = places[index] if len(places) == len(entries) else None
        try:
            floors += _Entry({**every, **entry}, place, f"{file}, floor {index + 1}").floors()
        except _Wrong as wrong:
            found.error("E408", f"{file}, floor {index + 1}: {wrong}", wrong.at, label=wrong.label, help=wrong.help)
    return floors


class _Wrong(Exception):
    def __init__(self, message: str, at: Any = None, label: str = "", help: str = "") -> None:
        super().__init__(message)
        self.at, self.label, self.help = at, label, help


@dataclass(frozen=True)
class _Entry:
    """One [[floor]] table."""

    data: Mapping[str, Any]
    place: Table | None
    where: str

    def wrong(self, key: str, message: str, help: str = "") -> _Wrong:
        at = self.place and (self.place.value(key) if key in self.data else self.place.at)
        return _Wrong(message, at, help=help)

    def floors(self) -> list[Floor]:
        self._names()
        base = self._base()
        value, size, nodes, gpus = self._rate("floor", base), self._size(), self._nodes(), self._gpus()
        bound, bound_reason = self._bound(base, nodes, gpus)
        self._plausible(value, bound, bound_reason, base, size)
        source, date, reason = (str(self.data.get(key) or "") for key in ("source", "date", "reason"))
        return [
            Floor(metric, value, base, statistic, source, date, bound, bound_reason, reason or str(self.data.get("low", "")), match, nodes, gpus, size)
            for metric in self._words("metric") for match in self._matches() for statistic in self._words("statistic")
        ]

    def _names(self) -> None:
        unknown = sorted(set(self.data) - _KEYS)
        if unknown:
            sided = [key for key in unknown if key in _TWO_SIDED]
            advice = "a floor is one-sided: faster than expected is never a fault" if sided else f"known are {', '.join(sorted(_KEYS))}"
            raise self.wrong(unknown[0], f"unknown key {', '.join(unknown)}: {advice}")
        needed = [*_NEEDED, *(_LINK if set(_LINK) & set(self.data) else _BOUND)]
        if "collective" in self.data:
            needed += ["size", *(["algorithm"] if "sku" in self.data else [])]
        missing = [key for key in needed if self.data.get(key) in (None, "")]
        if missing:
            raise self.wrong("", f"missing {', '.join(missing)}: a floor without its origin and its bound cannot be defended")
        for key in _TEXTS:
            if not isinstance(self.data.get(key, ""), str):
                raise self.wrong(key, f"{key} is {self.data[key]!r}; expected a text")
        if set(_LINK) & set(self.data) and set(_BOUND) & set(self.data):
            raise self.wrong("bound", "bound and link both: the bound follows from the link, or is given")
        if not _DATE.fullmatch(str(self.data["date"])):
            raise self.wrong("date", f"date {self.data['date']!r}; expected YYYY-MM or YYYY-MM-DD, the day the source was read")

    def _base(self) -> str:
        for metric in self._words("metric"):
            bases = next((bases for prefix, bases in _BASE.items() if metric.startswith(prefix)), ())
            if not bases:
                raise self.wrong("metric", f"no measurement with a floor is called {metric!r}; expected a name that begins with {', '.join(_BASE)}")
        try:
            base = unit(str(self.data["unit"])).base
        except UnitError as error:
            raise self.wrong("unit", f"wrong unit or number: {error}") from None
        if base not in bases:
            raise self.wrong("unit", f"wrong unit or number: {metric} is measured in {' or '.join(bases)}, not in {self.data['unit']}")
        return base

    def _rate(self, key: str, base: str) -> float:
        """``floor`` and ``bound`` are numbers in ``unit``; ``link`` is a text with a unit of its own."""
        value = self.data[key]
        # Finite: a floor or bound of nan compares with nothing, and a bound of inf bounds nothing.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
            raise self.wrong(key, f"wrong unit or number: {key} {str(value)[:40]!r} is not a finite number")
        number = to_base(float(value), str(self.data["unit"]), base)
        if number <= 0:
            raise self.wrong(key, f"a {key} of {number:g} {'passes everything' if key == 'floor' else 'bounds nothing'}")
        return number

    def _quantity(self, key: str, base: str) -> float:
        try:
            return quantity(self.data.get(key, 0), base)
        except UnitError as error:
            raise self.wrong(key, f"wrong unit or number: {key}: {error}") from None

    def _size(self) -> float:
        return self._quantity("size", "B")

    def _bound(self, base: str, nodes: tuple[int, int] | None, gpus: int | None) -> tuple[float, str]:
        if "bound" in self.data:
            return self._rate("bound", base), str(self.data["bound_reason"])
        link, path = self._quantity("link", base), str(self.data["path"])
        if not link:
            raise self.wrong("link", "a link of 0 carries nothing")
        why, shown = str(self.data["link_reason"]), str(self.data["link"])
        if self.data.get("algorithm") == "ring" and path != "ring":
            raise self.wrong("path", f"the bound of a ring is its link itself, not {path}")
        if path == "ring":
            return link, f"{why}: {shown}, all of busbw goes over it"
        if path == "hierarchical" and nodes and nodes[1] > 1 and gpus:
            k = nodes[1]
            return network_bound(link, gpus, k), f"{why}: {shown} x {gpus * k - 1}/{gpus * (k - 1)} over {k} nodes of {gpus} GPUs"
        if path == "in_switch" and gpus and gpus > 1:
            return link * 2 * (gpus - 1) / gpus, f"{why}: {shown} x 2 x {gpus - 1}/{gpus}, summed in the switch"
        raise self.wrong("path", f"path {path!r}; expected ring, hierarchical (with gpus, and nodes from 2 up), or in_switch (with gpus from 2 up)")

    def _plausible(self, value: float, bound: float, bound_reason: str, base: str, size: float) -> None:
        if value > bound:
            above = f"floor {human(value, base)} is above the physical bound {human(bound, base)} ({bound_reason})"
            raise self.wrong("floor", f"{above}: every healthy node would fail")
        reach = next((share for most, share in _REACH.get(str(self.data.get("path")), ()) if size <= most), 1.0)
        if value > reach * bound:
            raise self.wrong("floor", (
                f"floor {human(value, base)} at messages of {human(size, 'B')}: the best known systems reach {reach:.1%} of their bound there, "
                f"{human(reach * bound, base)}: every healthy node would fail"
            ))
        # Without a model the bound is that of the largest machine there is, and says nothing of how low a floor may be.
        if "sku" in self.data and value * SLIP <= bound and not self.data.get("low"):
            raise self.wrong("floor", (
                f"floor {human(value, base)} is {value / bound:.2%} of its bound {human(bound, base)}: a slip of units (bits for bytes, MB for GB)? "
                "If it is meant, say in `low` why it may lie so far below"
            ))

    def _words(self, key: str) -> list[str]:
        value = self.data[key]
        words = value if isinstance(value, list) else [value]
        if not words or not all(isinstance(one, str) and one for one in words) or len(set(words)) < len(words):
            raise self.wrong(key, f"{key} is {value!r}; expected a text, or a list of different ones")
        return words

    def _matches(self) -> Iterator[tuple[tuple[str, str], ...]]:
        for one in self._words("algorithm") if "algorithm" in self.data else []:
            if one not in ALGORITHMS:
                raise self.wrong("algorithm", f"algorithm is {one!r}; expected one of {', '.join(ALGORITHMS)}")
        keys = [key for key in _MATCHED if key in self.data and self.data[key] != "any"]
        return iter([tuple(zip(keys, values, strict=True)) for values in itertools.product(*(self._words(key) for key in keys))])

    def _nodes(self) -> tuple[int, int] | None:
        value = self.data.get("nodes")
        if value is None:
            return None
        ends = tuple(value) if isinstance(value, list) else (value, value)
        if len(ends) != 2 or not all(type(end) is int for end in ends) or not 1 <= ends[0] <= ends[1]:
            raise self.wrong("nodes", f"nodes is {value!r}; expected a count or [from, to]")
        return (ends[0], ends[1])

    def _gpus(self) -> int | None:
        value = self.data.get("gpus")
        if value is None or (type(value) is int and value >= 1):
            return value
        raise self.wrong("gpus", f"gpus is {value!r}; expected a count per node")
