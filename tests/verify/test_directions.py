"""Which way is a slow node slow? Broadcasts each way over made-up links; what is not known is not claimed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nodectl.transport.channel import Target
from nodectl.verify.group.directions import MOST, both_ways, with_directions
from nodectl.verify.group.gang import GangResult, Member, Program
from nodectl.verify.group.isolate import Finding
from nodectl.verify.parse.workload import GroupOutput, SizeResult
from nodectl.verify.session import Gone, Session
from nodectl.verify.suite_load import SuiteStep

SIZE = 8 * 2**20
STEP = SuiteStep("pairs", 60.0, (2**20, SIZE), (2**30,), {"iterations": 3.0, "warmup": 1.0, "timeout": 20.0, "rounds": 3.0})


def members(*hosts: str) -> list[Member]:
    nobody: object = None
    return [Member(Session(host, Target(host, host), {}, nobody), host, "eth0", 1, "python3", "gloo") for host in hosts]  # type: ignore[arg-type]


def finding(host: str, bad: bool) -> Finding:
    return Finding(host, "node" if bad else "none", 1e9, 5e8, "half", "12 MB/s with n1", 1e7 if bad else 1e9)


def findings(*slow: str, count: int = 4) -> dict[str, Finding]:
    return {f"n{index}": finding(f"n{index}", f"n{index}" in slow) for index in range(1, count + 1)}


class Link:
    """Runs programs: the first case takes what sending takes, the second what receiving takes (B/s)."""

    def __init__(self, sending: float, receiving: float, **odd: object) -> None:
        self.speeds, self.odd = (sending, receiving), odd
        self.groups: list[tuple[str, ...]] = []
        self.programs: list[Program] = []

    def run(self, group: Sequence[Member], program: Program) -> GangResult:
        self.groups.append(tuple(member.host for member in group))
        self.programs.append(program)
        cases = {number: (SizeResult(SIZE, (SIZE / speed,), 0),) for number, speed in enumerate(self.speeds)}
        return GangResult(GroupOutput(cases=cases), 2, **self.odd)  # type: ignore[arg-type]


@pytest.mark.parametrize(("sending", "receiving", "way"), [
    (1e7, 6e8, "sending"), (6e8, 1e7, "receiving"), (1e7, 1e7, ""), (1e7, 1.9e7, ""), (6e8, 5e8, ""), (1e7, 2.1e7, "sending"),
])
def test_the_slow_direction_is_named(sending: float, receiving: float, way: str) -> None:
    link = Link(sending, receiving)
    found = with_directions(findings("n3"), members("n1", "n2", "n3", "n4"), STEP, link.run)
    assert found["n3"].one_way == way
    assert (f"Slow only when n3 is {way}" in found["n3"].detail) is bool(way)
    assert link.groups == [("n3", "n1")]
    assert {host: one for host, one in found.items() if host != "n3"} == {host: one for host, one in findings("n3").items() if host != "n3"}


def test_one_start_measures_both_ways() -> None:
    program = both_ways(members("n3", "n1"), STEP)
    assert [(case.op, case.root, case.sizes) for case in program.cases] == [("broadcast", 0, (SIZE,)), ("broadcast", 1, (SIZE,))]
    assert (program.deadline, program.timeout) == (60.0, 20.0)


def test_the_roots_are_ranks_of_both_nodes() -> None:
    """On nodes of eight GPUs the second node's first rank is the eighth."""
    gpus = [Member(member.session, member.address, member.interface, 8, member.python, "nccl") for member in members("n3", "n1")]
    assert [case.root for case in both_ways(gpus, STEP).cases] == [0, 8]


@pytest.mark.parametrize("odd", [{"gone": {"n1": Gone("lost", "no byte")}}, {"blamed": {"n3": "signal 9"}}, {"errors": {"n1": "timeout"}}])
def test_what_gave_no_figure_changes_nothing(odd: dict[str, object]) -> None:
    assert with_directions(findings("n3"), members("n1", "n3"), STEP, Link(1e7, 6e8, **odd).run) == findings("n3")


def test_a_case_that_is_missing_changes_nothing() -> None:
    def run(_group: Sequence[Member], _program: Program) -> GangResult:
        return GangResult(GroupOutput(cases={0: (SizeResult(SIZE, (1.0,), 0),)}), 2)

    assert with_directions(findings("n3"), members("n1", "n3"), STEP, run) == findings("n3")


@pytest.mark.parametrize(("slow", "there"), [((), ("n1", "n2")), (("n1", "n2", "n3", "n4"), ("n1", "n2")), (("n3",), ("n1", "n2")), (("n3",), ("n3",))])
def test_without_a_slow_or_a_good_node_nothing_is_measured(slow: tuple[str, ...], there: tuple[str, ...]) -> None:
    link = Link(1e7, 6e8)
    assert with_directions(findings(*slow), members(*there), STEP, link.run) == findings(*slow)
    assert link.groups == []


def test_many_slow_nodes_are_not_asked_each() -> None:
    link = Link(1e7, 6e8)
    count = MOST + 1
    slow = [f"n{index}" for index in range(1, count + 1)]
    with_directions(findings(*slow, count=40), members(*(f"n{index}" for index in range(1, 41))), STEP, link.run)
    assert link.groups == []


def test_two_slow_nodes_are_asked_at_once_with_partners_of_their_own() -> None:
    link = Link(1e7, 6e8)
    found = with_directions(findings("n1", "n2"), members("n1", "n2", "n3", "n4"), STEP, link.run)
    assert sorted(link.groups) == [("n1", "n3"), ("n2", "n4")]
    assert (found["n1"].one_way, found["n2"].one_way) == ("sending", "sending")


def test_who_died_in_every_pair_is_not_asked() -> None:
    """Without a figure there is no direction to tell."""
    dead = {**findings(), "n3": Finding("n3", "node", None, 5e8, "half", "no figure")}
    link = Link(1e7, 6e8)
    assert with_directions(dead, members("n1", "n2", "n3"), STEP, link.run) == dead
    assert link.groups == []
