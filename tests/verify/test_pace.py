"""Which rank is slow by itself: the ratio, what is judged of it, and the looks that a suspect gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nodectl.transport.channel import Target
from nodectl.verify.group import pace_watch
from nodectl.verify.group.gang import GangResult, Member, Program
from nodectl.verify.group.network_checks import Fleet
from nodectl.verify.group.pace_checks import LOOKS, METRIC, MOST_TIMES, SUSPICIOUS, Run, least, pace_reading, ratios
from nodectl.verify.group.pace_watch import PaceWatch
from nodectl.verify.judging.judge import judge
from nodectl.verify.parse.workload import GroupOutput, Pace
from nodectl.verify.session import Session
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import SuiteStep, suite_of
from tests.verify.fleet import FakeFleet, FakeNode, Seen, node_of

FLEET = Fleet("tcp", "", 0, True, (), {})
STEP = SuiteStep("pairs", 60.0, (1,), (1,), {"rounds": 3.0, "iterations": 1.0, "warmup": 0.0, "timeout": 5.0})


def members(*hosts: str, nproc: int = 1, backend: str = "gloo") -> list[Member]:
    nobody: Any = None
    return [Member(Session(host, Target(host, host), {}, nobody), host, "eth0", nproc, "python3", backend) for host in hosts]


def pace(host: float, share: float = 1.0, device: float | None = None, rounds: int = 5) -> Pace:
    return Pace((host,) * rounds, (host * share,) * rounds, (device,) * rounds if device else (), (0.001,) * rounds)


def run(people: Sequence[Member], *paces: Pace | None) -> Run:
    found = {rank: one for rank, one in enumerate(paces) if one is not None}
    return people, GangResult(GroupOutput(pace=found), len(paces))


FOUR = members("n1", "n2", "n3", "n4")
# name, seconds of each rank; the ratio of n1
RATIOS = [
    ("all alike", (0.02, 0.02, 0.02, 0.02), 1.0),
    ("n1 five times", (0.1, 0.02, 0.02, 0.02), 5.0),
    ("n1 fast", (0.01, 0.02, 0.02, 0.02), 0.5),
    ("another one slow", (0.02, 0.2, 0.02, 0.02), 1.0),
    ("half of the others slow", (0.1, 0.1, 0.1, 0.02), 1.0),
]


@pytest.mark.parametrize(("name", "times", "ratio"), RATIOS, ids=[name for name, *_ in RATIOS])
def test_ratio_over_the_median_of_the_others(name: str, times: tuple[float, ...], ratio: float) -> None:
    assert ratios([run(FOUR, *map(pace, times))])["n1"] == pytest.approx(ratio)


def test_the_slowest_rank_of_a_node_speaks_for_it() -> None:
    two = members("n1", "n2", nproc=2)
    assert ratios([run(two, pace(0.02), pace(0.08), pace(0.02), pace(0.02))]) == pytest.approx({"n1": 4.0, "n2": 0.25})


def test_the_best_of_several_runs_counts() -> None:
    first, second = run(FOUR[:2], pace(0.2), pace(0.02)), run([FOUR[0], FOUR[2]], pace(0.02), pace(0.02))
    assert ratios([first, second])["n1"] == pytest.approx(1.0)


def test_a_slow_gpu_counts_though_its_core_is_fine() -> None:
    gpus = members("n1", "n2", "n3", backend="nccl")
    assert ratios([run(gpus, pace(0.02, device=0.09), pace(0.02, device=0.03), pace(0.02, device=0.03))])["n1"] == pytest.approx(3.0)


def test_one_round_of_many_that_is_disturbed_does_not_count() -> None:
    disturbed = Pace((0.02, 0.02, 0.5, 0.02, 0.02), (0.02,) * 5, (), (0.001,) * 5)
    assert ratios([run(FOUR, disturbed, pace(0.02), pace(0.02), pace(0.02))])["n1"] == pytest.approx(1.0)


@pytest.mark.parametrize(("paces", "hosts"), [
    ((None, None, None, None), set()), ((pace(0.02), None, None, None), set()), ((pace(0.02), pace(0.02), None, None), {"n1", "n2"}),
])
def test_who_did_not_report_has_no_ratio(paces: tuple[Pace | None, ...], hosts: set[str]) -> None:
    assert set(ratios([run(FOUR, *paces)])) == hosts


def test_a_node_of_which_one_rank_is_silent_has_not_reported() -> None:
    assert set(ratios([run(members("n1", "n2", nproc=2), pace(0.02), None, pace(0.02), pace(0.02))])) == set()


@pytest.mark.parametrize(("looks", "found"), [
    ([], {}), ([{"a": 3.0}], {"a": 3.0}), ([{"a": 3.0, "b": 1.0}, {"a": 1.2, "b": 5.0}], {"a": 1.2, "b": 1.0}), ([{"a": 3.0}, {"b": 2.0}], {"a": 3.0, "b": 2.0}),
])
def test_the_least_of_all_looks(looks: list[dict[str, float]], found: dict[str, float]) -> None:
    assert least(looks) == found


# the slow node's pace; the other's; verdict of n1, words of its reason
JUDGED = [
    (pace(0.02), "pass", ""),
    (pace(0.039), "pass", ""),
    (pace(0.2, share=0.1), "fail", "had a core for 10% of that time: other programs run on this node"),
    (pace(0.2, share=0.99), "fail", "the core itself is slow"),
    (Pace((0.02,) * 5, (0.02,) * 5, (0.3,) * 5, (0.001,) * 5), "fail", "its GPU is slow"),
]


@pytest.mark.parametrize(("mine", "verdict", "words"), JUDGED)
def test_judged_with_its_cause(mine: Pace, verdict: str, words: str) -> None:
    others = [pace(0.02, device=0.03 if mine.device else None)] * 3
    runs = [run(FOUR, mine, *others)]
    reading = pace_reading(FOUR, ratios(runs), runs, FLEET)
    checks = {check.host: check for check in judge(reading.measurements, (), reading.expectations)}
    assert {check.name for check in checks.values()} == {METRIC}
    assert checks["n1"].verdict == verdict
    assert words in checks["n1"].reason
    assert {checks[host].verdict for host in ("n2", "n3", "n4")} == {"pass"}


def test_without_a_report_it_is_unknown_and_a_single_node_is_not_compared() -> None:
    runs = [run(FOUR, None, pace(0.02), pace(0.02), pace(0.02))]
    reading = pace_reading(FOUR, ratios(runs), runs, FLEET)
    assert {check.host: check.verdict for check in judge(reading.measurements, (), reading.expectations)} == {"n1": "unknown", "n2": "pass", "n3": "pass", "n4": "pass"}
    assert pace_reading(FOUR[:1], {"n1": 9.0}, runs, FLEET).measurements == []


# -- looks


class Ranks:
    """Stands where programs run: each start gives the next list of times."""

    def __init__(self, *times: tuple[float, ...]) -> None:
        self.times = list(times)
        self.programs: list[Program] = []

    def __call__(self, people: Sequence[Member], program: Program) -> GangResult:
        self.programs.append(program)
        return run(people, *map(pace, self.times.pop(0)))[1]


QUIET = (0.02, 0.02, 0.02, 0.02)
HELD = (0.2, 0.02, 0.02, 0.02)
# what the group shows first, then each look; looks taken, verdict of n1
LOOKED: list[tuple[list[tuple[float, ...]], int, str]] = [
    ([QUIET], 0, "pass"),
    ([(0.028, 0.02, 0.02, 0.02)], 0, "pass"),
    ([HELD, QUIET], 1, "pass"),
    ([(0.035, 0.02, 0.02, 0.02), HELD, QUIET], 2, "pass"),
    ([HELD, HELD, QUIET], 2, "pass"),
    ([HELD, HELD, HELD], 2, "fail"),
]


@pytest.mark.parametrize(("times", "looks", "verdict"), LOOKED)
def test_a_suspect_is_looked_at_until_it_is_cleared_or_the_looks_are_used_up(
    monkeypatch: pytest.MonkeyPatch, times: list[tuple[float, ...]], looks: int, verdict: str
) -> None:
    ranks = Ranks(*times)
    monkeypatch.setattr(pace_watch, "run_program", ranks)
    watch = PaceWatch()
    watch.gang(FOUR, STEP, (1024,))
    while watch.suspects():
        watch.look(FOUR, STEP)
    assert len(watch.looks) == looks
    reading = watch.reading(FOUR, FLEET)
    found = {check.host: check.verdict for check in judge(reading.measurements, (), reading.expectations)}
    assert found == {"n1": verdict, "n2": "pass", "n3": "pass", "n4": "pass"}
    assert [bool(program.cases) for program in ranks.programs] == [True, *[False] * looks]
    assert all(program.pace for program in ranks.programs)


def test_the_bars_leave_room_for_shared_cores() -> None:
    assert 1.0 < SUSPICIOUS < MOST_TIMES
    assert LOOKS >= 2


# -- through the stage

HEAD = '[[step]]\nkind = "route"\ndeadline = 20\n[[step]]\nkind = "torch"\ndeadline = 20\n'
GROUP_STEP = '[[step]]\nkind = "all_reduce"\ndeadline = 60\nsizes = ["1 MiB"]\ngpu_sizes = ["1 GiB"]\niterations = 3\nwarmup = 1\ntimeout = 10\n'
PAIRS_STEP = GROUP_STEP.replace("all_reduce", "pairs") + "rounds = 2\n"


@pytest.mark.parametrize(("steps", "where"), [(PAIRS_STEP, "pairs"), (GROUP_STEP, "all_reduce"), (PAIRS_STEP + GROUP_STEP, "pairs")], ids=["pairs", "group", "both"])
def test_a_node_that_is_held_back_is_named_and_the_others_pass(steps: str, where: str) -> None:
    nodes = [FakeNode("n1"), FakeNode("n2", pace=0.2), FakeNode("n3"), FakeNode("n4")]
    seen = Seen()
    verdicts = verify([node_of(node) for node in nodes], suite_of(HEAD + steps, "pace"), FakeFleet(*nodes), seen)
    assert verdicts == {"n1": "pass", "n2": "fail", "n3": "pass", "n4": "pass"}, seen.reasons("n1")
    found = [event for event in seen.of("check") if event.data["name"] == METRIC]
    # said once per node, where it was seen first
    assert sorted(event.host for event in found) == ["n1", "n2", "n3", "n4"]
    assert {event.data["step"] for event in found} == {where}
    assert "measured 5, expected at most 2" in seen.reasons("n2")
    told = [event.data["text"] for event in seen.of("progress") if "fixed work" in event.data["text"]]
    assert told == ["the fixed work once more, all nodes at once: n2 was slow at it"] * LOOKS


def test_a_healthy_fleet_gets_no_second_look() -> None:
    nodes = [FakeNode(f"n{number}", pace=1 - number / 20) for number in range(1, 5)]
    seen = Seen()
    verify([node_of(node) for node in nodes], suite_of(HEAD + PAIRS_STEP, "pace"), FakeFleet(*nodes), seen)
    assert not [event for event in seen.of("progress") if "fixed work" in event.data["text"]]
    assert {event.data["verdict"] for event in seen.of("check") if event.data["name"] == METRIC} == {"pass"}


def test_a_node_lost_during_a_look_is_lost_and_the_others_are_judged() -> None:
    """It dies in the group of all that only the look forms."""
    nodes = [FakeNode("n1"), FakeNode("n2", pace=0.2), FakeNode("n3"), FakeNode("n4", gone_at=("workload", 3))]
    seen = Seen()
    verdicts = verify([node_of(node) for node in nodes], suite_of(HEAD + PAIRS_STEP, "pace"), FakeFleet(*nodes), seen)
    assert verdicts["n4"] == "unknown"
    assert "lost" in seen.reasons("n4")
    assert verdicts["n1"] != "fail"
