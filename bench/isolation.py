"""How well is named what is at fault? Fleets with known faults through the real rounds, retests and judgement; only the network is made up.

    python bench/isolation.py            the table (about two minutes)
    python bench/isolation.py --write    puts it into docs/isolation.md

A pair runs at the speed of its slower end and of the paths between, times what the noise of its case leaves of it. Seeded: the same table
every time.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nodectl.verify.group.hunt import Bars, Diagnosis, hunt
from nodectl.verify.group.isolate import RELATIVE, PairResult
from nodectl.verify.group.pairs import Pair

FAST = 10e9
ROUNDS = 3
SWITCH = 16
BEGIN, END = "<!-- bench/isolation.py -->\n", "<!-- end -->\n"
PAGE = Path(__file__).parents[1] / "docs" / "isolation.md"
# Fleets per cell: fewer where each holds more nodes, so that the whole table stays within minutes.
NODES = {4: 200, 8: 200, 16: 100, 64: 40, 256: 20, 1024: 8, 4096: 3}


@dataclass(frozen=True)
class Noise:
    """Each measurement loses up to ``spread`` of its speed, and with the chance ``disturbed`` nine tenths of it (other load).

    ``ratio`` is the bar the judge takes: its own choice on a real fabric, RELATIVE where nodes share the cores of one machine."""

    name: str
    spread: float
    disturbed: float = 0.0
    ratio: float | None = None


NOISES = (Noise("5 %", 0.05), Noise("10 %", 0.1), Noise("20 %", 0.2))
ROUGH = (Noise("20 %, 1 % disturbed", 0.2, 0.01), Noise("35 %, 3 % disturbed, shared cores", 0.35, 0.03, RELATIVE))


@dataclass
class Network:
    """``send`` and ``receive`` are the share of its speed that a node has left; ``links`` that of pairs; ``behind`` the share that the
    uplink of a switch leaves to pairs that cross it."""

    hosts: Sequence[str]
    noise: Noise
    draw: random.Random
    send: dict[str, float] = field(default_factory=dict)
    receive: dict[str, float] = field(default_factory=dict)
    links: dict[Pair, float] = field(default_factory=dict)
    behind: dict[str, float] = field(default_factory=dict)
    directed: bool = False
    measured: int = 0

    def measure(self, _number: int, _what: str, pairs: Sequence[Pair]) -> list[PairResult]:
        self.measured += len(pairs)
        return [self.pair(a, b) for a, b in pairs]

    def pair(self, a: str, b: str) -> PairResult:
        there, back = self.way(a, b), self.way(b, a)
        if not there or not back:
            return PairResult((a, b), None, "its ranks ended with signal 9")
        return PairResult((a, b), min(there, back), ways=(there, back) if self.directed else None)

    def way(self, a: str, b: str) -> float:
        crossing = 1.0 if (a in self.behind) == (b in self.behind) else self.behind.get(a, self.behind.get(b, 1.0))
        share = min(self.send.get(a, 1.0), self.receive.get(b, 1.0), self.links.get((a, b), 1.0), self.links.get((b, a), 1.0), crossing)
        other_load = 0.1 if self.draw.random() < self.noise.disturbed else 1.0
        return FAST * share * other_load * (1 - self.draw.random() * self.noise.spread)


@dataclass(frozen=True)
class Score:
    """Of all that was broken, what was named rightly; of all good nodes, those that were blamed."""

    bad: int = 0
    found: int = 0
    good: int = 0
    alarms: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.bad + other.bad, self.found + other.found, self.good + other.good, self.alarms + other.alarms)

    @property
    def shown(self) -> str:
        return f"{100 * self.found / self.bad:.4g} %" if self.bad else "-"


Break = Callable[[Network, random.Random], set[str]]
Right = Callable[[Network, set[str], Diagnosis], int]


def _some(network: Network, draw: random.Random, count: int) -> list[str]:
    return draw.sample(list(network.hosts), max(1, count))


def nodes_at(share: float, part: float = 0.0) -> Break:
    """One node, or ``part`` of them, with ``share`` of their speed; 0: dead."""

    def broken(network: Network, draw: random.Random) -> set[str]:
        bad = set(_some(network, draw, int(part * len(network.hosts))))
        network.send, network.receive = dict.fromkeys(bad, share), dict.fromkeys(bad, share)
        return bad

    return broken


def one_way(network: Network, draw: random.Random) -> set[str]:
    bad = set(_some(network, draw, 1))
    network.send = dict.fromkeys(bad, 0.2)
    network.directed = True
    return bad


def link(network: Network, draw: random.Random) -> set[str]:
    """The path of a pair that is measured at all: of one of the first three rounds, as every path of a small fleet is."""
    seen = Network(network.hosts, Noise("", 0.0), random.Random(0))
    pairs: list[Pair] = []
    hunt(network.hosts, ROUNDS, Bars(), lambda number, _what, given: pairs.extend(given) or seen.measure(number, "", given), lambda _host: True)
    pair = draw.choice(pairs)
    network.links = {pair: 0.2}
    return set(pair)


def uplink(network: Network, draw: random.Random) -> set[str]:
    """The sixteen nodes of one switch are fast among themselves and slow to all others."""
    first = SWITCH * draw.randrange(len(network.hosts) // SWITCH)
    bad = network.hosts[first:first + SWITCH]
    network.behind = dict.fromkeys(bad, 0.2)
    return set(bad)


def switch(network: Network, draw: random.Random) -> set[str]:
    """The sixteen nodes of one switch are slow to everybody, one another too."""
    first = SWITCH * draw.randrange(len(network.hosts) // SWITCH)
    bad = network.hosts[first:first + SWITCH]
    network.send, network.receive = dict.fromkeys(bad, 0.2), dict.fromkeys(bad, 0.2)
    return set(bad)


def named(_network: Network, bad: set[str], diagnosis: Diagnosis) -> int:
    return len(bad & set(diagnosis.blamed()))


def as_sender(_network: Network, bad: set[str], diagnosis: Diagnosis) -> int:
    return sum(diagnosis.rails[""][host].one_way == "sending" for host in bad)


def as_path(network: Network, bad: set[str], diagnosis: Diagnosis) -> int:
    return len(bad) if {frozenset(pair) for pair in diagnosis.slow_pairs} == {frozenset(pair) for pair in network.links} and not diagnosis.blamed() else 0


def as_group(_network: Network, bad: set[str], diagnosis: Diagnosis) -> int:
    return sum(diagnosis.rails[""][host].blame == "group" for host in bad)


@dataclass(frozen=True)
class Case:
    """``least``: the smallest fleet in which it can be told apart at all."""

    name: str
    noise: Noise
    broken: Break | None = None
    right: Right = named
    least: int = 4

    def score(self, count: int, fleets: int) -> Score:
        return sum((self._fleet(count, seed) for seed in range(fleets)), Score())

    def _fleet(self, count: int, seed: int) -> Score:
        network, diagnosis, bad = self.run(count, seed)
        blamed = set(diagnosis.blamed())
        # A path is between two good nodes.
        good = set(network.hosts) - (set() if network.links else bad)
        return Score(len(bad), self.right(network, bad, diagnosis) if bad else 0, len(good), len(blamed & good))

    def run(self, count: int, seed: int) -> tuple[Network, Diagnosis, set[str]]:
        draw = random.Random(f"{seed} {count} {self.name} {self.noise.name}")
        network = Network([f"n{index}" for index in range(1, count + 1)], self.noise, draw)
        bad = self.broken(network, draw) if self.broken else set()
        _, diagnosis = hunt(network.hosts, ROUNDS, Bars(ratio=self.noise.ratio), network.measure, lambda _host: True)
        return network, diagnosis, bad


def cases() -> list[Case]:
    every = (*NOISES, *ROUGH)
    found = [Case("nothing", noise) for noise in every]
    found += [Case("one node dead", noise, nodes_at(0.0)) for noise in (NOISES[0], ROUGH[1])]
    found += [Case("one node at a tenth", noise, nodes_at(0.1)) for noise in every]
    found += [Case("one node at half", noise, nodes_at(0.5), least=8) for noise in NOISES]
    found += [Case("one node at 40 %", noise, nodes_at(0.4)) for noise in every]
    found += [Case("a tenth of the nodes at 20 %", noise, nodes_at(0.2, 0.1)) for noise in every]
    found += [Case("a quarter of the nodes at 20 %", noise, nodes_at(0.2, 0.25)) for noise in (NOISES[2], *ROUGH)]
    found += [Case("one node sends at 20 % (named with its direction)", noise, one_way, as_sender) for noise in (NOISES[2], ROUGH[0])]
    found += [Case("one path at 20 % (named as path, no node blamed)", noise, link, as_path) for noise in (NOISES[2], ROUGH[0])]
    found += [Case("uplink of a switch of 16 at 20 % (named as group)", noise, uplink, as_group, 64) for noise in (NOISES[2], ROUGH[0])]
    return found + [Case("switch of 16 at 20 %, inside too (named as group)", noise, switch, as_group, 64) for noise in (NOISES[2], ROUGH[0])]


def row(case: Case) -> list[str]:
    """Share of what was broken that is named, per size of fleet; then all good nodes that were blamed, of all good nodes."""
    scores = [case.score(count, fleets) if count >= case.least else Score() for count, fleets in NODES.items()]
    total = sum(scores, Score())
    return [case.name, case.noise.name, *(score.shown for score in scores), f"{total.alarms} of {total.good}"]


def table() -> str:
    head = ["broken", "noise", *(f"{count} nodes" for count in NODES), "false alarms"]
    lines = [head, ["---"] * len(head), *map(row, cases())]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    text = table()
    if "--write" not in sys.argv:
        print(text, end="")
        return
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
