"""What is refused before anything is touched, and how a fault is kept; hosts are stood in for."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.lab import faults
from nodectl.lab.fault_kind import Act, FaultKind
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import Fault, LabHost, LabState, load


@pytest.fixture
def state(tmp_path: Path) -> LabState:
    state = LabState("id", "dev", tmp_path, phase="up", s3=True, hosts=(LabHost("n1", "10.77.4.11"), LabHost("n2", "10.77.4.12")))
    state.save()
    return state


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Faults that only say what would be done, under the names of real ones."""
    acts: list[str] = []

    def act(word: str) -> Act:
        def said(state: LabState, host: LabHost, value: str) -> None:
            if value == "breaks" and word == "apply":
                raise LabProblem("it did not work")
            acts.append(f"{word} {host.name} {value}".strip())

        return said

    kinds = (
        FaultKind("slow-link", "", "rate", act("apply"), act("lift")),
        FaultKind("down", "", "", act("apply"), act("lift")),
        FaultKind("disk-full", "", "mount point", act("apply"), act("lift"), default="/scratch"),
        FaultKind("store-down", "", "", act("apply"), act("lift"), of_host=False),
    )
    monkeypatch.setattr(faults, "kinds", lambda: kinds)
    return acts


@pytest.mark.parametrize(
    ("host", "fault", "value", "said"),
    [
        ("n1", "nonsense", "", "'nonsense' is not a fault: expected one of slow-link, down"),
        ("n1", "slow-lnk", "", "'slow-lnk' is not a fault: did you mean slow-link?"),
        ("n9", "down", "", "'n9' is not in lab 'dev': it has n1, n2"),
        ("", "down", "", "needs a host: one of n1, n2"),
        ("n1", "slow-link", "", "needs a value: rate"),
        ("n1", "down", "now", "takes no value, got 'now'"),
        ("n1", "store-down", "", "leave out 'n1'"),
    ],
)
def test_a_wrong_request_touches_nothing(state: LabState, done: list[str], host: str, fault: str, value: str, said: str) -> None:
    with pytest.raises(LabProblem) as problem:
        faults.apply(state, host, fault, value)
    assert said in str(problem.value)
    assert done == []
    assert load(state.dir) == state


def test_a_fault_is_written_down_before_it_is_applied_and_struck_out_when_lifted(state: LabState, done: list[str]) -> None:
    assert faults.apply(state, "n1", "slow-link", "100mbit").faults == [Fault("n1", "slow-link", "100mbit")]
    assert load(state.dir).faults == [Fault("n1", "slow-link", "100mbit")]  # type: ignore[union-attr]
    assert faults.lift(state, "n1", "slow-link").faults == []
    assert done == ["apply n1 100mbit", "lift n1 100mbit"]


def test_a_second_rate_takes_the_place_of_the_first(state: LabState, done: list[str]) -> None:
    faults.apply(state, "n1", "slow-link", "100mbit")
    now = faults.apply(state, "n1", "slow-link", "200mbit")
    assert now.faults == [Fault("n1", "slow-link", "200mbit")]
    assert done == ["apply n1 100mbit", "lift n1 100mbit", "apply n1 200mbit"]


def test_a_fault_that_fails_half_way_is_undone_and_not_kept(state: LabState, done: list[str]) -> None:
    with pytest.raises(LabProblem, match="it did not work"):
        faults.apply(state, "n1", "slow-link", "breaks")
    assert done == ["lift n1 breaks"]
    assert load(state.dir).faults == []  # type: ignore[union-attr]


def test_a_value_that_is_left_out_has_its_default(state: LabState, done: list[str]) -> None:
    assert faults.apply(state, "n2", "disk-full").faults == [Fault("n2", "disk-full", "/scratch")]


def test_lifting_what_was_not_applied_puts_things_right_all_the_same(state: LabState, done: list[str]) -> None:
    faults.lift(state, "n2", "disk-full")
    assert done == ["lift n2 /scratch"]


def test_all_faults_are_lifted_the_last_one_first(state: LabState, done: list[str]) -> None:
    faults.apply(state, "n1", "down")
    faults.apply(state, "", "store-down")
    assert faults.lift_all(state).faults == []
    assert done == ["apply n1", "apply", "lift", "lift n1"]


def test_a_lab_that_is_not_up_has_no_faults(tmp_path: Path) -> None:
    state = LabState("id", "dev", tmp_path, phase="starting")
    state.save()
    with pytest.raises(LabProblem, match="no lab is up"):
        faults.apply(state, "n1", "down")


def test_every_fault_says_what_it_does() -> None:
    kinds = faults.kinds()
    assert len({kind.name for kind in kinds}) == len(kinds) >= 30
    assert all(kind.about for kind in kinds)
    assert all(kind.value or not kind.default for kind in kinds)
