"""Which node is it? Fleets with known faults, of 3 to 64 nodes, with as many rounds as a real run has."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.verify.group.hunt import Bars, Diagnosis, diagnose, hunt
from nodectl.verify.group.isolate import PairResult, SlowPath, isolate, middle, path_text, slow_paths
from nodectl.verify.group.narrow import Group, Narrowed, narrow, narrowed_text
from nodectl.verify.group.pairs import Pair, retest, rounds

NAN, INF = float("nan"), float("inf")
FAST = 600e6
SLOW = 12e6


def names(count: int) -> list[str]:
    return [f"n{index:02}" for index in range(1, count + 1)]


def measured(pairs: list[Pair], slow: set[str], dead: set[str], draw: random.Random) -> list[PairResult]:
    """A pair runs at its slower end's speed; parallel pairs on shared cores spread by up to 35 %."""
    results = []
    for pair in pairs:
        if dead & set(pair):
            results.append(PairResult(pair, None, "timed out"))
        else:
            results.append(PairResult(pair, (SLOW if slow & set(pair) else FAST) * draw.uniform(0.65, 1.0)))
    return results


def blamed(hosts: list[str], slow: set[str], dead: set[str], seed: int, limit: int = 3) -> set[str]:
    """As network_checks does it: rounds, then suspects once more with nodes that did well."""
    draw = random.Random(seed)
    _, diagnosis = hunt(hosts, limit, Bars(ratio=0.5), lambda _number, _what, pairs: measured(list(pairs), slow, dead, draw), lambda _host: True)
    return set(diagnosis.blamed())


@pytest.mark.parametrize("count", [3, 4, 5, 6, 7, 8, 13, 16, 32, 33, 64])
@pytest.mark.parametrize("kind", ["slow", "dead"])
def test_one_bad_node_is_named(count: int, kind: str) -> None:
    hosts = names(count)
    for seed, bad in enumerate(hosts[:: max(1, count // 8)]):
        slow, dead = ({bad}, set()) if kind == "slow" else (set(), {bad})
        assert blamed(hosts, slow, dead, seed) == {bad}


@pytest.mark.parametrize(("count", "bad"), [(4, 1), (5, 2), (6, 2), (8, 3), (16, 4), (32, 6), (64, 12)])
def test_several_bad_nodes_are_named(count: int, bad: int) -> None:
    hosts = names(count)
    for seed in range(8):
        draw = random.Random(seed)
        chosen = set(draw.sample(hosts, bad))
        slow = {host for host in chosen if draw.random() < 0.5}
        assert blamed(hosts, slow, chosen - slow, seed) == chosen


@pytest.mark.parametrize("count", [2, 3, 4, 16, 64])
def test_nobody_is_blamed_in_a_healthy_fleet(count: int) -> None:
    for seed in range(10):
        assert blamed(names(count), set(), set(), seed) == set()


# figures of the pairs a-b, a-c, b-c; who is blamed
HOSTILE: list[tuple[list[float | None], set[str]]] = [
    ([FAST, FAST, FAST], set()),
    ([NAN, NAN, FAST], {"a"}),
    ([INF, INF, FAST], {"a"}),
    ([-INF, -1.0, FAST], {"a"}),
    ([0.0, 0.0, FAST], {"a"}),
    ([0.0, FAST, FAST], set()),
    ([NAN, FAST, FAST], set()),
    ([None, NAN, FAST], {"a"}),
    ([NAN, NAN, NAN], {"a", "b", "c"}),
    ([None, None, None], {"a", "b", "c"}),
    ([1e300, 1e300, FAST], {"b", "c"} - {"b", "c"}),
    ([5e-324, 5e-324, FAST], {"a"}),
]


@pytest.mark.parametrize(("figures", "blame"), HOSTILE, ids=[str(figures) for figures, _ in HOSTILE])
@pytest.mark.parametrize("turn", [1, -1])
def test_figures_that_are_none(figures: list[float | None], blame: set[str], turn: int) -> None:
    """In both orders: nan compares with nothing, so what came first once decided."""
    results = [PairResult(pair, figure, "broken") for pair, figure in zip([("a", "b"), ("a", "c"), ("b", "c")], figures, strict=True)][::turn]
    findings = isolate(results, {})
    assert {host for host, finding in findings.items() if finding.blame != "none"} == blame
    assert all(finding.best is None or 0 <= finding.best < INF for finding in findings.values())
    assert all("nan B/s" not in finding.reason for finding in findings.values())
    slow_paths(results, findings)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.none() | st.floats(), min_size=6, max_size=6), st.dictionaries(st.sampled_from("abcd"), st.none() | st.floats(0, 1e12), max_size=4), st.randoms())
def test_the_order_of_pairs_does_not_matter(figures: list[float | None], floors: dict[str, float | None], shuffle: random.Random) -> None:
    results = [PairResult(pair, figure, "x") for pair, figure in zip(combinations("abcd", 2), figures, strict=True)]
    mixed = list(results)
    shuffle.shuffle(mixed)
    one, other = isolate(results, floors), isolate(mixed, floors)
    assert {host: (finding.blame, finding.figure, finding.expected) for host, finding in one.items()} == {
        host: (finding.blame, finding.figure, finding.expected) for host, finding in other.items()
    }
    for finding in one.values():
        if finding.figure is None:
            assert finding.blame != "none"
        elif finding.expected is not None:
            assert (finding.blame == "none") is (finding.figure >= finding.expected)


@pytest.mark.parametrize("seed", range(6))
def test_bad_paths_between_good_nodes_blame_nobody(seed: int) -> None:
    """Cables and switches: up to a quarter of the pairs of eight nodes are slow, each node keeps a good partner."""
    hosts, draw = names(8), random.Random(seed)
    pairs = [pair for pairs in rounds(hosts, 3) for pair in pairs]
    bad = set(rounds(hosts, 3)[draw.randrange(3)])
    results = [PairResult(pair, SLOW if pair in bad else FAST * draw.uniform(0.7, 1.0)) for pair in pairs]
    findings = isolate(results, {})
    assert {finding.blame for finding in findings.values()} == {"none"}
    assert len(slow_paths(results, findings)) == len(bad)


def test_two_nodes_cannot_be_told_apart() -> None:
    findings = isolate([PairResult(("a", "b"), SLOW)], {"a": 30e6, "b": 30e6})
    assert {finding.blame for finding in findings.values()} == {"unclear"}
    assert "cannot be told apart" in findings["a"].reason
    assert "30 MB/s" in findings["a"].reason


def test_two_nodes_without_a_floor_have_nothing_to_compare_with() -> None:
    findings = isolate([PairResult(("a", "b"), SLOW)], {})
    assert findings["a"].expected is None
    assert findings["a"].blame == "none"


def test_all_below_the_floor_is_the_network_or_the_floor() -> None:
    results = [PairResult(pair, SLOW) for pair in combinations("abc", 2)]
    findings = isolate(results, dict.fromkeys("abc", 30e6))
    assert {finding.blame for finding in findings.values()} == {"unclear"}
    assert "or the floor itself" in findings["c"].reason


def test_the_floor_finds_what_the_fleet_cannot_show() -> None:
    """Three of four nodes are slow: the median is theirs; only an absolute bar tells."""
    results = [PairResult(pair, SLOW) for pair in combinations("abcd", 2)]
    assert all(finding.blame == "none" for finding in isolate(results, {}).values())
    assert all(finding.blame == "unclear" for finding in isolate(results, dict.fromkeys("abcd", 30e6)).values())


def test_the_reason_has_both_figures_and_the_partners() -> None:
    results = [PairResult(("a", "b"), SLOW), PairResult(("a", "c"), SLOW), PairResult(("b", "c"), FAST)]
    reason = isolate(results, {})["a"].reason
    assert "12 MB/s (96 Mb/s) with b" in reason
    assert "expected at least 300 MB/s" in reason
    assert "50% of the median" in reason
    assert "fine: b, c" in reason


def test_a_slow_path_is_not_a_slow_node() -> None:
    results = [PairResult(pair, SLOW if pair == ("a", "b") else FAST) for pair in combinations("abcd", 2)]
    findings = isolate(results, {})
    assert {finding.blame for finding in findings.values()} == {"none"}
    assert slow_paths(results, findings) == [SlowPath(("a", "b"), 1)]
    assert path_text(("a", "b"), results).startswith("path a - b: 12 MB/s")


def test_pairs_of_a_blamed_node_are_no_slow_paths() -> None:
    results = [PairResult(pair, SLOW if "a" in pair else FAST) for pair in combinations("abcd", 2)]
    assert slow_paths(results, isolate(results, {})) == []


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 9, 16, 33])
def test_rounds_cover_all_pairs_and_never_use_a_node_twice(count: int) -> None:
    hosts = names(count)
    plan = rounds(hosts, 1000)
    assert sorted(pair for pairs in plan for pair in pairs) == sorted(combinations(hosts, 2))
    for pairs in plan:
        used = [host for pair in pairs for host in pair]
        assert len(used) == len(set(used))
        assert len(used) >= count - 1


@pytest.mark.parametrize(("count", "limit", "expected"), [(0, 3, 0), (1, 3, 0), (2, 3, 1), (3, 3, 3), (4, 2, 2), (64, 3, 3)])
def test_rounds_are_bounded(count: int, limit: int, expected: int) -> None:
    assert len([pairs for pairs in rounds(names(count), limit) if pairs]) == expected


def test_retest_takes_a_new_partner_and_uses_nobody_twice() -> None:
    assert retest(["x", "y"], ["a", "b"], [("a", "x")]) == [("x", "b"), ("y", "a")]
    assert retest(["x", "y", "z"], ["a"], []) == [("x", "a")]
    assert retest(["x"], [], []) == []
    assert retest(["x"], ["a"], [("a", "x")]) == [("x", "a")]
    assert retest(["x"], ["a", "b"], [("a", "x"), ("a", "x"), ("b", "x")]) == [("x", "b")]


# -- what is told apart


def result(a: str, b: str, figure: float | None, rail: str = "", ways: tuple[float, float] | None = None) -> PairResult:
    return PairResult((a, b), figure, "" if figure else "died", rail, ways)


def of_network(speed: Callable[[str, str], float], count: int, **more: Any) -> tuple[Diagnosis, int]:
    """The diagnosis of a fleet where ``speed`` tells each pair's figure, and the number of rounds it took."""
    asked: list[int] = []

    def measure(number: int, _what: str, pairs: Sequence[Pair]) -> list[PairResult]:
        asked.append(number)
        return [PairResult(pair, speed(*pair)) for pair in pairs]

    _, diagnosis = hunt(names(count), 3, Bars(**more), measure, lambda _host: True)
    return diagnosis, len(asked)


@pytest.mark.parametrize("count", [4, 16, 64])
def test_both_ends_slow_are_two_nodes_and_no_path(count: int) -> None:
    diagnosis, _ = of_network(lambda a, b: SLOW if {a, b} & {"n01", "n02"} else FAST, count, ratio=0.5)
    assert diagnosis.blamed() == ["n01", "n02"]
    assert not diagnosis.paths
    assert {finding.blame for _, finding in diagnosis.of("n01")} == {"node"}


@pytest.mark.parametrize("count", [3, 4, 5, 16, 64])
def test_a_path_is_measured_again_and_blames_no_node(count: int) -> None:
    diagnosis, taken = of_network(lambda a, b: SLOW if {a, b} == {"n01", "n02"} else FAST, count, ratio=0.5)
    assert diagnosis.blamed() == []
    assert diagnosis.slow_pairs == (("n01", "n02"),)
    assert "12 MB/s (96 Mb/s), then 12 MB/s (96 Mb/s), though both ends do well" in diagnosis.paths[0]
    assert taken == 4, "three rounds, and one more for the path"


def test_a_pair_that_was_disturbed_once_is_no_path() -> None:
    met: list[set[str]] = []

    def speed(a: str, b: str) -> float:
        met.append({a, b})
        return SLOW if {a, b} == {"n01", "n02"} and met.count({a, b}) == 1 else FAST

    diagnosis, _ = of_network(speed, 8, ratio=0.5)
    assert (diagnosis.blamed(), diagnosis.paths, diagnosis.suspected) == ([], (), ())


@pytest.mark.parametrize("at", [0, 16, 48])
@pytest.mark.parametrize("inside", [FAST, SLOW])
def test_a_switch_of_sixteen_is_one_cause(at: int, inside: float) -> None:
    behind = set(names(64)[at:at + 16])

    def speed(a: str, b: str) -> float:
        within = len({a, b} & behind)
        return FAST if within == 0 else inside if within == 2 else SLOW

    diagnosis, _ = of_network(speed, 64)
    assert set(diagnosis.blamed()) == behind
    assert {finding.blame for host in behind for _, finding in diagnosis.of(host)} == {"group"}
    (text,) = diagnosis.shared
    assert text.startswith("16 nodes are slow together")
    assert not diagnosis.paths


def test_four_bad_nodes_here_and_there_are_no_group() -> None:
    bad = {"n03", "n17", "n40", "n61"}
    diagnosis, _ = of_network(lambda a, b: SLOW if {a, b} & bad else FAST, 64)
    assert set(diagnosis.blamed()) == bad
    assert diagnosis.shared == ()


@pytest.mark.parametrize(("sends", "receives", "way"), [(SLOW, FAST, "sending"), (FAST, SLOW, "receiving"), (SLOW, SLOW, "")])
def test_a_node_that_is_slow_one_way(sends: float, receives: float, way: str) -> None:
    def measure(_number: int, _what: str, pairs: Sequence[Pair]) -> list[PairResult]:
        found = []
        for a, b in pairs:
            there = sends if a == "n02" else receives if b == "n02" else FAST
            back = sends if b == "n02" else receives if a == "n02" else FAST
            found.append(result(a, b, None, ways=(there, back)))
        return found

    _, diagnosis = hunt(names(6), 3, Bars(ratio=0.5), measure, lambda _host: True)
    ((_, finding),) = diagnosis.of("n02")
    assert (diagnosis.blamed(), finding.one_way) == (["n02"], way)
    assert (f"only when n02 is {way}" in finding.reason) is bool(way)


RAILS = ["rail0", "rail1", "rail2", "rail3"]


def railed(slow: Callable[[str, str], bool], count: int = 8) -> Diagnosis:
    pairs = [pair for one in rounds(names(count), 3) for pair in one]
    results = [result(*pair, SLOW if any(slow(host, rail) for host in pair) else FAST, rail) for pair in pairs for rail in RAILS]
    return diagnose(results, names(count), Bars(ratio=0.5))


def test_one_rail_of_one_node() -> None:
    diagnosis = railed(lambda host, rail: (host, rail) == ("n05", "rail2"))
    assert diagnosis.blamed() == ["n05"]
    assert [rail for rail, finding in diagnosis.of("n05") if finding.blame != "none"] == ["rail2"]
    assert diagnosis.shared == ()


def test_a_rail_that_is_slow_everywhere_is_its_switch() -> None:
    diagnosis = railed(lambda _host, rail: rail == "rail1")
    assert diagnosis.shared == ("rail rail1: 8 of 8 nodes are slow on it, and not on the other rails: its switch, or its cabling",)
    assert all(finding.blame == "none" for rail in ("rail0", "rail2", "rail3") for finding in diagnosis.rails[rail].values())


def test_a_node_that_is_slow_on_every_rail() -> None:
    diagnosis = railed(lambda host, _rail: host == "n08")
    assert [finding.blame for _, finding in diagnosis.of("n08")] == ["node"] * 4
    assert diagnosis.blamed() == ["n08"]


@pytest.mark.parametrize(("spread", "share", "seen"), [(0.02, 0.6, True), (0.02, 0.8, False), (0.3, 0.95, False), (0.3, 0.3, True)])
def test_a_quiet_fleet_has_a_higher_bar(spread: float, share: float, seen: bool) -> None:
    draw = random.Random(4)
    diagnosis, _ = of_network(lambda a, b: (share if "n07" in (a, b) else 1.0) * FAST * (1 - spread * draw.random()), 16)
    assert (diagnosis.blamed() == ["n07"]) is seen
    assert (diagnosis.blamed() == []) is not seen


def test_other_load_is_outvoted() -> None:
    """A node that was disturbed twice is measured on until the majority is clear."""
    met = {"n04": 0}

    def speed(a: str, b: str) -> float:
        if "n04" not in (a, b):
            return FAST
        met["n04"] += 1
        return SLOW if met["n04"] in (1, 2) else FAST

    diagnosis, taken = of_network(speed, 8, ratio=0.5)
    assert diagnosis.blamed() == []
    assert 4 <= met["n04"] <= 5
    assert taken <= 5


def test_who_is_lost_is_not_asked_again() -> None:
    gone: set[str] = set()
    asked: list[Pair] = []

    def measure(number: int, _what: str, pairs: Sequence[Pair]) -> list[PairResult]:
        asked.extend(pairs)
        if number == 2:
            gone.add("n03")
        return [PairResult(pair, SLOW if "n05" in pair else FAST) for pair in pairs if "n03" not in gone or "n03" not in pair]

    results, diagnosis = hunt(names(8), 3, Bars(ratio=0.5), measure, lambda host: host not in gone)
    assert diagnosis.blamed() == ["n05"]
    assert all("n03" not in one.pair for one in results)
    assert sum("n03" in pair for pair in asked) == 2


@pytest.mark.parametrize(("values", "expected"), [([], None), ([None], None), ([None, 1.0], 1.0), ([1.0, 2.0, 3.0], 2.0), ([4.0, 1.0], 4.0), ([None, None, 5.0], None)])
def test_middle(values: list[float | None], expected: float | None) -> None:
    assert middle(values) == expected


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 40), st.randoms(), st.floats(0.0, 1.0))
def test_any_network_ends_within_its_rounds(count: int, draw: random.Random, broken: float) -> None:
    """Whatever the figures, a node is in one pair of a round, nobody is measured with itself, and the rounds are bounded."""
    numbers: list[int] = []

    def measure(number: int, _what: str, pairs: Sequence[Pair]) -> list[PairResult]:
        numbers.append(number)
        used = [host for pair in pairs for host in pair]
        assert len(used) == len(set(used))
        return [PairResult(pair, None if draw.random() < broken / 3 else FAST * draw.random()) for pair in pairs]

    _, diagnosis = hunt(names(count), 3, Bars(), measure, lambda _host: True)
    assert len(numbers) <= 7
    assert set(diagnosis.blamed()) <= set(names(count))
    assert all(finding.figure is not None or finding.blame != "none" for found in diagnosis.rails.values() for finding in found.values())


# -- the whole group is slow


def test_two_halves_that_are_fine_point_at_what_joins_them() -> None:
    hosts = names(16)
    narrowed = narrow(hosts, lambda groups: [False] * len(groups))
    assert narrowed == Narrowed((tuple(hosts),), 1)
    assert "what joins n01 to n08 with n09 to n16" in narrowed_text(hosts, narrowed)


@pytest.mark.parametrize("count", [32, 64, 1024, 4096])
def test_the_switch_that_is_too_narrow_is_found_by_halving(count: int) -> None:
    """Sixteen nodes that share an uplink are slow whenever more than eight of them are in one group."""
    hosts = [f"n{index}" for index in range(count)]
    start = 16 * (count // 32)
    behind = set(hosts[start:start + 16])
    measured: list[int] = []

    def slow(groups: Sequence[Group]) -> list[bool]:
        measured.append(sum(map(len, groups)))
        assert len({host for group in groups for host in group}) == measured[-1], "groups of one level share no node"
        return [len(behind & set(group)) > 8 for group in groups]

    narrowed = narrow(hosts, slow)
    assert narrowed.groups == (tuple(hosts[start:start + 16]),)
    assert len(measured) == narrowed.levels <= math.ceil(math.log2(count))
    assert f"n{start} to n{start + 15} (16 nodes)" in narrowed_text(hosts, narrowed)


def test_two_switches_are_both_found() -> None:
    hosts = names(64)
    switches = [set(hosts[:16]), set(hosts[48:])]
    narrowed = narrow(hosts, lambda groups: [any(len(switch & set(group)) > 8 for switch in switches) for group in groups])
    assert narrowed.groups == (tuple(hosts[:16]), tuple(hosts[48:]))


@pytest.mark.parametrize(("count", "levels"), [(2, 0), (3, 0), (4, 0), (5, 1), (6, 1), (7, 1)])
def test_pairs_are_not_measured_again_as_groups(count: int, levels: int) -> None:
    narrowed = narrow(names(count), lambda groups: [False] * len(groups))
    assert narrowed.levels == levels
    assert narrowed_text(names(count), narrowed)


@settings(deadline=None)
@given(st.integers(2, 300), st.randoms())
def test_halving_always_ends(count: int, draw: random.Random) -> None:
    hosts = [f"n{index}" for index in range(count)]
    narrowed = narrow(hosts, lambda groups: [draw.random() < 0.7 for _ in groups])
    assert narrowed.levels <= math.ceil(math.log2(count))
    found = [host for group in narrowed.groups for host in group]
    assert len(found) == len(set(found)) > 0
