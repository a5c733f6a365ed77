"""Readings: what the judge is given survives JSON, and what is no reading is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.verify.judging.judge import Expectation, judge
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import BadReading, Reading, absent, plain, reading_of

VALUES = st.none() | st.floats() | st.booleans() | st.text(max_size=5) | st.integers(-(10**6), 10**6)
MEASUREMENTS = st.builds(
    Measurement, st.sampled_from(["m", "n"]), VALUES, st.sampled_from(["B/s", "count", "text", "?"]), st.tuples(st.sampled_from(["n1", "n2"])), st.just("tool"),
    st.dictionaries(st.text(max_size=3), st.none() | st.floats() | st.text(max_size=3) | st.lists(st.floats(), max_size=2), max_size=2), st.text(max_size=3),
    st.sampled_from(["", "it broke"]), st.booleans(), st.sampled_from(["", "more"]), st.booleans(),
)
EXPECTATIONS = st.builds(
    Expectation, st.sampled_from(["m", "n"]), st.sampled_from(["at_least", "at_most", "equals"]), st.floats() | st.booleans() | st.text(max_size=3),
    st.sampled_from(["B/s", "count", "text"]), st.just("why"), st.sampled_from(["", "n1"]), st.sampled_from(["", "s"]), st.booleans(),
)


def through_json(reading: Reading) -> Reading:
    return reading_of(json.loads(json.dumps(reading.to_json(), allow_nan=False)))


@given(st.lists(MEASUREMENTS, max_size=3), st.lists(EXPECTATIONS, max_size=3))
def test_the_judge_cannot_tell_a_reading_from_its_copy(measurements: list[Measurement], expectations: list[Expectation]) -> None:
    copy = through_json(Reading(measurements, expectations))
    one, other = judge(measurements, [], expectations), judge(copy.measurements, [], copy.expectations)
    assert [(check.host, check.name, check.verdict, check.unfloored) for check in one] == [(check.host, check.name, check.verdict, check.unfloored) for check in other]
    assert through_json(copy) == copy


M = Measurement("m", 1.0, "B/s", ("n1", "n2"), "tool", {"nodes": 2}, "raw", simulated=True)
E = Expectation("m", "at_least", 0.5, "B/s", "why", "n1", "s")


def test_a_copy_is_equal() -> None:
    assert through_json(Reading([M], [E])) == Reading([M], [E])
    assert through_json(absent("pairs", "n1", "lost", "no byte")).measurements[0].gone


def test_without_takes_a_host_out_of_everything() -> None:
    both = Expectation("m", "at_least", 0.1, "B/s", "for all")
    alone = replace(M, name="n", hosts=("n1",))
    left = Reading([M, alone], [E, both]).without(["n1"])
    assert [(one.name, one.hosts) for one in left.measurements] == [("m", ("n2",))]
    assert left.expectations == [both]
    assert Reading([M, alone], [E, both]).without([]) == Reading([M, alone], [E, both])


GOOD = Reading([M], [E]).to_json()


@pytest.mark.parametrize(("part", "change", "words"), [
    ("measurements", {"extra": 1}, "extra"), ("measurements", {"hosts": "n1"}, "hosts"), ("measurements", {"conditions": []}, "conditions"),
    ("measurements", {"unit": None}, "unit"), ("measurements", {"gone": 1}, "gone"), ("measurements", {"value": [1]}, "value"), ("measurements", {"simulated": "no"}, "simulated"),
    ("expectations", {"op": "near"}, "op is 'near'"), ("expectations", {"alone": 1}, "alone"), ("expectations", {"why": 3}, "why"), ("expectations", {"value": {}}, "value"),
])
def test_a_wrong_part_is_named(part: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(BadReading, match=words):
        reading_of({**GOOD, part: [{**GOOD[part][0], **change}]})


@pytest.mark.parametrize("left_out", ["name", "value", "unit", "hosts", "method"])
def test_a_measurement_without_what_it_needs(left_out: str) -> None:
    entry = {key: value for key, value in GOOD["measurements"][0].items() if key != left_out}
    with pytest.raises(BadReading, match=left_out):
        reading_of({"measurements": [entry], "expectations": []})


@pytest.mark.parametrize("data", [{}, {"measurements": []}, {"measurements": 3, "expectations": []}, {"measurements": [], "expectations": [3]}, {"measurements": None, "expectations": []}])
def test_what_is_no_reading(data: dict[str, Any]) -> None:
    with pytest.raises(BadReading, match="expected a list of mappings"):
        reading_of(data)


@pytest.mark.parametrize(("value", "expected"), [
    (float("nan"), "nan"), (float("-inf"), "-inf"), ((1, 2), [1, 2]), ({1: {2}}, {"1": [2]}), (None, None), (True, True), (b"x", "b'x'"), (1.5, 1.5), ("x", "x"), (frozenset(), []),
])
def test_plain(value: Any, expected: Any) -> None:
    assert plain(value) == expected
