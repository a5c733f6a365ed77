"""Which node is it? Fleets with known faults, of 3 to 64 nodes, with as many rounds as a real run has."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.verify.isolate import PairResult, isolate, slow_paths
from nodectl.verify.pairs import Pair, retest, rounds

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
    results = measured([pair for pairs in rounds(hosts, limit) for pair in pairs], slow, dead, draw)
    for _ in range(2):
        good = [host for host, finding in isolate(results, {}).items() if finding.blame == "none"]
        again = retest([host for host in hosts if host not in good], good, [result.pair for result in results])
        results += measured(again, slow, dead, draw)
    return {host for host, finding in isolate(results, {}).items() if finding.blame != "none"}


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
    assert {host: (finding.blame, finding.best, finding.expected) for host, finding in one.items()} == {
        host: (finding.blame, finding.best, finding.expected) for host, finding in other.items()
    }
    for finding in one.values():
        if finding.best is None:
            assert finding.blame != "none"
        elif finding.expected is not None:
            assert (finding.blame == "none") is (finding.best >= finding.expected)


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
    (path,) = slow_paths(results, findings)
    assert path.startswith("path a - b: 12 MB/s")


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
