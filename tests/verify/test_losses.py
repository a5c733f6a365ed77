"""Whose link loses packets: what counts, who is named, and what says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from nodectl.verify.group.gang import GangResult
from nodectl.verify.group.loss_checks import LEAST_SEGMENTS, LIMIT, METRIC, PLAYED_LIMIT, loss_reading, losses
from nodectl.verify.group.network_checks import Fleet
from nodectl.verify.group.pace_checks import Run
from nodectl.verify.judging.judge import judge
from nodectl.verify.parse.workload import GroupOutput, group_output
from tests.verify.test_pace import members
from tests.verify.test_parse import line

WIRES, PLAYED = Fleet("tcp", "", 0, False, (), {}), Fleet("tcp", "", 0, True, (), {})
MUCH = 100 * LEAST_SEGMENTS
Links = Mapping[tuple[int, int], int]


def group(numbers: Sequence[int], again: Links, sent: int = MUCH) -> Run:
    """Nodes n1, n2 … in one group; ``again`` per sender and receiver in segments."""
    people = members(*(f"n{number}" for number in numbers))
    counts = {
        rank: {f"n{peer}": (sent, again.get((mine, peer), 0)) for peer in numbers if peer != mine} for rank, mine in enumerate(numbers)
    }
    return people, GangResult(GroupOutput(resent=counts), len(numbers))


def pairs(count: int, again: Links) -> list[Run]:
    return [group([one, other], again) for one in range(1, count + 1) for other in range(one + 1, count + 1)]


def around(bad: int, count: int, percent: float, out: bool = True, into: bool = True) -> Links:
    """What a bad link of one node makes of the counters of all."""
    lost = int(MUCH * percent / 100)
    peers = [peer for peer in range(1, count + 1) if peer != bad]
    return {**{(bad, peer): lost for peer in peers if out}, **{(peer, bad): lost for peer in peers if into}}


# what is wrong; runs; who fails
CASES: list[tuple[str, list[Run], set[str]]] = [
    ("nothing", pairs(4, {}), set()),
    ("both ways", pairs(4, around(2, 4, 2.0)), {"n2"}),
    ("only what it sends", pairs(4, around(3, 4, 2.0, into=False)), {"n3"}),
    ("only what it receives", pairs(4, around(3, 4, 2.0, out=False)), {"n3"}),
    ("just below the limit", pairs(4, around(2, 4, LIMIT)), set()),
    ("just above", pairs(4, around(2, 4, LIMIT + 0.01)), {"n2"}),
    ("one path of two good nodes", pairs(4, {(1, 2): MUCH // 10, (2, 1): MUCH // 10}), set()),
    ("two bad nodes of five", pairs(5, {**around(2, 5, 2.0), **around(4, 5, 3.0)}), {"n2", "n4"}),
    ("three nodes", pairs(3, around(2, 3, 2.0)), {"n2"}),
    ("two nodes: nobody can say which", pairs(2, around(2, 2, 2.0)), {"n1", "n2"}),
    ("a ring of four, where a node talks to its neighbours", [group([1, 2, 3, 4], around(2, 4, 2.0))], {"n2"}),
    ("too little was sent to tell", [group([1, 2], around(2, 2, 2.0), sent=LEAST_SEGMENTS - 1)], set()),
    ("pairs add up", [group([1, 2], {(2, 1): 300}, LEAST_SEGMENTS // 2)] * 2, {"n1", "n2"}),
]


@pytest.mark.parametrize(("runs", "bad"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_who_is_named(runs: list[Run], bad: set[str]) -> None:
    reading = loss_reading(members("n1", "n2", "n3", "n4", "n5"), runs, WIRES)
    checks = judge(reading.measurements, (), reading.expectations)
    assert {check.host for check in checks if check.verdict == "fail"} == bad, [check.reason for check in checks]
    assert {check.verdict for check in checks} <= {"pass", "fail"}


@pytest.mark.parametrize(("percent", "bad"), [(PLAYED_LIMIT, []), (PLAYED_LIMIT + 0.01, ["n2"])])
def test_virtual_links_may_lose_more(percent: float, bad: list[str]) -> None:
    reading = loss_reading(members("n1", "n2", "n3", "n4"), pairs(4, around(2, 4, percent)), PLAYED)
    assert [check.host for check in judge(reading.measurements, (), reading.expectations) if check.verdict == "fail"] == bad


def test_the_reason_names_the_share_the_peers_and_where_to_look() -> None:
    reading = loss_reading(members("n2"), pairs(4, around(2, 4, 2.0)), WIRES)
    (found,) = judge(reading.measurements, (), reading.expectations)
    assert (found.name, found.value, found.floor, found.unit) == (METRIC, 2.0, LIMIT, "percent")
    assert "with n1 2 %, with n3 2 %, with n4 2 %; cable, optic or port of this node" in found.reason


def test_addresses_of_others_and_of_the_node_itself_are_no_links() -> None:
    people = members("n1", "n2")
    output = GroupOutput(resent={0: {"10.9.9.9": (MUCH, MUCH), "n1": (MUCH, MUCH), "n2": (MUCH, 0)}})
    assert losses([(people, GangResult(output, 2))]) == {("n1", "n2"): 0.0}


def test_ranks_of_one_node_count_together() -> None:
    people = members("n1", "n2", nproc=2)
    output = GroupOutput(resent={0: {"n2": (MUCH, 0)}, 1: {"n2": (MUCH, MUCH // 50)}, 2: {"n1": (MUCH, 0)}})
    assert losses([(people, GangResult(output, 4))]) == {("n1", "n2"): 1.0}


def test_nothing_is_said_where_nothing_was_counted() -> None:
    assert loss_reading(members("n1", "n2"), [(members("n1", "n2"), GangResult(GroupOutput(), 2))], WIRES).measurements == []


@pytest.mark.parametrize(("peers", "expected"), [
    ({"10.0.0.1": [10, 1]}, {0: {"10.0.0.1": (10, 1)}}), ({}, {0: {}}), (None, {0: {}}), ([1, 2], {0: {}}), ({"a": [1, 2]}, {0: {}}), ({"a": [-1, 0]}, {0: {}}),
    ({"a": ["1", 0]}, {0: {}}), ({"a": [1]}, {0: {}}), ({"a": [1, 0, 0]}, {0: {}}), ({"a": [1.5, 0]}, {0: {}}), ({"a": [True, False]}, {0: {}}), ({"a": 3, "b": [5, 5]}, {0: {"b": (5, 5)}}),
])
def test_what_a_rank_may_say(peers: object, expected: dict[int, dict[str, tuple[int, int]]]) -> None:
    assert group_output({"a": line(kind="resent", rank=0, peers=peers)}, 1).resent == expected
