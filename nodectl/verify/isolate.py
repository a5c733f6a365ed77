"""Which node is it? From the figures of pairs to the nodes at fault. Pure.

A pair runs at the speed of its slower end, so a node is as good as its *best* pair: one good partner clears it. A node is at
fault when even its best pair is below what is expected while other nodes' pairs without it are fine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nodectl.verify.formulas import median
from nodectl.verify.units import human

# Healthy nodes of one fabric differ by a few per cent; a link that trained at half its width or rate shows 50 % at best.
# Anything milder is left to absolute floors, because parallel pairs on shared cores disturb each other by tens of per cent.
RELATIVE = 0.5
# Basis of a bar that is not the fleet's own: the judge holds the figure against that floor itself, and names its source.
FLOOR = "the floor"
Blame = Literal["none", "node", "unclear"]


@dataclass(frozen=True)
class PairResult:
    """One measured pair. ``busbw`` in B/s, or None with ``error``; what is no number above or at zero counts as no figure."""

    pair: tuple[str, str]
    busbw: float | None
    error: str = ""

    @property
    def figure(self) -> float | None:
        return self.busbw if self.busbw is not None and 0 <= self.busbw < math.inf else None

    def other(self, host: str) -> str:
        return self.pair[1] if self.pair[0] == host else self.pair[0]


@dataclass(frozen=True)
class Finding:
    """What the pairs say of one node.

    ``best`` is its best pair (B/s; None: no pair gave a figure); ``expected`` the bar it had to reach (None: nothing to compare with),
    ``basis`` where that comes from. ``detail`` is what stands beside these two: the figure with each partner, and whose fault it is.
    """

    host: str
    blame: Blame
    best: float | None
    expected: float | None
    basis: str
    detail: str

    @property
    def reason(self) -> str:
        """All of it in one sentence."""
        bar = f"expected at least {human(self.expected, 'B/s')} ({self.basis})" if self.expected is not None else "nothing to compare with"
        return f"best pair {human(self.best, 'B/s') if self.best is not None else 'none'}, {bar}: {self.detail}"


@dataclass(frozen=True)
class _Bar:
    value: float | None
    basis: str


def isolate(results: Sequence[PairResult], floors: Mapping[str, float | None], ratio: float = RELATIVE) -> dict[str, Finding]:
    """One finding per host of ``results``. ``floors`` is the absolute floor (B/s) of each host's pairs, None or absent where there is none."""
    hosts = sorted({host for result in results for host in result.pair})
    best = {host: _best(host, results) for host in hosts}
    bars = {host: _bar(host, best, floors.get(host), ratio) for host in hosts}
    bad = {host for host in hosts if _below(best[host], bars[host])}
    return {host: _finding(host, results, best, bars[host], bad) for host in hosts}


def slow_paths(results: Sequence[PairResult], findings: Mapping[str, Finding], ratio: float = RELATIVE) -> list[str]:
    """Sentences on pairs that are bad although both ends are good elsewhere: a path, not a node."""
    texts = []
    for result in results:
        ends = [findings[host] for host in result.pair]
        if any(end.blame != "none" or end.best is None for end in ends):
            continue
        bar = ratio * min(end.best or 0.0 for end in ends)
        if result.figure is None or result.figure < bar:
            reach = f"though both ends reach at least {human(bar / ratio, 'B/s')} with others"
            texts.append(f"path {result.pair[0]} - {result.pair[1]}: {_figure(result)}, {reach}: a cable or a switch between them")
    return texts


def _best(host: str, results: Sequence[PairResult]) -> float | None:
    values = [result.figure for result in results if host in result.pair and result.figure is not None]
    return max(values) if values else None


def _bar(host: str, best: Mapping[str, float | None], floor: float | None, ratio: float) -> _Bar:
    others = [value or 0.0 for name, value in best.items() if name != host]
    # Two nodes have only one pair in common: there is no other figure to compare with.
    relative = ratio * median(others) if len(others) > 1 else None
    if floor is None and not relative:
        return _Bar(None, "")
    if floor is not None and floor >= (relative or 0.0):
        return _Bar(floor, FLOOR)
    return _Bar(relative, f"{ratio:.0%} of the median of the other nodes' best pairs, {human((relative or 0.0) / ratio, 'B/s')}")


def _below(value: float | None, bar: _Bar) -> bool:
    return value is None or (bar.value is not None and value < bar.value)


def _finding(host: str, results: Sequence[PairResult], best: Mapping[str, float | None], bar: _Bar, bad: set[str]) -> Finding:
    mine = [result for result in results if host in result.pair]
    figures = ", ".join(f"{_figure(result)} with {result.other(host)}" for result in mine)
    good = [name for name in best if name not in bad]
    if host not in bad:
        return Finding(host, "none", best[host], bar.value, bar.basis, figures)
    if not good:
        return Finding(host, "unclear", best[host], bar.value, bar.basis, f"{figures}. {_cannot_tell(best)}")
    return Finding(host, "node", best[host], bar.value, bar.basis, f"{figures}. Pairs without {host} are fine: {', '.join(good)}")


def _cannot_tell(best: Mapping[str, float | None]) -> str:
    if len(best) == 2:
        return f"With two nodes ({' and '.join(best)}) the fault cannot be told apart: add a third node, or test each with a known good one"
    return "No pair reaches it: the network between all nodes, or the floor itself, is at fault"


def _figure(result: PairResult) -> str:
    return human(result.figure, "B/s") if result.figure is not None else f"no figure ({result.error or result.busbw})"
