"""Floors: what is shipped holds its own rules, and what may not be used is refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nodectl.verify.floor_load as floor_load
from nodectl.verify.floor_load import Floor, FloorError, best_floor, floors_of, load_floors

SHIPPED = Path(floor_load.__file__).parent / "floors"
GB = 1e9
GOOD: dict[str, Any] = {
    "metric": "network.all_reduce", "sku": "H100-SXM", "gpus": 8, "fabric": "roce", "nodes": [2, 4], "collective": "all_reduce", "size": "8 GiB",
    "statistic": "mean", "unit": "GB/s", "floor": 440, "bound": 516, "bound_reason": "NICs", "source": "someone", "date": "2026-05-19",
}


def toml(entry: dict[str, Any]) -> str:
    def shown(value: Any) -> str:
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
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[words for _, words in REFUSED])
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
