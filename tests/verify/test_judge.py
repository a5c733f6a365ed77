"""The judge: one-sided, never a pass for what is not known, units made equal before numbers are compared."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.verify.floor_load import Floor
from nodectl.verify.judge import Expectation, judge, node_verdict, reasons
from nodectl.verify.measurement import Check, Measurement, Verdict

M = Measurement


def want(op: Any, value: Any, unit: str = "B/s", host: str = "") -> Expectation:
    return Expectation("m", op, value, unit, "because", host)


def measured(value: Any, unit: str = "B/s", **more: Any) -> Measurement:
    return M("m", value, unit, ("n1",), "by hand", **more)


# measurement, expectations, verdict, words of the reason
CASES: list[tuple[Measurement, list[Expectation], Verdict, str]] = [
    (measured(100.0), [want("at_least", 100)], "pass", "measured 100 B/s"),
    (measured(99.9), [want("at_least", 100)], "fail", "expected at least 100 B/s"),
    (measured(1e12), [want("at_least", 100)], "pass", "measured 1 TB/s"),
    (measured(0.3, "s"), [want("at_most", 500, "ms")], "pass", "at most 500 ms"),
    (measured(0.6, "s"), [want("at_most", 500, "ms")], "fail", "measured 600 ms, expected at most 500 ms"),
    (measured(2_048_000_000.0), [want("at_least", 2.0, "GB/s")], "pass", "measured 2.048 GB/s"),
    (measured(1_990_000_000.0), [want("at_least", 2.0, "GB/s")], "fail", "1.99 GB/s"),
    (measured(12.5e6), [want("at_least", 200, "Mb/s")], "fail", "12.5 MB/s (100 Mb/s), expected at least 25 MB/s (200 Mb/s)"),
    (measured(True, "bool"), [want("equals", True, "bool")], "pass", "measured yes"),
    (measured(False, "bool", detail="tmpfs at /scratch"), [want("equals", True, "bool")], "fail", "tmpfs at /scratch"),
    (measured("xfs", "text"), [want("equals", "ext4", "text")], "fail", "measured xfs, expected ext4"),
    (measured(None, error="timed out"), [want("at_least", 1)], "unknown", "timed out"),
    (measured(None), [want("at_least", 1)], "unknown", "no value"),
    (measured(100.0, error="cut short"), [want("at_least", 1)], "unknown", "cut short"),
    (measured(100.0), [], "unknown", "no floor is known"),
    (measured(100.0), [want("at_least", 1, "s")], "unknown", "cannot be compared"),
    (measured("many"), [want("at_least", 1)], "unknown", "cannot be compared"),
    (measured(100.0), [want("at_least", 1, host="n2")], "unknown", "no floor is known"),
    (measured(100.0), [want("at_least", 50), want("at_least", 200)], "fail", "at least 200 B/s"),
    (measured(100.0), [want("at_least", 200), want("at_least", 1, "s")], "fail", "at least 200 B/s"),
    (measured(100.0), [want("at_least", 50), want("at_least", 1, "s")], "unknown", "cannot be compared"),
    (measured(100.0, simulated=True), [want("at_least", 50)], "pass", "[simulated]"),
]


@pytest.mark.parametrize(("measurement", "expectations", "verdict", "words"), CASES)
def test_cases(measurement: Measurement, expectations: list[Expectation], verdict: Verdict, words: str) -> None:
    (check,) = judge([measurement], [], expectations)
    assert check.verdict == verdict, check.reason
    assert words in check.reason
    assert check.host == "n1"


FLOOR = Floor("disk.x", 20e6, "B/s", "mean", "policy", "2026-08", 1e12, "memory", "lab disks are shared", (("device", "loop"),))


@pytest.mark.parametrize(("value", "device", "verdict"), [(30e6, "loop", "pass"), (10e6, "loop", "fail"), (10e9, "nvme", "unknown")])
def test_floor_of_the_right_device(value: float, device: str, verdict: Verdict) -> None:
    (check,) = judge([M("disk.x", value, "B/s", ("n1",), "fio", {"device": device})], [FLOOR], [])
    assert check.verdict == verdict
    if verdict == "unknown":
        assert "device nvme" in check.reason
    else:
        assert (check.floor, check.source) == (20e6, "policy (loop, 2026-08)")
        assert "lab disks are shared" in check.reason


def test_a_site_bar_counts_beside_the_floor() -> None:
    site = Expectation("disk.x", "at_least", 100, "MB/s", "scratch_floor")
    (check,) = judge([M("disk.x", 50e6, "B/s", ("n1",), "fio", {"device": "loop"})], [FLOOR], [site])
    assert (check.verdict, check.floor) == ("fail", 100e6)


def test_one_check_per_host_of_a_group() -> None:
    checks = judge([M("m", 10.0, "B/s", ("n1", "n2"), "group")], [], [want("at_least", 5, host="n1"), want("at_least", 50, host="n2")])
    assert [(check.host, check.verdict) for check in checks] == [("n1", "pass"), ("n2", "fail")]


def check(verdict: Verdict, name: str = "c", reason: str = "r") -> Check:
    return Check("n1", name, verdict, reason)


@pytest.mark.parametrize(("verdicts", "worst"), [
    (["pass", "pass"], "pass"), (["pass", "unknown"], "unknown"), (["unknown", "fail", "pass"], "fail"), ([], "unknown"), (["fail"], "fail"),
])
def test_a_node_is_as_good_as_its_worst_check(verdicts: list[Verdict], worst: Verdict) -> None:
    assert node_verdict([check(verdict) for verdict in verdicts]) == worst


def test_reasons_come_worst_first_and_passes_are_silent() -> None:
    found = reasons([check("pass"), check("unknown", "clock", "no chrony"), check("fail", "disk", "slow")])
    assert found == ["disk: slow", "clock: no chrony"]
    assert reasons([check("pass")]) == []
    assert reasons([]) == ["nothing was measured"]
