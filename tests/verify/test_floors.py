"""Floors: what is shipped holds its own rules, and what may not be used is refused with the reason."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

import nodectl.verify.floor_load as floor_load
from nodectl.verify.floor_load import Floor, FloorError, best_floor, floors_of, load_floors
from nodectl.verify.formulas import network_bound

SHIPPED = Path(floor_load.__file__).parent / "floors"
GB = 1e9
GOOD: dict[str, Any] = {
    "metric": "network.all_reduce", "sku": "H100-SXM", "gpus": 8, "fabric": "roce", "nodes": [2, 4], "collective": "all_reduce", "size": "8 GiB",
    "statistic": "mean", "unit": "GB/s", "floor": 440, "bound": 516, "bound_reason": "NICs", "source": "someone", "date": "2026-05-19",
}


def toml(entry: dict[str, Any]) -> str:
    def shown(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return f'"{value}"' if isinstance(value, str) else str(value)

    return "[[floor]]\n" + "".join(f"{key} = {shown(value)}\n" for key, value in entry.items())


def one(**changes: Any) -> Floor:
    entry = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    return floors_of(toml(entry), "case.toml")[0]


def test_a_good_floor_in_base_units() -> None:
    floor = one()
    assert (floor.floor, floor.bound, floor.size, floor.unit) == (440 * GB, 516 * GB, 2.0**33, "B/s")
    assert floor.cite() == "someone (H100-SXM, roce, all_reduce, 2026-05-19)"


# what is changed (None: left out), and what the refusal must say
REFUSED = [
    ({"floor": 800, "bound": 750}, "above the physical bound"),
    ({"unit": "Gb/s", "floor": 440, "bound": 40}, "above the physical bound"),
    ({"unit": "s"}, "measured in B/s, not in s"),
    ({"unit": "GBs"}, "unknown unit"),
    ({"unit": None}, "missing unit"),
    ({"source": None}, "missing source"),
    ({"source": ""}, "missing source"),
    ({"date": None}, "missing date"),
    ({"date": "last spring"}, "expected YYYY-MM"),
    ({"bound": None}, "missing bound"),
    ({"bound_reason": None}, "missing bound_reason"),
    ({"statistic": None}, "missing statistic"),
    ({"floor": 0}, "passes everything"),
    ({"floor": -3}, "passes everything"),
    ({"floor": "high"}, "wrong unit or number"),
    ({"metric": "speed"}, "no measurement is called"),
    ({"nodes": [4, 2]}, "expected a count or"),
    ({"nodes": [2]}, "expected a count or"),
    ({"size": "8 apples"}, "wrong unit or number"),
    ({"flor": 3}, "unknown key flor"),
    ({"floor": float("nan")}, "not a finite number"),
    ({"floor": float("inf")}, "not a finite number"),
    ({"bound": float("inf")}, "not a finite number"),
    ({"bound": float("nan")}, "not a finite number"),
    ({"floor": True}, "not a finite number"),
    ({"bound": "516"}, "not a finite number"),
    ({"floor": [440]}, "not a finite number"),
    ({"floor": 10**400}, "wrong unit or number"),
    ({"metric": "clock.offset"}, "measured in s, not in GB/s"),
    ({"metric": ""}, "missing metric"),
    ({"unit": "GB"}, "measured in B/s, not in GB"),
    ({"date": "2026-13"}, "expected YYYY-MM"),
    ({"date": "2026-00-01"}, "expected YYYY-MM"),
    ({"date": "2026-05-32"}, "expected YYYY-MM"),
    ({"date": "2026-05-19 or so"}, "expected YYYY-MM"),
    ({"date": 2026}, "expected YYYY-MM"),
    ({"nodes": 0}, "expected a count or"),
    ({"nodes": True}, "expected a count or"),
    ({"nodes": "2"}, "expected a count or"),
    ({"nodes": [1.5, 2]}, "expected a count or"),
    ({"gpus": 0}, "expected a count per node"),
    ({"gpus": "8"}, "expected a count per node"),
    ({"gpus": True}, "expected a count per node"),
    ({"size": -1}, "wrong unit or number"),
    ({"size": float("nan")}, "wrong unit or number"),
    ({"size": "8 GiB/s"}, "wrong unit or number"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[f"{changes}"[:50] for changes, _ in REFUSED])
def test_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(FloorError, match=words) as refusal:
        one(**changes)
    assert "case.toml, floor 1" in str(refusal.value)


def test_the_impossible_floor_of_a_public_checker_is_refused() -> None:
    """AWS's check asks 300 GB/s of p4d, whose NICs carry 50; at two nodes of 8 GPUs the bound is 93.75."""
    with pytest.raises(FloorError, match="every healthy node would fail"):
        one(sku="A100-SXM", fabric="efa", floor=300, bound=93.75)


@pytest.mark.parametrize(("text", "words"), [("floor = [", "not TOML"), ("[floors]\na = 1\n", "expected"), ("[floor]\na = 1\n", "expected")])
def test_files_that_hold_something_else(text: str, words: str) -> None:
    with pytest.raises(FloorError, match=words):
        floors_of(text, "case.toml")


def conditions(**changes: Any) -> dict[str, Any]:
    return {"sku": "H100-SXM", "gpus": 8, "fabric": "roce", "nodes": 2, "collective": "all_reduce", "bytes": 2**34, **changes}


@pytest.mark.parametrize(("changes", "fits"), [
    ({}, True), ({"nodes": 4}, True), ({"nodes": 5}, False), ({"nodes": 1}, False), ({"sku": "H200-SXM"}, False), ({"fabric": "tcp"}, False),
    ({"bytes": 2**33}, True), ({"bytes": 2**30}, False), ({"gpus": 4}, False), ({"collective": "all_gather"}, False),
])
def test_a_floor_speaks_only_of_its_own_conditions(changes: dict[str, Any], fits: bool) -> None:
    assert one().fits("network.all_reduce", conditions(**changes)) is fits
    assert not one().fits("network.pairs", conditions(**changes))


def test_the_most_specific_floor_counts() -> None:
    general = one(sku=None, gpus=None, nodes=None, floor=10)
    assert best_floor([general, one()], "network.all_reduce", conditions()) == one()
    assert best_floor([general, one()], "network.all_reduce", conditions(sku="L40S")) == general
    assert best_floor([one()], "network.all_reduce", conditions(sku="L40S")) is None


def test_what_is_shipped_loads_and_covers_the_usual_machines() -> None:
    floors = load_floors(SHIPPED)
    skus = {dict(floor.match).get("sku") for floor in floors}
    assert {"A100-SXM", "H100-SXM", "H200-SXM", "B200", "MI300X"} <= skus
    assert all(floor.floor <= floor.bound and floor.source and floor.date for floor in floors)


SHIPPED_FLOORS = load_floors(SHIPPED)


@pytest.mark.parametrize("floor", SHIPPED_FLOORS, ids=[f"{floor.metric} {' '.join(value for _, value in floor.match)}" for floor in SHIPPED_FLOORS])
def test_each_shipped_floor_can_be_defended(floor: Floor) -> None:
    """Source, date, unit and a bound below which it lies; a bound of the network that the formula allows for its nodes."""
    assert 0 < floor.floor <= floor.bound < math.inf
    assert floor.unit == "B/s"
    assert len(floor.source) > 5
    assert len(floor.bound_reason) > 5
    assert floor.statistic in ("mean", "median")
    assert "2025-01" <= floor.date <= "2026-12-31"
    keys = dict(floor.match)
    if floor.metric.startswith(("network.", "node.")):
        assert keys["collective"] == "all_reduce"
        assert floor.size >= 2**20
    nic = re.search(r"(\d+) (?:x \d+/\d+)", floor.bound_reason)
    if nic and floor.metric.startswith("network.") and floor.nodes and floor.gpus:
        limit = network_bound(float(nic.group(1)) * GB, floor.gpus, floor.nodes[1])
        assert floor.bound == pytest.approx(limit, rel=0.01)


def test_no_two_shipped_floors_contradict_each_other() -> None:
    """The same conditions twice would leave it to chance which one is meant."""
    seen = [(floor.metric, floor.match, floor.nodes, floor.gpus) for floor in SHIPPED_FLOORS]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("line", range(1, 15))
def test_a_floor_without_any_one_of_its_lines_is_refused_or_more_general(line: int) -> None:
    lines = toml(GOOD).splitlines()
    left_out = lines.pop(line).partition(" =")[0]
    if left_out in ("sku", "gpus", "fabric", "nodes", "collective", "size"):
        assert floors_of("\n".join(lines), "case.toml")[0].fits("network.all_reduce", conditions())
    else:
        with pytest.raises(FloorError, match=f"missing {left_out}"):
            floors_of("\n".join(lines), "case.toml")


def test_a_wrong_file_among_good_ones_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(toml(GOOD))
    (tmp_path / "b.toml").write_text(toml(GOOD) + toml({**GOOD, "floor": 9999}))
    (tmp_path / "notes.txt").write_text("not read")
    with pytest.raises(FloorError, match=r"b\.toml, floor 2"):
        load_floors(tmp_path)
    (tmp_path / "b.toml").unlink()
    assert len(load_floors(tmp_path)) == 1


@pytest.mark.parametrize("odd", [{}, {"nodes": None}, {"nodes": "two"}, {"bytes": None}, {"bytes": "many"}, {"gpus": None}, {"sku": None}, {"nodes": float("nan")}])
def test_odd_conditions_fit_nothing_and_raise_nothing(odd: dict[str, Any]) -> None:
    found = {**(conditions() if odd else {}), **odd}
    assert not one().fits("network.all_reduce", found)


# metric, conditions, floor in GB/s: read from the sources named in the files
EXPECTED = [
    ("node.all_reduce", {"sku": "H100-SXM", "fabric": "inside", "nodes": 1}, 460.0),
    ("node.all_reduce", {"sku": "A100-SXM", "fabric": "inside", "nodes": 1}, 228.0),
    ("network.all_reduce", {"sku": "H200-SXM", "nodes": 4}, 440.0),
    ("network.all_reduce", {"sku": "H200-SXM", "nodes": 16}, None),
    ("network.pairs", {"sku": "A100-SXM", "fabric": "ib"}, 185.0),
    ("network.pairs", {"sku": "", "gpus": 0, "fabric": "tcp", "bytes": 2**23}, 0.03),
    ("network.pairs", {"sku": "L40S", "fabric": "roce"}, None),
    ("disk.scratch.seq_write", {"device": "loop"}, 0.02),
    ("disk.scratch.seq_read", {"device": "nvme"}, 1.5),
]


@pytest.mark.parametrize(("metric", "changes", "expected"), EXPECTED)
def test_shipped_figures(metric: str, changes: dict[str, Any], expected: float | None) -> None:
    found = best_floor(load_floors(SHIPPED), metric, conditions(**changes))
    assert (found.floor if found else None) == (pytest.approx(expected * GB) if expected else None)
