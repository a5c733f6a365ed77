"""From what healthy nodes of this site reached to floors of its own: what `nodectl verify --adopt` writes. Pure.

One floor per measurement and conditions (GPU, fabric, nodes, collective, device). A figure counts only where its node has nothing against it but
the missing floor; it has to come from several nodes, from real hardware, and to lie below what any machine can do.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from typing import Any

from nodectl.verify.evidence import Given
from nodectl.verify.judging.floor_load import Floor
from nodectl.verify.judging.judge import judge
from nodectl.verify.judging.measurement import Check, Measurement
from nodectl.verify.judging.toml_places import tables
from nodectl.verify.judging.units import human

# Of the median over the nodes, so much becomes the floor. Healthy nodes of one fleet differ by a few per cent, and so do two runs; a link or a GPU
# that is broken costs a quarter or more. AICR takes the same share of its recipes' figures.
MARGIN = 0.9
# Nodes that a figure must come from: of three, one that is slow does not move the median; of two nobody knows which one is.
LEAST = 3
# What no machine known today does (B/s, or operations per second), by the beginning of the metric and the fabric ("" for any): a figure above it is
# no measurement. NICs: 8 x 800 Gb/s = 800 GB/s per node (DGX B300; stas00/ml-engineering), times 15/8 over two nodes of 8 GPUs; NVLink 5: 900 GB/s one
# way per GPU, doubled by sums in the switch; 400 Gb/s Ethernet; one port of 800 Gb/s; 16 PCIe 5.0 disks.
BOUNDS: Sequence[tuple[str, str, str, float, str]] = (
    ("network.", "tcp", "B/s", 50e9, "400 Gb/s Ethernet"),
    ("network.", "", "B/s", 1500e9, "8 NICs of 800 Gb/s, two nodes of 8 GPUs: 800 x 15/8"),
    ("node.", "", "B/s", 1800e9, "NVLink 5, 900 GB/s one way per GPU, summed in the switch"),
    ("rdma.", "", "B/s", 100e9, "one port of 800 Gb/s"),
    ("disk.", "", "B/s", 400e9, "16 PCIe 5.0 disks, striped"),
    ("disk.", "", "1/s", 50e6, "16 PCIe 5.0 disks, striped"),
    ("mount.", "", "B/s", 400e9, "8 NICs of 400 Gb/s, or the cache disk"),
    ("mount.", "", "1/s", 50e6, "the cache disk"),
    ("phase.", "", "B/s", 400e9, "8 NICs of 400 Gb/s, or the cache disk"),
)
_MATCHED = ("sku", "fabric", "collective", "algorithm", "device")
SOURCE = "this site, run "


@dataclass(frozen=True)
class Run:
    """What the floors come from: the run's name and its day (ISO date)."""

    name: str
    day: str


@dataclass(frozen=True)
class Proposal:
    """What stands in for one key: a floor, or the reason why there is none."""

    metric: str
    conditions: tuple[tuple[str, Any], ...]
    floor: Floor | None
    why_not: str = ""

    def about(self) -> str:
        words = [f"{key} {value}" for key, value in self.conditions if value not in ("", None)]
        return f"{self.metric} ({', '.join(words)})" if words else self.metric


Key = tuple[str, str, tuple[tuple[str, Any], ...]]


def propose(readings: Sequence[Given], floors: Sequence[Floor], shipped: Sequence[Floor], run: Run) -> list[Proposal]:
    """``floors`` are those that the run was judged by; ``shipped`` give the bound of a machine that they know."""
    checks = [(given, one, check) for given in readings for one in given.reading.measurements for check in _checks(one, given, floors)]
    clean = _clean([check for _, _, check in checks])
    found: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    refused: dict[Key, str] = {}
    for _, measurement, check in checks:
        if not _is_rate(measurement):
            continue
        key = _key(measurement)
        if measurement.simulated:
            refused[key] = "measured on hardware that is only played (a lab's links, a loop device)"
        elif check.host in clean and isinstance(check.value, (int, float)):
            found[key][_place(measurement, check.host)].append(float(check.value))
        else:
            found[key].setdefault("", [])
    return [_proposal(key, {host: values for host, values in by.items() if host}, shipped, run) for key, by in found.items() if key not in refused] + [
        Proposal(key[0], key[2], None, why) for key, why in refused.items()
    ]


def _checks(measurement: Measurement, given: Given, floors: Sequence[Floor]) -> list[Check]:
    return judge([measurement], floors, given.reading.expectations)


def _clean(checks: Sequence[Check]) -> set[str]:
    """Nodes against which nothing stands. What was waived stands against them: an excuse is no good example."""
    bad = {check.host for check in checks if check.verdict != "pass" and not check.unfloored}
    return {check.host for check in checks} - bad


def _is_rate(measurement: Measurement) -> bool:
    number = isinstance(measurement.value, (int, float)) and not isinstance(measurement.value, bool)
    return number and any(measurement.name.startswith(begin) and measurement.unit == unit for begin, _, unit, *_ in BOUNDS)


def _key(measurement: Measurement) -> Key:
    """Conditions that floors are chosen by, as far as the measurement has them."""
    given = measurement.conditions
    kept: list[tuple[str, Any]] = [(key, str(given[key])) for key in _MATCHED if given.get(key)]
    kept += [(key, int(given[key])) for key in ("gpus", "nodes") if isinstance(given.get(key), (int, float)) and given[key] > 0]
    if isinstance(given.get("bytes"), (int, float)) and given.get("collective"):
        kept.append(("bytes", int(given["bytes"])))
    kept += [("statistic", str(given["statistic"]))] if given.get("statistic") else []
    return measurement.name.partition(":")[0], measurement.unit, tuple(kept)


def _place(measurement: Measurement, host: str) -> str:
    """A node's mounts are told apart: a floor has to hold for the slowest of them."""
    place = measurement.name.partition(":")[2]
    return f"{host} {place}" if place else host


def _proposal(key: Key, figures: Mapping[str, Sequence[float]], floors: Sequence[Floor], run: Run) -> Proposal:
    metric, unit, conditions = key
    by_place: dict[str, dict[str, float]] = defaultdict(dict)
    for where, values in figures.items():
        host, _, place = where.partition(" ")
        by_place[place][host] = statistics.median(values)
    hosts = sorted({host for of in by_place.values() for host in of})
    if any(len(of) < LEAST for of in by_place.values()) or not by_place:
        count = f"figures of {len(hosts)} healthy node{'' if len(hosts) == 1 else 's'}"
        return Proposal(metric, conditions, None, f"{count}: it takes {LEAST} to know what is usual")
    typical = min(statistics.median(of.values()) for of in by_place.values())
    value = round_down(MARGIN * typical)
    low = {host: figure for of in by_place.values() for host, figure in of.items() if figure < value}
    if low:
        named = ", ".join(f"{host} {human(figure, unit)}" for host, figure in sorted(low.items()))
        return Proposal(metric, conditions, None, f"{named} would fail at once (median {human(typical, unit)}): find out why, or leave it out with --limit")
    bound, bound_reason = _bound(metric, unit, dict(conditions), floors)
    most = max(figure for of in by_place.values() for figure in of.values())
    if most > bound:
        why = f"{human(most, unit)} is above what is physically possible, {human(bound, unit)} ({bound_reason}): the measurement is wrong"
        return Proposal(metric, conditions, None, why)
    if value <= 0:
        return Proposal(metric, conditions, None, "a floor of 0 passes everything")
    least = min(figure for of in by_place.values() for figure in of.values())
    reason = f"{MARGIN:.0%} of the median of {len(hosts)} nodes ({human(least, unit)} to {human(most, unit)}); healthy nodes and runs differ by a few per cent"
    return Proposal(metric, conditions, _floor(key, value, bound, bound_reason, reason, run))


def _floor(key: Key, value: float, bound: float, bound_reason: str, reason: str, run: Run) -> Floor:
    metric, unit, conditions = key
    given = dict(conditions)
    nodes = (given["nodes"], given["nodes"]) if "nodes" in given and metric.startswith("network.") else None
    return Floor(
        metric, value, unit, given.get("statistic", "mean"), f"{SOURCE}{run.name}, {run.day}", run.day, bound, bound_reason, reason,
        tuple((name, given[name]) for name in _MATCHED if name in given), nodes, given.get("gpus"), float(given.get("bytes", 0)), True,
    )


def round_down(value: float) -> float:
    """To three digits, so that a person can read it; never up."""
    return float(Context(prec=3, rounding=ROUND_DOWN).create_decimal_from_float(value))


def _bound(metric: str, unit: str, given: Mapping[str, Any], floors: Sequence[Floor]) -> tuple[float, str]:
    """The lowest of what is known for such a machine."""
    general = next((bound, why) for begin, fabric, of, bound, why in BOUNDS if metric.startswith(begin) and of == unit and fabric in ("", given.get("fabric")))
    own = [(floor.bound, floor.bound_reason) for floor in floors if _same_machine(floor, metric, unit, given)]
    return min([general, *own])


def _same_machine(floor: Floor, metric: str, unit: str, given: Mapping[str, Any]) -> bool:
    return (
        not floor.site and (floor.metric, floor.unit) == (metric, unit) and floor.gpus in (None, given.get("gpus"))
        and (floor.nodes is None or floor.nodes[0] <= given.get("nodes", 0) <= floor.nodes[1])
        and all(given.get(key) == value for key, value in floor.match)
    )


# -- the file


_TOP = """# Floors of this site. `nodectl verify --adopt` writes those of source "this site, run …" and replaces them by newer ones; others are yours, and stay.
# They count beside the shipped ones: of two the higher.
"""


def merged(text: str, floors: Sequence[Floor]) -> str:
    """The file's new text: adopted floors for the same things replaced, everything else as it stands."""
    keep = text.rstrip("\n")
    chunks, places = keep.splitlines(keepends=True), tables(keep, "", "floor")
    starts = [place.at.line - 1 for place in places] + [len(chunks)]
    kept = "".join(chunks[: starts[0]]) if keep else _TOP
    fresh = [entry(floor) for floor in floors]
    heads = {_head(one) for one in fresh}
    for begin, end in itertools.pairwise(starts):
        block = "".join(chunks[begin:end])
        if not (f'source = "{SOURCE}' in block and _head(block) in heads):
            kept += block
    return kept.rstrip("\n") + "\n\n" + "\n".join(fresh)


_HEAD = ("metric", *_MATCHED, "gpus", "nodes", "statistic")


def _head(block: str) -> tuple[str, ...]:
    """What a floor is for: two with the same head speak of the same thing."""
    return tuple(sorted(line.strip() for line in block.splitlines() if line.partition(" =")[0] in _HEAD))


def entry(floor: Floor) -> str:
    """One [[floor]] table, as `floor_load` reads it."""
    given: dict[str, Any] = {"metric": floor.metric, **dict(floor.match)}
    if "collective" in given and "sku" in given:
        given.setdefault("algorithm", "any")
    unit, factor = _SHOWN[floor.unit]
    given.update({"gpus": floor.gpus, "nodes": floor.nodes[0] if floor.nodes else None, "size": f"{int(floor.size)} B" if floor.size else None})
    given.update({"statistic": floor.statistic, "floor": _number(floor.floor / factor), "unit": unit, "bound": _number(floor.bound / factor)})
    given.update({"bound_reason": floor.bound_reason, "source": floor.source, "date": floor.date, "reason": floor.reason})
    given["low"] = "the bound is that of the fastest machines known, the floor is this site's"
    lines = [f"{key} = {_toml(value)}" for key, value in given.items() if value is not None]
    return "[[floor]]\n" + "\n".join(lines) + "\n"


# How rates are written: few digits, whatever the fabric.
_SHOWN = {"B/s": ("MB/s", 1e6), "1/s": ("IOPS", 1.0)}


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _toml(value: Any) -> str:
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text) + '"'
