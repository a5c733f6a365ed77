"""Which node, which rail, which link, which switch is it? From the figures of pairs to what is at fault. Pure, and O(n) for n nodes.

A pair runs at the speed of its slower end or of the path between. So one figure accuses two nodes and a path; several, with partners that
are known to be good, tell which of the three it is:

node    most of its pairs with good partners are slow, and it has no fast pair but with such nodes as these
group   the same, and its neighbours in the inventory (or those with fast pairs among one another) are slow too: what they share
path    a pair that stays slow, though both ends are fast with most others
rail    slow on one rail and fine on another; on most nodes: that rail's switch
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nodectl.verify.group.pairs import Pair
from nodectl.verify.judging.units import human

# Healthy nodes of one fabric differ by a few per cent; a link that trained at half its width or rate shows 50 % at best. Where other
# load disturbs the pairs by tens of per cent (shared cores), only what lies below half is surely a fault.
RELATIVE = 0.5
# A quiet fabric shows more: three quarters lie far above a link at half its rate, and far below a healthy one.
QUIET = 0.75
# The bar keeps this many interquartile ranges of the fleet's own figures below their median: of a uniform spread none lies there.
RANGES = 4.0
# Fewer figures than this tell nothing about their spread.
LEAST_FOR_SPREAD = 8
# Bad nodes side by side: four share something when they are fast among themselves; when they are not, chance puts four of a quarter of
# bad nodes side by side in every fourth fleet of 64, but eight in one of a thousand.
GROUP_OF_FAST, GROUP_OF_SLOW = 4, 8
# Basis of a bar that is not the fleet's own: the judge holds the figure against that floor itself, and names its source.
FLOOR = "the floor"
Blame = Literal["none", "node", "group", "unclear"]
OneWay = Literal["", "sending", "receiving"]


@dataclass(frozen=True)
class PairResult:
    """One measured pair. ``busbw`` in B/s, or None with ``error``; what is no number above or at zero counts as no figure.

    ``ways``: B/s from the first to the second and back, where the tool measures them apart; then the figure is the slower one.
    """

    pair: Pair
    busbw: float | None
    error: str = ""
    rail: str = ""
    ways: tuple[float, float] | None = None

    @property
    def figure(self) -> float | None:
        value = min(self.ways) if self.ways else self.busbw
        return value if value is not None and 0 <= value < math.inf else None

    def other(self, host: str) -> str:
        return self.pair[1] if self.pair[0] == host else self.pair[0]


@dataclass(frozen=True)
class Finding:
    """What the pairs say of one node on one rail.

    ``best`` is its best pair (B/s; None: no pair gave a figure). ``figure`` is what it is judged by: the middle one of its pairs with
    good partners, the better of the two middle ones where they are even, so the majority decides and a draw clears. ``expected`` is the bar
    (None: nothing to compare with), ``basis`` where that comes from. ``detail``: the figure with each partner, and whose fault it is.
    ``one_way`` is the direction in which alone it is slow; ``group`` are the nodes that are slow together with it. ``contested``: slow by
    the majority, and yet fast with some good partner.
    """

    host: str
    blame: Blame
    best: float | None
    expected: float | None
    basis: str
    detail: str
    figure: float | None = None
    one_way: OneWay = ""
    group: tuple[str, ...] = ()
    contested: bool = False

    @property
    def reason(self) -> str:
        """All of it in one sentence."""
        bar = f"expected at least {human(self.expected, 'B/s')} ({self.basis})" if self.expected is not None else "nothing to compare with"
        return f"{human(self.figure, 'B/s') if self.figure is not None else 'no figure'}, {bar}: {self.detail}"


@dataclass(frozen=True)
class SlowPath:
    """``times`` it was measured; slow in most of them."""

    pair: Pair
    times: int


@dataclass(frozen=True)
class _Bar:
    value: float | None
    basis: str

    def misses(self, value: float | None) -> bool:
        return value is None or (self.value is not None and value < self.value)


class _Seen:
    """The pairs of each host, with the bar of each host. A host is ``able`` when one of its pairs reaches it, ``good`` when most do."""

    def __init__(
        self, results: Sequence[PairResult], floors: Mapping[str, float | None], order: Sequence[str], ratio: float | None, typical: float | None,
    ) -> None:
        self.of: dict[str, list[PairResult]] = defaultdict(list)
        for result in results:
            for host in result.pair:
                self.of[host].append(result)
        self.hosts = [host for host in order if host in self.of] + sorted(self.of.keys() - set(order))
        self.best = {host: max((r.figure for r in self.of[host] if r.figure is not None), default=None) for host in self.hosts}
        typical = middle([value or 0.0 for value in self.best.values()]) if typical is None else typical
        share = _share([value or 0.0 for value in self.best.values()]) if ratio is None else ratio
        # Two nodes have only one pair in common: there is no other figure to compare with.
        relative = share * (typical or 0.0) if len(self.hosts) > 2 else 0.0
        basis = f"{share:.0%} of the median of the nodes' best pairs, {human(typical or 0.0, 'B/s')}"
        self.bars = {host: _bar(relative, basis, floors.get(host)) for host in self.hosts}
        self.able = {host for host in self.hosts if not self.bars[host].misses(self.best[host])}
        # Twice, for whoever met two nodes of a slow group has more slow pairs than fast ones too.
        self.good = self.able
        self.good = self.able - {host for host in self.hosts if self.slow(host)}

    def fast(self, result: PairResult) -> bool:
        return not any(self.bars[host].misses(result.figure) for host in result.pair)

    def votes(self, host: str) -> list[PairResult]:
        """Pairs with good partners: only those accuse this node. Where it met none: those with able ones, or all of its pairs."""
        mine = self.of[host]
        return next((found for trusted in (self.good, self.able) if (found := [one for one in mine if one.other(host) in trusted])), mine)

    def slow(self, host: str) -> bool:
        return self.bars[host].misses(middle([result.figure for result in self.votes(host)]))


def middle(values: Sequence[float | None]) -> float | None:
    """The median, the better one of the two middle values where they are even; None (no figure) is the worst of all."""
    ranked = sorted(values, key=lambda value: -1.0 if value is None else value)
    return ranked[len(ranked) // 2] if ranked else None


def isolate(
    results: Sequence[PairResult],
    floors: Mapping[str, float | None],
    order: Sequence[str] = (),
    ratio: float | None = RELATIVE,
    typical: float | None = None,
) -> dict[str, Finding]:
    """One finding per host of ``results``, all of one rail. ``floors`` is the absolute floor (B/s) of each host's pairs, None or absent where
    there is none; ``order`` the inventory's; ``ratio`` the relative bar, None to choose it by how much the fleet's own figures spread;
    ``typical`` what a healthy pair reaches (B/s), None to take the median of these."""
    seen = _Seen(results, floors, order, ratio, typical)
    slow = {host for host in seen.hosts if seen.slow(host)}
    together = {host: group for group in _groups(seen, slow) for host in group}
    return {host: _finding(seen, host, slow, together.get(host, ())) for host in seen.hosts}


def _share(bests: Sequence[float]) -> float:
    """The relative bar that this fleet's own spread allows."""
    ranked = sorted(bests)
    if len(ranked) < LEAST_FOR_SPREAD:
        return RELATIVE
    typical, spread = ranked[len(ranked) // 2], ranked[3 * len(ranked) // 4] - ranked[len(ranked) // 4]
    return min(QUIET, max(RELATIVE, 1 - RANGES * spread / typical)) if typical else RELATIVE


def _bar(relative: float, basis: str, floor: float | None) -> _Bar:
    if floor is None and not relative:
        return _Bar(None, "")
    return _Bar(floor, FLOOR) if floor is not None and floor >= relative else _Bar(relative, basis)


def _groups(seen: _Seen, slow: set[str]) -> Iterable[tuple[str, ...]]:
    """Runs of slow nodes side by side in the inventory that are long enough to share a cause."""
    if len(slow) == len(seen.hosts):
        return
    run: list[str] = []
    for host in [*seen.hosts, ""]:
        if host in slow:
            run.append(host)
            continue
        members = set(run)
        fast_inside = sum(any(result.other(name) in members and seen.fast(result) for result in seen.of[name]) for name in run)
        # Half of them: a pair with a disturbed figure must not hide that the others are fast.
        if len(run) >= (GROUP_OF_FAST if fast_inside * 2 >= len(run) else GROUP_OF_SLOW):
            yield tuple(run)
        run = []


def _finding(seen: _Seen, host: str, slow: set[str], group: tuple[str, ...]) -> Finding:
    votes, bar = seen.votes(host), seen.bars[host]
    figures = ", ".join(f"{_figure(result)} with {result.other(host)}" for result in seen.of[host])
    finding = Finding(host, "none", seen.best[host], bar.value, bar.basis, figures, middle([result.figure for result in votes]))
    if host not in slow:
        return finding
    finding = replace(finding, contested=any(not bar.misses(result.figure) for result in votes))
    good = len(seen.hosts) - len(slow)
    if not good:
        return replace(finding, blame="unclear", detail=f"{figures}. {_cannot_tell(seen.hosts)}")
    one_way = _one_way(seen, host, votes)
    way = f", and only when {host} is {one_way}" if one_way else ""
    if group:
        text = f"slow together with its neighbours {_span(group)}: what these {len(group)} share (leaf switch, uplink) rather than each of them"
        return replace(finding, blame="group", detail=f"{figures}. {text}", one_way=one_way, group=group)
    fine = [name for name in seen.hosts if name not in slow]
    shown = ", ".join(fine) if good <= 6 else f"{', '.join(fine[:5])} and {good - 5} more"
    return replace(finding, blame="node", detail=f"{figures}. Pairs without {host} are fine{way}: {shown}", one_way=one_way)


def _one_way(seen: _Seen, host: str, votes: Sequence[PairResult]) -> OneWay:
    measured = [(result.ways, result.pair[0] == host) for result in votes if result.ways]
    if not measured:
        return ""
    sending = seen.bars[host].misses(middle([ways[0] if first else ways[1] for ways, first in measured]))
    receiving = seen.bars[host].misses(middle([ways[1] if first else ways[0] for ways, first in measured]))
    return "" if sending == receiving else "sending" if sending else "receiving"


def slow_paths(results: Sequence[PairResult], findings: Mapping[str, Finding]) -> list[SlowPath]:
    """Pairs that are slow, most times they were measured, although both ends are cleared by others: a path, not a node."""
    between: dict[Pair, list[float | None]] = defaultdict(list)
    for result in results:
        between[result.pair if result.pair[0] < result.pair[1] else result.pair[::-1]].append(result.figure)
    return [SlowPath(pair, len(figures)) for pair, figures in between.items() if _path([findings[host] for host in pair], middle(figures))]


def _path(ends: Sequence[Finding], figure: float | None) -> bool:
    # Without a figure of its own, or a bar, an end is not known to be good.
    if any(end.blame != "none" or end.figure is None or end.expected is None for end in ends):
        return False
    return figure is None or any(end.expected is not None and figure < end.expected for end in ends)


def path_text(pair: Pair, results: Sequence[PairResult]) -> str:
    """A sentence on a slow path. ``results`` are all measured pairs."""
    measured = [result for result in results if set(result.pair) == set(pair)]
    mine = ", then ".join(map(_figure, measured))
    rail = next((f" on rail {result.rail}" for result in measured if result.rail), "")
    return f"path {pair[0]} - {pair[1]}{rail}: {mine}, though both ends do well with others: a cable or a switch between them"


def _cannot_tell(hosts: Sequence[str]) -> str:
    if len(hosts) == 2:
        return f"With two nodes ({' and '.join(hosts)}) the fault cannot be told apart: add a third node, or test each with a known good one"
    return "No pair reaches it: the network between all nodes, or the floor itself, is at fault"


def _span(group: Sequence[str]) -> str:
    return ", ".join(group) if len(group) <= 4 else f"{group[0]} to {group[-1]}"


def _figure(result: PairResult) -> str:
    return human(result.figure, "B/s") if result.figure is not None else f"no figure ({result.error or result.busbw})"
