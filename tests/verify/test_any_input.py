"""Whatever stands in a file, an inventory or a rank's output: the readers answer with a value or with their own error."""

from __future__ import annotations

import contextlib
import copy
import json
import tomllib
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nodectl.verify.suite_load as suite_load
from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.group.pairs import retest, rounds
from nodectl.verify.judging.floor_load import FLOORS, FloorError, best_floor, floors_of
from nodectl.verify.judging.formulas import Undefined, bandwidth, collectives, message_bytes
from nodectl.verify.judging.units import UnitError, human, quantity, to_base, unit
from nodectl.verify.parse.nccl_log import network_used
from nodectl.verify.parse.workload import group_output
from nodectl.verify.settings import mistakes
from nodectl.verify.suite_load import SUITES, SuiteError, suite_of

FEW = settings(deadline=None, max_examples=40)
LEAF = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=6)
ANY = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=5)

# -- files: each shipped one with each value in each place

ODD: list[Any] = ["", "x", 0, -1, True, 1.5, float("nan"), float("inf"), [], ["x"], [0], {}, {"a": 1}, "1e999 s", "5 parsec"]


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value) if isinstance(value, str) else str(value)


def text(name: str, entries: list[dict[str, Any]]) -> str:
    return "".join(f"[[{name}]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in entry.items()) for entry in entries)


@pytest.mark.parametrize("path", sorted(SUITES.glob("*.toml")), ids=lambda path: path.stem)
def test_a_suite_with_anything_anywhere_is_read_or_refused(path: Path) -> None:
    steps = tomllib.loads(path.read_text("utf-8"))["step"]
    read = 0
    for number, entry in enumerate(steps):
        for key in entry:
            for value in ODD:
                changed = copy.deepcopy(steps)
                changed[number][key] = value
                with contextlib.suppress(SuiteError):
                    suite = suite_of(text("step", changed), "case")
                    read += 1
                    # whatever was taken is bounded, and more than nothing
                    assert all(0 < step.deadline <= suite_load.LONGEST for step in suite.steps)
                    assert all(size > 0 for step in suite.steps for size in (*step.sizes, *step.gpu_sizes))
    assert read > 0


@pytest.mark.parametrize("path", sorted(FLOORS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_floor_with_anything_anywhere_is_read_or_refused(path: Path) -> None:
    parsed = tomllib.loads(path.read_text("utf-8"))
    entry = {**parsed.get("every", {}), **parsed["floor"][0]}
    for key in entry:
        for value in ODD:
            with contextlib.suppress(FloorError):
                floor, *_ = floors_of(text("floor", [{**entry, key: value}]), "case.toml")
                assert 0 < floor.floor <= floor.bound < float("inf")
                assert floor.source
                best_floor([floor], floor.metric, {"nodes": 2, "gpus": 8, "bytes": 2**34})


@FEW
@given(st.text(max_size=60))
def test_any_text_is_no_suite_and_no_floor(words: str) -> None:
    with contextlib.suppress(SuiteError):
        suite_of(words, "case")
    with contextlib.suppress(FloorError):
        floors_of(words, "case.toml")


# -- inventories and units

SETTINGS = ["network_floor", "expected_busbw", "scratch_floor", "file_mount_floor", "expected_gpus", "expected_hcas", "base_nofile", "base_memlock", "torch_env", "file_mounts",
            "fabric_subnets", "fabric_exclude"]


@FEW
@given(st.dictionaries(st.sampled_from(SETTINGS), ANY, max_size=5))
def test_any_variables_give_sentences_that_name_them(variables: dict[str, Any]) -> None:
    found = mistakes(variables)
    assert all(sentence.partition(":")[0] in variables for sentence in found)


@FEW
@given(ANY, st.sampled_from(["B/s", "B", "s", "count"]))
def test_a_quantity_is_finite_and_not_negative_or_refused(value: Any, base: str) -> None:
    with contextlib.suppress(UnitError):
        assert 0 <= quantity(value, base) < float("inf")


@FEW
@given(st.floats(0, 1e15), st.sampled_from(["B/s", "kB/s", "MB/s", "GiB/s", "Mb/s", "Gbit/s", "Gbps"]))
def test_units_there_and_back(value: float, name: str) -> None:
    base = to_base(value, name, "B/s")
    assert base / unit(name).factor == pytest.approx(value)
    assert human(base, "B/s")
    assert quantity(f"{value:.6f} {name}", "B/s") == pytest.approx(base, rel=1e-6, abs=1e3)


# -- formulas


@FEW
@given(st.sampled_from(collectives()), st.integers(2, 4096), st.floats(1e-9, 1e6), st.integers(1, 2**40))
def test_bandwidth_is_positive_and_busbw_never_above_twice_algbw(collective: str, count: int, seconds: float, piece: int) -> None:
    size = message_bytes(collective, piece, count)
    found = bandwidth(collective, size, count, seconds)
    assert found.algbw == pytest.approx(size / seconds)
    assert 0 < found.busbw < 2 * found.algbw or found.busbw == found.algbw


@pytest.mark.parametrize(("size", "count", "seconds"), [(1, 1, 1.0), (1, 0, 1.0), (0, 2, 1.0), (-1, 2, 1.0), (1, 2, 0.0), (1, 2, -1.0), (1, 2, float("nan")), (1, 2, float("inf"))])
def test_what_has_no_bandwidth(size: int, count: int, seconds: float) -> None:
    with pytest.raises(Undefined):
        bandwidth("all_reduce", size, count, seconds)


# -- what ranks print

RECORDS = st.dictionaries(st.sampled_from(["kind", "rank", "ranks", "bytes", "seconds", "wrong", "correct", "phase", "error", "reason", "torch"]), ANY | st.sampled_from(
    ["result", "missing", "error", "ready", "skipped"]) | st.integers(0, 4) | st.just([0.5]), max_size=8)


@FEW
@given(st.lists(st.lists(RECORDS, max_size=4), max_size=3), st.integers(1, 4))
def test_any_lines_of_any_ranks_are_read(outputs: list[list[dict[str, Any]]], count: int) -> None:
    found = group_output({f"n{index}": "".join(f"NODECTL {json.dumps(record)}\n" for record in lines) for index, lines in enumerate(outputs)}, count)
    for size in found.sizes:
        assert size.bytes > 0
        assert size.wrong >= 0
        if count > 1:
            assert 0 < size.bandwidth("all_reduce", count, "mean").busbw < float("inf")
    assert all(0 <= rank < count for rank in (*found.missing, *found.errors, *found.ready))


@FEW
@given(st.text(max_size=80))
def test_any_text_is_no_output(words: str) -> None:
    assert group_output({"n1": words}, 1).sizes == ()
    network_used(words)


# -- answers

WANTS = [("number", 3.0), ("text", "x"), ("truth", True), ("texts", ["x"]), ("address", "10.0.0.1"), ("parts", [{"a": 1}])]


@FEW
@given(ANY, st.sampled_from([name for name, _ in WANTS]))
def test_an_answer_is_of_its_type_or_garbled(value: Any, name: str) -> None:
    with contextlib.suppress(Garbled):
        found = getattr(Answer("probe", {"key": value}), name)("key")
        assert type(found) is {"number": float, "text": str, "truth": bool, "texts": list, "address": str, "parts": list}[name]


@pytest.mark.parametrize(("name", "good"), WANTS)
def test_a_good_answer_and_none(name: str, good: Any) -> None:
    assert getattr(Answer("probe", {"key": good}), name)("key") == good
    with pytest.raises(Garbled, match="probe gave nothing for key; expected"):
        getattr(Answer("probe", {}), name)("key")


# -- pairs


@FEW
@given(st.integers(0, 40), st.integers(0, 50))
def test_rounds_use_nobody_twice_and_repeat_no_pair(count: int, limit: int) -> None:
    hosts = [f"n{index}" for index in range(count)]
    plan = rounds(hosts, limit)
    for pairs in plan:
        used = [host for pair in pairs for host in pair]
        assert len(used) == len(set(used))
    flat = [pair for pairs in plan for pair in pairs]
    assert len(flat) == len(set(flat))
    assert set(flat) <= set(combinations(hosts, 2))


@FEW
@given(st.sets(st.integers(0, 20)), st.sets(st.integers(21, 40)), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=10))
def test_a_retest_gives_each_suspect_one_trusted_partner(suspects: set[int], trusted: set[int], met: list[tuple[int, int]]) -> None:
    again = retest([f"n{index}" for index in suspects], [f"n{index}" for index in trusted], [(f"n{a}", f"n{b}") for a, b in met])
    assert len(again) == min(len(suspects), len(trusted))
    assert len({partner for _, partner in again}) == len(again)
