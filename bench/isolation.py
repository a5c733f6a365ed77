"""How well are bad nodes named? Fleets with known faults through the real rounds, retests and judgement; only the network is made up.

    python bench/isolation.py            the table
    python bench/isolation.py --write    puts it into docs/verification.md

A pair runs at its slower end's speed, times what the noise of its case leaves of it. Seeded: the same table every time.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodectl.transport.channel import Target
from nodectl.verify.gang import GangResult, Member
from nodectl.verify.network_checks import Fleet, measure_pairs
from nodectl.verify.parse.workload import GroupOutput, SizeResult
from nodectl.verify.session import Session
from nodectl.verify.suite_load import SuiteStep

FAST = 10e9
SIZE = 2**30
FLEETS = 40
BEGIN, END = "<!-- bench/isolation.py -->\n", "<!-- end -->\n"
PAGE = Path(__file__).parents[1] / "docs" / "verification.md"
STEP = SuiteStep("pairs", 60.0, (SIZE,), (SIZE,), {"rounds": 3.0, "iterations": 1.0, "warmup": 0.0, "timeout": 1.0})
NODES = (3, 4, 8, 16, 64)


@dataclass(frozen=True)
class Fault:
    """``share`` of its speed is left to a bad node; 0: its ranks die."""

    name: str
    share: float


@dataclass(frozen=True)
class Noise:
    """Each pair loses up to ``spread`` of its speed, and with the chance ``disturbed`` nine tenths of it (other load)."""

    name: str
    spread: float
    disturbed: float = 0.0


DEAD, TENTH = Fault("dead", 0.0), Fault("a tenth of the speed", 0.1)
FAULTS = (DEAD, TENTH, Fault("link at half less losses", 0.45))
NOISES = (Noise("5 % (quiet fabric)", 0.05), Noise("35 % (shared cores)", 0.35), Noise("35 %, 3 % of pairs disturbed", 0.35, 0.03))


class Network:
    """Stands where groups are measured. Draws per fleet and pair, so that threads do not change the order of draws."""

    def __init__(self, bad: frozenset[str], fault: Fault, noise: Noise, seed: int) -> None:
        self.bad, self.fault, self.noise, self.seed = bad, fault, noise, seed
        self.met: dict[tuple[str, ...], int] = {}

    def gang(self, members: Sequence[Member], _step: SuiteStep, _sizes: Sequence[int]) -> GangResult:
        pair = tuple(sorted(member.host for member in members))
        self.met[pair] = self.met.get(pair, 0) + 1
        draw = random.Random(f"{self.seed} {pair} {self.met[pair]}")
        ill = self.bad.intersection(pair)
        if ill and not self.fault.share:
            return GangResult(GroupOutput(), 2, blamed=dict.fromkeys(ill, "its ranks ended with signal 9"))
        speed = FAST * (self.fault.share if ill else 1.0) * (1 - draw.random() * self.noise.spread) * (0.1 if draw.random() < self.noise.disturbed else 1.0)
        return GangResult(GroupOutput((SizeResult(SIZE, (SIZE / speed,), 0),)), 2)


def named(nodes: int, bad: frozenset[str], fault: Fault, noise: Noise, seed: int) -> set[str]:
    """The hosts that the pairs find at fault."""
    hosts = [f"n{index}" for index in range(1, nodes + 1)]
    nobody: Any = None  # sessions are only asked for their host's name here
    members = [Member(Session(host, Target(host, host), {}, nobody), host, "eth0", 1, "python3", "gloo") for host in hosts]
    outcome = measure_pairs(members, STEP, Fleet("tcp", "", 0, False, (), {}), lambda _text: None, Network(bad, fault, noise, seed).gang)
    return {host for host, finding in outcome.findings.items() if finding.blame != "none"}


@dataclass(frozen=True)
class Score:
    """Of all bad nodes and of all good ones of the fleets, those that were blamed."""

    bad: int = 0
    found: int = 0
    good: int = 0
    alarms: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.bad + other.bad, self.found + other.found, self.good + other.good, self.alarms + other.alarms)

    @property
    def shown(self) -> str:
        return f"{100 * self.found / self.bad:.0f} %" if self.bad else "-"


@dataclass(frozen=True)
class Case:
    """``ill`` of 4 nodes are bad: 0 none, 1 a quarter; -1: one, whatever the size of the fleet."""

    name: str
    ill: int
    fault: Fault
    noise: Noise

    def count(self, nodes: int) -> int:
        return 1 if self.ill < 0 else self.ill * nodes // 4

    def score(self, nodes: int, fleets: int = FLEETS) -> Score:
        total = Score()
        for seed in range(fleets):
            ill = self.count(nodes)
            bad = frozenset(f"n{index}" for index in random.Random(seed).sample(range(1, nodes + 1), ill))
            blamed = named(nodes, bad, self.fault, self.noise, seed)
            total += Score(ill, len(blamed & bad), nodes - ill, len(blamed - bad))
        return total


def cases() -> list[Case]:
    found = [Case("none", 0, DEAD, noise) for noise in NOISES]
    found += [Case(f"one, {fault.name}", -1, fault, noise) for fault in FAULTS for noise in NOISES]
    return found + [Case(f"a quarter, {fault.name}", 1, fault, noise) for fault in (DEAD, TENTH) for noise in NOISES[1:]]


def row(case: Case, fleets: int = FLEETS) -> list[str]:
    """Share of the bad nodes that are named, per size of fleet; then all good nodes that were blamed, of all good nodes."""
    scores = [case.score(nodes, fleets) if case.count(nodes) or case.ill == 0 else Score() for nodes in NODES]
    total = sum(scores, Score())
    return [case.name, case.noise.name, *(score.shown for score in scores), f"{total.alarms} of {total.good}"]


def table() -> str:
    head = ["bad nodes", "noise", *(f"{nodes} nodes" for nodes in NODES), "false alarms"]
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
