"""The judge: one-sided, never a pass for what is not known, units made equal before numbers are compared."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.verify.judging.floor_load import Floor
from nodectl.verify.judging.judge import Expectation, judge, node_verdict, reasons
from nodectl.verify.judging.measurement import Check, Measurement, Verdict, check_data
from nodectl.verify.judging.units import to_base, unit

M = Measurement


def want(op: Any, value: Any, unit: str = "B/s", host: str = "") -> Expectation:
    return Expectation("m", op, value, unit, "because", host)


def measured(value: Any, unit: str = "B/s", **more: Any) -> Measurement:
    return M("m", value, unit, ("n1",), "by hand", **more)


NAN, INF = float("nan"), float("inf")
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
    # values that no measurement gives
    (measured(NAN), [want("at_least", 1)], "unknown", "the value is nan"),
    (measured(NAN), [want("at_most", 1)], "unknown", "the value is nan"),
    (measured(NAN), [want("equals", NAN)], "unknown", "the value is nan"),
    (measured(INF), [want("at_least", 1)], "unknown", "the value is inf"),
    (measured(-INF), [want("at_most", 1)], "unknown", "the value is -inf"),
    (measured(-5.0), [want("at_least", 1)], "fail", "measured -5"),
    (measured(0.0), [want("at_least", 1)], "fail", "measured 0"),
    (measured(0.0), [want("at_least", 0)], "pass", "measured 0"),
    (measured(1e300), [want("at_least", 1)], "pass", "measured 1e+288 TB/s"),
    (measured(5e-324), [want("at_least", 1)], "fail", "4.941e-324"),
    (measured(True), [want("at_least", 1)], "unknown", "not both numbers"),
    (measured(100.0), [want("at_least", True)], "unknown", "not both numbers"),
    (measured(100.0), [want("at_least", "100")], "unknown", "not both numbers"),
    # bars that are none
    (measured(100.0), [want("at_least", NAN)], "unknown", "nan is no bar"),
    (measured(100.0), [want("at_least", -INF)], "unknown", "-inf is no bar"),
    (measured(100.0), [want("at_most", INF)], "unknown", "inf is no bar"),
    # units
    (measured(1500.0, "B"), [want("equals", 1500.0, "count")], "unknown", "B and count are of two kinds"),
    (measured(100.0, "furlong"), [want("at_least", 1)], "unknown", "unknown unit"),
    (measured(100.0, "furlong"), [want("equals", 100.0, "furlong")], "unknown", "unknown unit"),
    (measured(100.0, "furlong"), [], "unknown", "measured 100 furlong, but no floor is known"),
    (measured("xfs", "text"), [want("equals", "xfs", "bool")], "unknown", "of two kinds"),
    (measured(1.0, "bool"), [want("equals", True, "bool")], "pass", "measured 1"),
    (measured(100.0), [want("at_least", 1, "Gb/s")], "fail", "expected at least 125 MB/s"),
]


@pytest.mark.parametrize(("measurement", "expectations", "verdict", "words"), CASES)
def test_cases(measurement: Measurement, expectations: list[Expectation], verdict: Verdict, words: str) -> None:
    (check,) = judge([measurement], [], expectations)
    assert check.verdict == verdict, check.reason
    assert words in check.reason
    assert check.host == "n1"


def test_what_is_no_number_is_not_in_the_check() -> None:
    """The journal is JSON: nan would be read by Python alone."""
    (check,) = judge([measured(NAN)], [], [want("at_least", 1)])
    assert check.value is None
    assert json.loads(json.dumps(asdict(check), allow_nan=False))["verdict"] == "unknown"


@settings(deadline=None, max_examples=100)
@given(
    st.none() | st.floats() | st.booleans() | st.text(max_size=3), st.sampled_from(["B/s", "MB/s", "s", "bool", "text", "count", "", "x"]),
    st.sampled_from(["at_least", "at_most", "equals"]), st.floats() | st.booleans() | st.text(max_size=3), st.sampled_from(["B/s", "GB/s", "ms", "bool", "text", "y"]),
)
def test_nothing_raises_and_only_what_holds_passes(value: Any, unit_name: str, op: Any, wanted: Any, wanted_unit: str) -> None:
    (check,) = judge([measured(value, unit_name)], [], [want(op, wanted, wanted_unit)])
    assert check.reason
    if check.verdict == "pass" and op != "equals":
        base = to_base(value, unit_name, unit(unit_name).base), to_base(wanted, wanted_unit, unit(unit_name).base)
        assert base[0] >= base[1] if op == "at_least" else base[0] <= base[1]
        assert all(map(math.isfinite, base))
    if check.verdict == "pass" and op == "equals":
        assert value == wanted


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["pass", "fail", "unknown"]), max_size=6), st.randoms())
def test_the_order_of_checks_does_not_matter(verdicts: list[Verdict], shuffle: random.Random) -> None:
    mixed = list(verdicts)
    shuffle.shuffle(mixed)
    assert node_verdict([check(one) for one in mixed]) == node_verdict([check(one) for one in verdicts])
    assert (node_verdict([check(one) for one in verdicts]) == "pass") is (set(verdicts) == {"pass"})


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


@pytest.mark.parametrize(("value", "wanted", "verdict"), [(True, True, "pass"), (False, True, "fail"), ("tcp", "ib", "fail")])
def test_the_floor_is_of_the_kind_of_the_value(value: bool | str, wanted: bool | str, verdict: Verdict) -> None:
    """Both stand side by side in report.json and evidence.json."""
    measurement = Measurement("network.x", value, "bool" if isinstance(value, bool) else "text", ("n1",), "m")
    check = judge([measurement], [], [Expectation("network.x", "equals", wanted, measurement.unit, "why")])[0]
    assert (check.verdict, check.floor) == (verdict, wanted)
    assert type(check.floor) is type(wanted)


RELATIVE = Expectation("m", "at_least", 5.0, "B/s", "half of the fleet's median", source="this fleet", alone=False)


@pytest.mark.parametrize(("value", "others", "verdict", "unfloored"), [
    (10.0, [], "unknown", True), (1.0, [], "fail", False), (10.0, [Expectation("m", "at_least", 8.0, "B/s", "floor")], "pass", False),
    (10.0, [Expectation("m", "at_least", 80.0, "B/s", "floor")], "fail", False), (1.0, [Expectation("m", "at_least", 0.5, "B/s", "floor")], "fail", False),
    (None, [], "unknown", False), ("x", [], "unknown", False),
])
def test_being_like_the_others_is_no_proof(value: Any, others: list[Expectation], verdict: Verdict, unfloored: bool) -> None:
    (check,) = judge([M("m", value, "B/s", ("n1",), "tool")], [], [RELATIVE, *others])
    assert (check.verdict, check.unfloored) == (verdict, unfloored)


def test_a_floor_beside_it_is() -> None:
    (check,) = judge([M("disk.x", 30e6, "B/s", ("n1",), "fio", {"device": "loop"})], [FLOOR], [Expectation("disk.x", "at_least", 5.0, "B/s", "x", alone=False)])
    assert check.verdict == "pass"


def test_the_way_out_is_named_for_rates_only() -> None:
    (rate,) = judge([M("m", 1e9, "B/s", ("n1",), "tool", {"sku": "L40S"})], [], [])
    (count,) = judge([M("m", 3.0, "count", ("n1",), "tool")], [], [])
    assert "no floor is known for m (sku L40S): give one in hosts.yaml, or make what healthy nodes reach the site's own: nodectl verify HOSTS --adopt" in rate.reason
    assert "--adopt" not in count.reason


def test_unfloored_stays_inside() -> None:
    (rate,) = judge([M("m", 1e9, "B/s", ("n1",), "tool")], [], [])
    assert "unfloored" not in check_data(rate, "pairs")
