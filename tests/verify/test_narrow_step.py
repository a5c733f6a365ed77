"""A group that is slow although its pairs are fine: the slow part fails, the others get a figure of their own and pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nodectl.transport.channel import Target
from nodectl.verify.bounds import longest
from nodectl.verify.group import group_steps, narrow_step
from nodectl.verify.group.gang import GangResult, Member
from nodectl.verify.group.group_steps import GROUPS
from nodectl.verify.group.narrow import most_levels
from nodectl.verify.judging.floor_load import Floor
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading
from nodectl.verify.ledger import Ledger, Terms
from nodectl.verify.parse.workload import GroupOutput, SizeResult
from nodectl.verify.session import Gone
from nodectl.verify.suite_load import SuiteStep, load_suite
from nodectl.verify.trial import Node, Trial, trial_of
from tests.verify.fleet import FakeFleet, FakeNode, Seen

SIZE = 8 * 2**20
STEP = SuiteStep("all_reduce", 60.0, (SIZE,), (SIZE,), {"iterations": 3.0, "warmup": 1.0, "timeout": 20.0})
FAST = 10e9
Speed = Callable[[Sequence[str]], float]


def trial(count: int, seen: Seen) -> Trial:
    names = [f"n{index}" for index in range(1, count + 1)]
    floors: tuple[Floor, ...] = ()
    found = trial_of(
        [Node(name, Target(name, f"10.0.0.{index}"), {}) for index, name in enumerate(names)], FakeFleet(*map(FakeNode, names)), Ledger(names, Terms(floors), seen)
    )
    for name in names:
        # It came here with nothing against it, over a wire that is one.
        found.ledger.judged(_good(name), "login")
        found.facts[name].address, found.facts[name].interface, found.facts[name].fabric = "10.0.0.1", "eth0", "tcp"
    found.best_pairs = dict.fromkeys(names, FAST)
    return found


def _good(name: str) -> Reading:
    reading = Reading()
    reading.must_be_true(Measurement("login.fresh", True, "bool", (name,), "ssh"), "x")
    return reading


def run(count: int, speed: Speed, monkeypatch: pytest.MonkeyPatch, lost: str = "") -> tuple[dict[str, str], Seen, list[int]]:
    """Verdicts of the group's figure by host; ``speed`` of a group (B/s) by its members; ``lost`` goes in the third group."""
    seen, sizes = Seen(), []

    def gang(members: Sequence[Member], _step: SuiteStep, _sizes: Sequence[int]) -> GangResult:
        hosts = [member.host for member in members]
        sizes.append(len(hosts))
        ranks = len(hosts)
        if lost in hosts and len(sizes) > 2:
            return GangResult(GroupOutput(), ranks, {lost: Gone("lost", "no byte for 20 s")})
        seconds = SIZE * 2 * (ranks - 1) / ranks / speed(hosts)
        return GangResult(GroupOutput((SizeResult(SIZE, (seconds,), 0),)), ranks)

    class Watch:
        """The first group, without the look at who is slow by itself."""

        runs = ()

        def gang(self, *given: Any) -> GangResult:
            return gang(*given)

        def suspects(self) -> list[str]:
            return []

        def reading(self, *_given: Any) -> Reading:
            return Reading()

    monkeypatch.setattr(narrow_step, "run_gang", gang)
    monkeypatch.setattr(group_steps, "run_gang", gang)
    monkeypatch.setattr(group_steps, "PaceWatch", Watch)
    GROUPS["all_reduce"](trial(count, seen), STEP)
    return {event.host: str(event.data["verdict"]) for event in seen.of("check") if event.data["name"] == "network.all_reduce"}, seen, sizes


def uplink(first: int, last: int, most: int) -> Speed:
    """Nodes ``first`` to ``last`` share an uplink that is too narrow for more than ``most`` of them at once."""
    behind = {f"n{index}" for index in range(first, last + 1)}
    return lambda hosts: FAST / 500 if len(behind & set(hosts)) > most else FAST


def test_a_healthy_group_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts, _, sizes = run(16, lambda _hosts: FAST, monkeypatch)
    assert set(verdicts.values()) == {"pass"}
    assert sizes == [16]


def test_the_nodes_behind_the_narrow_uplink_fail_and_the_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts, seen, sizes = run(32, uplink(9, 16, 4), monkeypatch)
    behind = {f"n{index}" for index in range(9, 17)}
    assert {host for host, verdict in verdicts.items() if verdict == "fail"} == behind
    assert {host for host, verdict in verdicts.items() if verdict == "pass"} == {f"n{index}" for index in range(1, 33)} - behind
    assert "n9 to n16 (8 nodes)" in str(seen.of("warning")[0].data["text"])
    assert "n9 to n16 (8 nodes)" in str(seen.check("n9", "network.all_reduce").data["reason"])
    assert sizes == [32, 32, 16, 16, 8, 8, 4, 4, 24]


def test_a_seam_between_two_halves_leaves_nobody_to_hand_off(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts, seen, sizes = run(8, lambda hosts: FAST / 500 if len(hosts) > 4 else FAST, monkeypatch)
    assert set(verdicts.values()) == {"fail"}
    assert "what joins n1 to n4 with n5 to n8" in str(seen.of("warning")[0].data["text"])
    assert sizes == [8, 8, 4, 4]


@pytest.mark.parametrize("count", [3, 4, 5])
def test_a_small_group_is_not_halved(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts, _, sizes = run(count, lambda _hosts: FAST / 500, monkeypatch)
    assert set(verdicts.values()) == {"fail"}
    assert sizes == [count, count]


def test_other_load_in_the_first_group_only_costs_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def speed(hosts: Sequence[str]) -> float:
        seen.append(len(hosts))
        return FAST / 500 if len(seen) == 1 else FAST

    verdicts, _, sizes = run(8, speed, monkeypatch)
    assert set(verdicts.values()) == {"pass"}
    assert sizes == [8, 8]


def test_who_is_lost_while_parts_are_measured_is_out(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts, seen, _ = run(16, uplink(9, 16, 4), monkeypatch, lost="n3")
    assert seen.of("host.lost", "n3")
    assert verdicts["n12"] == "fail"
    assert "n3" not in verdicts or verdicts["n3"] != "pass"


@pytest.mark.parametrize(("count", "levels"), [(2, 0), (5, 0), (6, 3), (64, 6), (4096, 12)])
def test_the_bound_of_a_suite_knows_of_the_parts(count: int, levels: int) -> None:
    assert most_levels(count) == levels
    suite = load_suite("preflight")
    assert (longest(suite, 1, nodes=count) > longest(suite, 1)) is bool(levels)
