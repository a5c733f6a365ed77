"""Floors: what is shipped holds its own rules, and what may not be used is refused with the reason."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nodectl.verify.judging.floor_load as floor_load
from nodectl.verify.judging.floor_load import Floor, FloorError, best_floor, floor_of_json, floor_to_json, floors_of, load_floors
from nodectl.verify.judging.formulas import network_bound

SHIPPED = Path(floor_load.__file__).parent / "floors"
GB = 1e9
GOOD: dict[str, Any] = {
    "metric": "network.all_reduce", "sku": "H100-SXM", "gpus": 8, "fabric": "roce", "nodes": [2, 4], "collective": "all_reduce",
    "algorithm": "any", "size": "8 GiB", "statistic": "mean", "unit": "GB/s", "floor": 440, "bound": 516, "bound_reason": "NICs", "source": "someone", "date": "2026-05-19",
}


def toml(entry: dict[str, Any]) -> str:
    def shown(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return "[" + ", ".join(map(shown, value)) + "]" if isinstance(value, list) else f'"{value}"' if isinstance(value, str) else str(value)

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
    ({"metric": "speed"}, "no measurement with a floor is called"),
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
    ({"metric": "clock.offset"}, "no measurement with a floor is called"),
    ({"metric": ["network.pairs", "speed"]}, "no measurement with a floor is called"),
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
    ({"size": None}, "missing size"),
    ({"algorithm": None}, "missing algorithm"),
    ({"algorithm": "best"}, "expected one of any, ring, tree"),
    ({"sku": []}, "expected a text, or a list of different ones"),
    ({"fabric": ["ib", "ib"]}, "expected a text, or a list of different ones"),
    ({"fabric": ["ib", 3]}, "expected a text, or a list of different ones"),
    ({"sku": 100}, "expected a text, or a list of different ones"),
    ({"link": "400 GB/s"}, "missing link_reason, path"),
    ({"link": "400 GB/s", "link_reason": "NICs", "path": "hierarchical"}, "bound and link both"),
    ({"floor": 64}, "a slip of units"),
    ({"floor": 1e-9}, "a slip of units"),
    ({"ceiling": 500}, "one-sided"),
    ({"tolerance": 0.02}, "one-sided"),
    ({"max": 500}, "one-sided"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[f"{changes}"[:50] for changes, _ in REFUSED])
def test_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(FloorError, match=words) as refusal:
        one(**changes)
    assert "case.toml, floor 1" in str(refusal.value)


def linked(**changes: Any) -> Floor:
    """As ``one``, with the bound derived."""
    return one(**{"bound": None, "bound_reason": None, "link": "400 GB/s", "link_reason": "8 x 400 Gb/s", "path": "hierarchical", **changes})


def test_the_bound_follows_from_the_link() -> None:
    floor = linked()
    assert floor.bound == pytest.approx(network_bound(400 * GB, 8, 4))
    assert floor.bound_reason == "8 x 400 Gb/s: 400 GB/s x 31/24 over 4 nodes of 8 GPUs"
    assert linked(path="ring", floor=390).bound == 400 * GB
    inside = linked(metric="node.all_reduce", nodes=None, path="in_switch", link="450 GB/s", size="16 GiB", floor=460)
    assert inside.bound == pytest.approx(787.5 * GB)


@pytest.mark.parametrize("changes", [
    {"path": "in_switch", "gpus": None}, {"path": "in_switch", "gpus": 1}, {"path": "hierarchical", "gpus": None}, {"path": "hierarchical", "nodes": None},
    {"path": "hierarchical", "nodes": 1}, {"path": "torus"}, {"link": "0 GB/s"}, {"link": "fast"}, {"link": 3.5, "path": 7},
])
def test_a_bound_that_does_not_follow(changes: dict[str, Any]) -> None:
    with pytest.raises(FloorError, match=r"path|link"):
        linked(**changes)


# The floors that public checkers really ship or shipped (their code at the snapshots of 2026), as this file format would write them.
P4D = {"sku": "A100-SXM", "fabric": "efa", "nodes": 2, "link": "50 GB/s", "link_reason": "EFA of p4d"}
P5 = {"fabric": "efa", "nodes": 2, "link": "400 GB/s", "link_reason": "EFA of p5"}
HBM = {"metric": "gpu.memory_bandwidth", "sku": "H200-SXM", "unit": "MB/s", "bound": 4_800_000, "bound_reason": "HBM3e of one H200", "collective": None, "size": None,
       "algorithm": None, "nodes": None, "fabric": None}
HCA = {"metric": "rdma.write_bw", "bound_reason": "one port of NDR, 400 Gb/s", "collective": None, "size": None, "algorithm": None, "nodes": None}
FIELD: list[tuple[str, Any, dict[str, Any], str]] = [
    ("AWS p4d: 300 GB/s up to 128 MiB, its NICs carry 50", linked, {**P4D, "floor": 300, "size": "128 MiB"}, "above the physical bound 93.75 GB/s"),
    ("AWS p5: 800 GB/s", linked, {**P5, "floor": 800, "size": "128 MiB"}, "above the physical bound 750 GB/s"),
    ("AWS p5en: 800 GB/s", linked, {**P5, "sku": "H200-SXM", "floor": 800, "size": "128 MiB"}, "above the physical bound 750 GB/s"),
    ("AWS p6-b200: 900 GB/s", linked, {**P5, "sku": "B200", "floor": 900, "size": "128 MiB"}, "above the physical bound 750 GB/s"),
    ("p5 at 128 MiB: 300 GB/s, where healthy nodes measured 289", linked, {**P5, "floor": 300, "size": "128 MiB"}, "every healthy node would fail"),
    ("p6-b200 at 16 MiB: a tenth of a GiB's figure is too much", linked, {"sku": "B200", "nodes": 4, "floor": 100, "size": "16 MiB"}, "every healthy node would fail"),
    ("inside a node at 1 MiB", linked, {"metric": "node.all_reduce", "nodes": None, "path": "in_switch", "link": "450 GB/s", "floor": 100, "size": "1 MiB"}, "every healthy"),
    ("AWS p5 at 32 nodes, with the figure of 2", linked, {**P5, "nodes": [2, 32], "floor": 440}, "above the physical bound 411"),
    ("a ring's figure cannot be a tree's", linked, {**P5, "algorithm": "ring", "floor": 440}, "the bound of a ring is its link itself"),
    ("DCGM H200 id 2335: 2,333 MB/s, its sibling 2,212,500", one, {**HBM, "floor": 2333}, "a slip of units"),
    ("Azure ib_write_bw: Gb/s written as GB/s", one, {**HCA, "unit": "GB/s", "floor": 380, "bound": 50}, "above the physical bound 50 GB/s"),
    ("Azure all-reduce: GB/s written as Gb/s", linked, {"metric": "node.all_reduce", "nodes": None, "path": "in_switch", "link": "450 GB/s", "unit": "Gb/s", "floor": 460},
     "a slip of units"),
    ("sichek's all-reduce, printed in Gbps", linked, {"unit": "Gbps", "floor": 470}, "a slip of units"),
    ("OCI disks: 2 % faster fails", one, {**HBM, "metric": "disk.scratch.rand_read", "unit": "IOPS", "floor": 1538000, "bound": 3e6, "tolerance": 0.02}, "one-sided"),
    ("ACV: a default floor of 0 checks nothing", linked, {"floor": 0}, "passes everything"),
    ("AICR GB300 borrows GB200: no source of its own", linked, {"sku": "GB300", "gpus": 4, "source": None}, "missing source"),
]


@pytest.mark.parametrize(("name", "make", "changes", "words"), FIELD, ids=[name for name, *_ in FIELD])
def test_the_wrong_floors_of_the_field_are_refused(name: str, make: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(FloorError, match=re.escape(words)):
        make(**changes)


@pytest.mark.parametrize("make", [
    lambda: one(**{**HBM, "floor": 2_212_500}), lambda: one(**{**HCA, "unit": "Gb/s", "floor": 380, "bound": 400}),
    lambda: linked(**{**P4D, "floor": 36, "size": "128 MiB"}), lambda: linked(**{**P5, "floor": 289, "size": "128 MiB"}),
    lambda: linked(**{**P5, "floor": 437, "size": "1 GiB"}), lambda: one(floor=30, low="a policy that only finds broken links"),
])
def test_what_healthy_nodes_reach_is_accepted(make: Any) -> None:
    assert make().floor > 0


def test_a_low_floor_says_why() -> None:
    assert one(floor=30, low="finds broken links only").reason == "finds broken links only"
    assert one(floor=30, low="finds broken links only", reason="said elsewhere").reason == "said elsewhere"
    assert one(sku=None, algorithm=None, floor=30).floor == 30 * GB, "a floor for any machine is bounded by the largest there is"


def test_lists_stand_for_all_their_combinations() -> None:
    entry = {**GOOD, "metric": ["network.pairs", "network.all_reduce"], "sku": ["H100-SXM", "H200-SXM"], "fabric": ["ib", "roce"], "statistic": ["mean", "median"]}
    floors = floors_of(toml(entry), "case.toml")
    assert len(floors) == len(set(floors)) == 16
    assert best_floor(floors, "network.pairs", conditions(sku="H200-SXM", fabric="ib", statistic="median")) is not None
    assert best_floor(floors, "network.pairs", conditions(sku="B200")) is None


def test_what_all_have_in_common_stands_once() -> None:
    common = "[every]\n" + toml({key: GOOD[key] for key in ("gpus", "unit", "statistic", "date")}).removeprefix("[[floor]]\n")
    rest = {key: value for key, value in GOOD.items() if key not in ("gpus", "unit", "statistic", "date")}
    assert floors_of(common + toml(rest) + toml({**rest, "gpus": 4}), "case.toml") == [one(), one(gpus=4)]


def test_a_statistic_is_not_held_against_another() -> None:
    assert one().fits("network.all_reduce", conditions(statistic="mean"))
    assert not one().fits("network.all_reduce", conditions(statistic="median"))


def test_mistakes_have_their_place_and_come_all_at_once() -> None:
    text = "# mine\n" + toml(GOOD) + "\n" + toml({**GOOD, "floor": 800}) + toml({**GOOD, "unit": "GBs"}) + toml({**GOOD, "flor": 3})
    with pytest.raises(FloorError) as refusal:
        floors_of(text, "mine.toml")
    lines = text.splitlines()
    found = [one.origin for one in refusal.value.diagnostics if one.origin]
    assert len(found) == 3
    assert [lines[at.line - 1][at.column - 1:][: at.width] for at in found] == ["800", '"GBs"', "3"]
    assert {one.code for one in refusal.value.diagnostics} == {"E408"}


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(FloorError) as refusal:
        floors_of("[[floor]]\nmetric = \n", "mine.toml")
    assert refusal.value.diagnostics[0].origin == ("mine.toml", 2, 10, 1)


SITE = replace(one(), site=True)


@pytest.mark.parametrize(("floors", "value"), [
    ([one(), replace(SITE, floor=460 * GB)], 460), ([one(), replace(SITE, floor=300 * GB)], 440), ([replace(SITE, floor=300 * GB)], 300), ([one()], 440), ([], None),
])
def test_the_sites_own_floor_lowers_nothing(floors: list[Floor], value: float | None) -> None:
    found = best_floor(floors, "network.all_reduce", conditions())
    assert (found.floor / GB if found else None) == value


def test_a_floor_survives_json() -> None:
    for floor in [one(), one(nodes=None, gpus=None), *SHIPPED_FLOORS]:
        assert floor_of_json(json.loads(json.dumps(floor_to_json(floor)))) == floor


@pytest.mark.parametrize("change", [{"floor": None}, {"floor": 1e99}, {"floor": -1}, {"match": 3}, {"match": [["sku"]]}, {"nodes": "x"}, {"extra": 1}, {"nodes": [1]}])
def test_what_is_no_floor_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="floor"):
        floor_of_json({**json.loads(json.dumps(floor_to_json(one()))), **change})


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
    general = one(sku=None, gpus=None, nodes=None, algorithm=None, floor=10)
    assert best_floor([general, one()], "network.all_reduce", conditions()) == one()
    assert best_floor([general, one()], "network.all_reduce", conditions(sku="L40S")) == general
    assert best_floor([one()], "network.all_reduce", conditions(sku="L40S")) is None


def test_what_is_shipped_loads_and_covers_the_usual_machines() -> None:
    floors = load_floors(SHIPPED)
    skus = {dict(floor.match).get("sku") for floor in floors}
    assert {"A100-SXM", "H100-SXM", "H200-SXM", "B200", "GB200", "MI300X"} <= skus
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
        assert keys["collective"] == ("all_gather" if floor.metric == "network.all_gather" else "all_reduce")
        assert floor.size >= 2**20
    nic = re.search(r"(\d+) (?:x \d+/\d+)", floor.bound_reason)
    if nic and floor.metric.startswith("network.") and floor.nodes and floor.gpus:
        limit = network_bound(float(nic.group(1)) * GB, floor.gpus, floor.nodes[1])
        assert floor.bound == pytest.approx(limit, rel=0.01)


def test_no_two_shipped_floors_contradict_each_other() -> None:
    """The same conditions twice would leave it to chance which one is meant."""
    seen = [(floor.metric, floor.match, floor.nodes, floor.gpus, floor.statistic) for floor in SHIPPED_FLOORS]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("left_out", list(GOOD))
def test_a_floor_without_any_one_of_its_lines_is_refused_or_more_general(left_out: str) -> None:
    text = toml({key: value for key, value in GOOD.items() if key != left_out})
    if left_out in ("sku", "gpus", "fabric", "nodes", "collective"):
        assert floors_of(text, "case.toml")[0].fits("network.all_reduce", conditions())
    else:
        with pytest.raises(FloorError, match=f"missing {left_out}"):
            floors_of(text, "case.toml")


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
    ("network.all_reduce", {"sku": "H200-SXM", "nodes": 2}, 440.0),
    ("network.all_reduce", {"sku": "H200-SXM", "nodes": 4}, 279.0),
    ("network.all_reduce", {"sku": "A100-SXM", "fabric": "efa"}, 70.0),
    ("network.pairs", {"sku": "H100-SXM", "fabric": "ib"}, 370.0),
    ("network.pairs", {"sku": "B200", "fabric": "efa"}, 339.0),
    ("network.pairs", {"sku": "GB200", "fabric": "ib", "gpus": 4}, None),
    ("network.all_gather", {"sku": "GB200", "gpus": 4, "collective": "all_gather"}, 120.0),
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


def test_the_page_shows_the_floors_as_they_are() -> None:
    spec = importlib.util.spec_from_file_location("bench_floors", Path(__file__).parents[2] / "bench" / "floors.py")
    assert spec
    assert spec.loader
    bench: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench
    spec.loader.exec_module(bench)
    text = bench.PAGE.read_text("utf-8")
    assert bench.page(text) == text, "run: python bench/floors.py --write"
    for sku in bench.SKUS:
        assert f"| {sku} | " in text
