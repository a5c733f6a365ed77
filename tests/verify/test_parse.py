"""What programs print, turned into numbers: torn, mixed and missing lines included."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodectl.verify.formulas import Undefined
from nodectl.verify.parse.nccl_log import network_used
from nodectl.verify.parse.workload import group_output, records


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
    assert size.bandwidth("all_reduce", 2, "median").busbw == pytest.approx(1000 / 3.5)


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


@pytest.mark.parametrize(("log", "used"), [
    ("n1:1:1 [0] NCCL INFO Using network IB\n", "IB"),
    ("n1:1:1 [0] NCCL INFO Using network Socket\nn1:1:1 [1] NCCL INFO Using network IB\n", "IB,Socket"),
    ("n1:1:1 [0] NCCL INFO Using network AWS Libfabric\n", "Libfabric"),
    ("n1:1:1 [0] NCCL INFO NET/IB : No device found.\n", ""),
    ("", ""),
])
def test_the_network_that_nccl_names(log: str, used: str) -> None:
    assert network_used(log) == used
