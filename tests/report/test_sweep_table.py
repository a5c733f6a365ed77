"""A sweep on the screen: nccl-tests' columns, read back word by word; and what a journal from elsewhere may hold."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.report.fold import fold
from nodectl.report.human import TaskLog, View
from nodectl.report.json import report
from nodectl.report.sweep_table import sweep_lines
from nodectl.wire.event import Event

HOSTS = ["n1", "n2"]


def row(size: int, time: float, in_place: bool, wrong: int = 0, ranks: tuple[float, ...] = ()) -> dict[str, Any]:
    return {
        "bytes": size, "count": size // 4, "time": time, "algbw": size / time, "busbw": 1.5 * size / time, "wrong": wrong, "in_place": in_place,
        "ranks": list(ranks or (time,) * 4),
    }


def sweep(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    plain = {
        "hosts": HOSTS, "op": "all_gather", "dtype": "float32", "redop": "", "root": -1, "backend": "gloo", "ranks": 4, "nproc": 2, "in_place": True,
        "floor": None, "source": "", "note": "", "rows": list(rows),
    }
    return {**plain, **changes}


def shown(data: dict[str, Any], single: bool = True) -> list[str]:
    return [line.plain for line in sweep_lines(data, single)]


TWO = sweep(row(1024, 0.0005, False), row(1024, 0.00025, True), row(10**9, 0.5, False), row(10**9, 0.25, True))


def test_columns_are_those_of_nccl_tests() -> None:
    lines = shown(TWO)
    assert lines[1] == "# all_gather over 4 ranks on 2 nodes, gloo"
    assert lines[2].split() == ["#", "out-of-place", "in-place"]
    half = ["time", "algbw", "busbw", "#wrong"]
    assert lines[3].split() == ["#", "size", "count", "type", "redop", "root", *half, *half, "slowest", "rank"]
    assert lines[4].split() == ["#", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)", "(us)", "(GB/s)", "(GB/s)"]
    # 1024 B in 500 us are 0.002048 GB/s; 1e9 B in 0.25 s are 4 GB/s
    assert lines[5].split() == ["1024", "256", "float", "none", "-1", "500.00", "0.002048", "0.003072", "0", "250.00", "0.004096", "0.006144", "0"]
    assert lines[6].split() == ["1000000000", "250000000", "float", "none", "-1", "500000.00", "2.00", "3.00", "0", "250000.00", "4.00", "6.00", "0"]
    assert len(lines) == 7


def test_columns_stand_below_their_names() -> None:
    lines = shown(TWO)
    for name, value in (("size", "1024"), ("count", "256"), ("root", "-1")):
        assert lines[3].index(name) + len(name) == lines[5].index(value) + len(value)
    assert lines[3].index("time") + 4 == lines[5].index("500.00") + 6
    assert lines[3].rindex("busbw") + 5 == lines[5].rindex("0.006144") + 8
    assert all(len(line) < 150 for line in lines)


@pytest.mark.parametrize(("place", "expected"), [
    (True, ["N/A", "N/A", "500.00", "0.002048", "0.003072", "0"]), (False, ["500.00", "0.002048", "0.003072", "0", "N/A", "N/A"]),
])
def test_a_place_that_there_is_not_is_na(place: bool, expected: list[str]) -> None:
    assert shown(sweep(row(1024, 0.0005, place)))[-1].split()[5:] == expected


def test_types_have_nccl_tests_names() -> None:
    for dtype, name in (("float32", "float"), ("float16", "half"), ("float64", "double"), ("bfloat16", "bfloat16"), ("int8", "int8")):
        assert shown(sweep(row(8, 1.0, True), dtype=dtype, redop="sum", root=3))[-1].split()[2:5] == [name, "sum", "3"]


def test_the_floor_is_told_with_its_source() -> None:
    assert "at least 0.0125 GB/s (policy (tcp, 2026-08))" in shown(sweep(row(8, 1.0, True), floor=12.5e6, source="policy (tcp, 2026-08)"))[1]


# times of the ranks 0 to 3; two ranks per host
SLOWEST = [
    ((1.0, 1.0, 1.0, 1.0), ""), ((1.0, 1.0, 1.2, 1.0), ""), ((1.0, 1.0, 1.0, 2.0), "3 (n2): 2.0x"), ((3.0, 1.0, 1.0, 1.0), "0 (n1): 3.0x"),
    ((1.0, 1.0, 1.5, 1.6), "3 (n2): 1.6x"),
]


@pytest.mark.parametrize(("ranks", "text"), SLOWEST)
def test_the_slowest_rank_is_named_where_it_stands_out(ranks: tuple[float, ...], text: str) -> None:
    line = shown(sweep(row(8, max(ranks), True, ranks=ranks)))[-1]
    assert line.endswith(text or "0")


def test_wrong_values_are_red_and_never_left_out() -> None:
    bad = sweep(row(1024, 0.0005, True, wrong=3))
    assert any(line.style == "bold red" for line in sweep_lines(bad, single=False))
    assert shown(bad, single=False)[-1].split()[-1] == "3"


def test_sweeps_of_one_size_are_shown_when_asked_for() -> None:
    assert shown(sweep(row(1024, 0.0005, True)), single=False) == []
    assert len(shown(TWO, single=False)) == 7


def test_what_cannot_be_done_is_said() -> None:
    refused = sweep(note="not possible with gloo: no averages of integers", redop="avg", dtype="int32")
    assert shown(refused, single=False) == ["# all_gather int32 avg: not possible with gloo: no averages of integers"]


@pytest.mark.parametrize("verbosity", [0, 1])
def test_the_log_shows_them(verbosity: int) -> None:
    log = TaskLog(View(verbosity))
    assert len(log.lines(Event("sweep", 1.0, "", TWO))) == 7
    assert len(log.lines(Event("sweep", 1.0, "", sweep(row(8, 1.0, True))))) == (6 if verbosity else 0)


def test_report_json_has_the_rows_without_each_ranks_time() -> None:
    (found,) = report(fold([Event("sweep", 1.0, "", TWO)]))["sweeps"]
    assert (found["op"], found["backend"], len(found["rows"])) == ("all_gather", "gloo", 4)
    assert found["rows"][0] == {key: value for key, value in TWO["rows"][0].items() if key != "ranks"}


ODD: list[dict[str, Any]] = [
    {}, {"rows": None}, {"rows": [5, "x", None]}, {"rows": [{}]}, {"rows": [{"bytes": "x", "time": "y", "ranks": "zz"}]}, {"rows": [{"ranks": [None, "a"], "time": True}]},
    {"rows": [{"bytes": 8, "ranks": [0.0, 0.0]}], "hosts": None, "nproc": 0}, {"rows": [{"bytes": 8, "ranks": [1.0, 9.0]}], "hosts": [], "nproc": 1},
    {"rows": [{"bytes": 8, "in_place": "yes", "wrong": "many"}], "floor": "high"},
]


@pytest.mark.parametrize("data", ODD, ids=str)
def test_a_journal_written_by_hand_ends_nothing(data: dict[str, Any]) -> None:
    assert isinstance(shown(data), list)
    assert isinstance(TaskLog(View(1)).lines(Event("sweep", 1.0, "", data)), list)
    assert len(report(fold([Event("sweep", 1.0, "", data)]))["sweeps"]) == 1
