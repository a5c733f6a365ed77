"""Origin, step, outcome and event: round trips through JSON, and what a registered result looks like."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.wire.event import Event
from nodectl.wire.origin import Origin, origin_from_json
from nodectl.wire.outcome import Change, Outcome, outcome_from_json
from nodectl.wire.step import Step, step_from_json

FEW = settings(deadline=None, max_examples=40)
TEXT = st.text(max_size=8)
LEAF = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.dictionaries(TEXT, LEAF | st.lists(LEAF, max_size=2), max_size=3)
TEXTS = st.dictionaries(TEXT, TEXT, max_size=2)


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@FEW
@given(st.builds(Origin, TEXT, st.integers(1), st.integers(1), st.integers(1)))
def test_origin(origin: Origin) -> None:
    assert origin_from_json(through_json(origin.to_json())) == origin


def test_origin_for_people_and_for_nothing() -> None:
    assert str(Origin("roles/base/tasks/main.yml", 3, 7, 4)) == "roles/base/tasks/main.yml:3:7"
    assert Origin("x", 1, 1).width == 1
    assert origin_from_json(None) is None
    with pytest.raises(TypeError):
        origin_from_json({"file": "x", "line": 1, "column": 1, "colour": "red"})


@FEW
@given(st.builds(
    Step, st.integers(), TEXT, VALUES, st.booleans(), st.booleans(), st.none() | st.floats(0, 1e6), TEXTS, TEXTS, st.none() | st.integers(),
))
def test_step(step: Step) -> None:
    assert step_from_json(through_json(step.to_json())) == step


@FEW
@given(st.builds(
    Outcome, st.booleans(), st.booleans(), st.booleans(), TEXT, VALUES, st.lists(TEXTS, max_size=2), st.lists(TEXT, max_size=2), VALUES,
))
def test_outcome(outcome: Outcome) -> None:
    assert outcome_from_json(through_json(outcome.to_json())) == outcome


# What each field is when nobody says anything: an agent that leaves one out must not mean something else by it.
DEFAULTS = [
    (Step(1, "ping", {}), {"check": False, "diff": False, "timeout": None, "environment": {}, "blobs": {}, "needs": None}),
    (Outcome(), {"changed": False, "failed": False, "skipped": False, "msg": "", "values": {}, "diff": [], "warnings": [], "facts": {}}),
]


@pytest.mark.parametrize(("value", "expected"), DEFAULTS, ids=["step", "outcome"])
def test_defaults(value: Step | Outcome, expected: dict[str, Any]) -> None:
    assert {name: item for name, item in value.to_json().items() if name in expected} == expected


@pytest.mark.parametrize("kind", [Step, Outcome])
def test_to_json_has_every_field(kind: type[Step] | type[Outcome]) -> None:
    value = Step(1, "ping", {}) if kind is Step else Outcome()
    assert set(value.to_json()) == {field.name for field in dataclasses.fields(kind)}


def test_two_values_share_no_container() -> None:
    one, other = Outcome(), Outcome()
    one.values["a"] = 1
    one.warnings.append("w")
    assert other == Outcome()
    first, second = Step(1, "m", {}), Step(1, "m", {})
    first.environment["A"] = "b"
    assert second.environment == {}


def test_what_a_peer_of_another_version_says_is_refused() -> None:
    with pytest.raises(TypeError):
        outcome_from_json({"changed": True, "surprise": 1})
    with pytest.raises(TypeError):
        step_from_json({"id": 1})


# outcome, what the task registers: Ansible's keys, and no empty ones beside changed and failed
RESULTS: list[tuple[Outcome, dict[str, Any]]] = [
    (Outcome(), {"changed": False, "failed": False}),
    (Outcome(changed=True, msg="made"), {"changed": True, "failed": False, "msg": "made"}),
    (Outcome(failed=True, msg="no", values={"rc": 2}), {"changed": False, "failed": True, "msg": "no", "rc": 2}),
    (Outcome(skipped=True), {"changed": False, "failed": False, "skipped": True}),
    (Outcome(facts={"a": 1}), {"changed": False, "failed": False, "ansible_facts": {"a": 1}}),
    (Outcome(warnings=["w"], diff=[{"before": "", "after": "x"}]), {"changed": False, "failed": False, "warnings": ["w"], "diff": [{"before": "", "after": "x"}]}),
    # a module's own return value never overrides the truth about the step
    (Outcome(changed=True, failed=True, values={"changed": False, "failed": False}), {"changed": True, "failed": True}),
    (Outcome(msg="outer", values={"msg": "inner"}), {"changed": False, "failed": False, "msg": "outer"}),
    (Outcome(values={"msg": "inner"}), {"changed": False, "failed": False, "msg": "inner"}),
]


@pytest.mark.parametrize(("outcome", "result"), RESULTS)
def test_registered_result(outcome: Outcome, result: dict[str, Any]) -> None:
    assert outcome.to_result() == result


@pytest.mark.parametrize(("change", "wanted"), [(Change(), False), (Change(["do"]), True), (Change(before="a", after="b"), False), (Change(data={"x": 1}), False)])
def test_only_actions_make_a_change(change: Change, wanted: bool) -> None:
    assert bool(change) is wanted


@pytest.mark.parametrize("name", ["kind", "at", "host"])
def test_data_cannot_replace_what_the_event_is(name: str) -> None:
    """A lost host's event once carried a `kind` of its own: in the journal it was no longer a lost host."""
    with pytest.raises(ValueError, match=f"must not be called {name}"):
        Event("host.lost", 1.0, "n1", {name: "x", "reason": "y"})


def test_event_as_one_flat_object() -> None:
    event = Event("check", 2.5, "n1", {"name": "clock", "verdict": "pass"})
    assert event.to_json() == {"kind": "check", "at": 2.5, "host": "n1", "name": "clock", "verdict": "pass"}
    assert Event("x", 1.0).to_json() == {"kind": "x", "at": 1.0, "host": ""}
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.host = "n2"  # type: ignore[misc]
