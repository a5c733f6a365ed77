"""What programs print, turned into numbers: torn, mixed and missing lines included."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodectl.verify.judging.formulas import Undefined
from nodectl.verify.parse.workload import Pace, group_output, records


def line(**data: Any) -> str:
    return "NODECTL " + json.dumps(data) + "\n"


def result(rank: int, size: int, *seconds: float, wrong: int = 0) -> str:
    return line(kind="result", rank=rank, bytes=size, seconds=list(seconds), correct=not wrong, wrong=wrong)


def test_the_iterations_of_the_slowest_rank_count_and_each_rank_keeps_its_mean() -> None:
    """As nccl-tests does: who comes early and waits is not slow, so times of several ranks are never mixed."""
    found = group_output({"a": result(0, 1000, 1.0, 4.0), "b": result(1, 1000, 2.0, 3.5)}, 2)
    (size,) = found.sizes
    assert size.seconds == (2.0, 3.5)
    assert size.ranks == (2.5, 2.75)
    assert size.bandwidth("all_reduce", 2, "mean").busbw == pytest.approx(1000 / 2.75)
    assert size.bandwidth("all_reduce", 2, "median").busbw == pytest.approx(1000 / 2.75)


def test_a_size_that_a_rank_did_not_report_does_not_count() -> None:
    found = group_output({"a": result(0, 1000, 1.0) + result(0, 2000, 1.0), "b": result(1, 1000, 1.0)}, 2)
    assert [size.bytes for size in found.sizes] == [1000]


def test_the_same_rank_twice_is_not_two_ranks() -> None:
    assert group_output({"a": result(0, 1000, 1.0), "b": result(0, 1000, 1.0)}, 2).sizes == ()


def test_sizes_come_in_order_and_wrong_values_are_summed() -> None:
    found = group_output({"a": result(0, 2000, 1.0, wrong=2) + result(0, 1000, 1.0), "b": result(1, 1000, 1.0) + result(1, 2000, 1.0, wrong=5)}, 2)
    assert [(size.bytes, size.wrong) for size in found.sizes] == [(1000, 0), (2000, 7)]


def test_what_else_a_library_prints_is_passed_over() -> None:
    noise = "[W socket.cpp] warning\n" + line(kind="ready", rank=0, torch="2.13", device="cpu") + 'NODECTL {"kind": "resu\nNODECTL [1]\n{"kind": "result"}\n'
    assert [record["kind"] for record in records(noise)] == ["ready"]
    assert group_output({"a": noise}, 1).torch == "2.13"


def test_errors_and_missing_ranks_are_kept() -> None:
    text = line(kind="missing", rank=0, ranks=[2, 3]) + line(kind="error", rank=0, phase="store", error="timeout") + line(kind="skipped", rank=0, bytes=1, reason="no room")
    found = group_output({"a": text}, 4)
    assert found.missing == {2, 3}
    assert found.errors == {0: "store: timeout"}
    assert found.skipped == ("no room",)
    assert found.sizes == ()


def test_one_rank_has_no_bandwidth() -> None:
    (size,) = group_output({"a": result(0, 1000, 1.0)}, 1).sizes
    with pytest.raises(Undefined):
        size.bandwidth("all_reduce", 1, "mean")


# -- cases, pace and what cannot be done


def test_cases_are_kept_apart() -> None:
    text = "".join(line(kind="result", rank=0, case=case, bytes=800, count=200, seconds=[0.1 * (case + 1)], wrong=case) for case in (0, 2))
    found = group_output({"a": text}, 1)
    assert {case: [(size.bytes, size.count, size.seconds, size.wrong) for size in sizes] for case, sizes in found.cases.items()} == {
        0: [(800, 200, (0.1,), 0)], 2: [(800, 200, (pytest.approx(0.3),), 2)],
    }
    assert found.sizes == found.cases[0]


def test_without_a_first_case_there_are_no_sizes() -> None:
    found = group_output({"a": line(kind="result", rank=0, case=3, bytes=800, seconds=[1.0], wrong=0)}, 1)
    assert found.sizes == ()
    assert [size.bytes for size in found.cases[3]] == [800]


@pytest.mark.parametrize("changes", [
    {"case": -1}, {"case": "0"}, {"case": True}, {"seconds": []}, {"seconds": [0.0]}, {"seconds": [-1]}, {"seconds": ["x"]}, {"seconds": 5}, {"seconds": [None]},
    {"wrong": -1}, {"wrong": None}, {"rank": 2}, {"rank": -1}, {"bytes": 0}, {"bytes": 1.5}, {"kind": "outcome"}, {"seconds": [float("1e999")]},
])
def test_a_result_that_lacks_what_it_promises_is_none(changes: dict[str, Any]) -> None:
    plain = {"kind": "result", "rank": 0, "case": 0, "bytes": 8, "count": 2, "seconds": [1.0], "wrong": 0}
    assert len(group_output({"a": line(**plain)}, 1).sizes) == 1
    assert group_output({"a": line(**{**plain, **changes})}, 1).cases == {}


@pytest.mark.parametrize("count", [None, -1, "2", 2.5, True])
def test_a_count_that_is_none_costs_only_the_count(count: object) -> None:
    (size,) = group_output({"a": line(kind="result", rank=0, case=0, bytes=8, count=count, seconds=[1.0], wrong=0)}, 1).sizes
    assert size.count == 0


def test_the_reason_of_a_rank_itself_is_worth_more() -> None:
    texts = [line(kind="unsupported", rank=rank, case=1, reason=reason) for rank, reason in enumerate(["another rank cannot do it", "Float can't be cast", "another rank cannot do it"])]
    assert group_output({"a": "".join(texts)}, 3).unsupported == {1: "Float can't be cast"}
    assert group_output({"a": texts[0] + line(kind="unsupported", case="x", reason="y") + line(kind="unsupported", case=2)}, 1).unsupported == {
        1: "another rank cannot do it", 2: "no reason was given",
    }


PACE: dict[str, Any] = {"kind": "pace", "rank": 0, "host": [0.1, 0.2], "cpu": [0.0, 0.1], "device": [], "wait": [0.01, 0.02]}


def test_pace() -> None:
    assert group_output({"a": line(**PACE)}, 1).pace == {0: Pace((0.1, 0.2), (0.0, 0.1), (), (0.01, 0.02))}
    assert group_output({"a": line(**{**PACE, "device": [1.0, 2.0]})}, 1).pace[0].device == (1.0, 2.0)


@pytest.mark.parametrize("changes", [
    {"host": []}, {"host": [0.1]}, {"cpu": [0.1]}, {"cpu": None}, {"device": [1.0]}, {"wait": [0.0, 0.1]}, {"wait": "x"}, {"rank": 1}, {"host": [0.1, -0.2]}, {"cpu": [0.1, "x"]},
])
def test_a_pace_that_does_not_hold_together_is_none(changes: dict[str, Any]) -> None:
    assert group_output({"a": line(**{**PACE, **changes})}, 1).pace == {}


@pytest.mark.parametrize(("moved", "expected"), [(5, {0: 5}), (0, {0: 0}), (-1, {}), ("5", {}), (1.5, {}), (True, {})])
def test_moved(moved: object, expected: dict[int, int]) -> None:
    assert group_output({"a": line(kind="moved", rank=0, bytes=moved)}, 1).moved == expected
