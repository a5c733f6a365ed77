"""The hunt for who is slow: rounds of pairs, then suspects again with good nodes and suspected paths once more. Pure: who measures is handed in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nodectl.verify.group.isolate import Finding, PairResult, isolate, middle, path_text, slow_paths
from nodectl.verify.group.pairs import Pair, retest, rounds

# Rounds that suspects get with nodes that did well: with few rounds a node may have met only bad ones, and other load on shared cores
# halves a figure now and then. With two more the majority of five decides.
RETESTS = 2
# Two more for those who have both slow and fast pairs with good nodes: other load comes and goes, a bad cable stays.
CONTESTED = 2
# One round: its number, what it is for, its pairs. Gives a figure per pair and rail; none for a pair that lost a node.
Measure = Callable[[int, str, Sequence[Pair]], Sequence[PairResult]]


@dataclass(frozen=True)
class Bars:
    """What pairs are held against: absolute floors by host (B/s), and the relative bar (None: chosen by the fleet's own spread)."""

    floors: Mapping[str, float | None] = field(default_factory=dict)
    ratio: float | None = None


@dataclass(frozen=True)
class Diagnosis:
    """``rails``: rail, then host, to what was found ("" is the rail of tools that know none). ``paths`` and ``shared`` are sentences: slow
    paths, and what many nodes have in common. ``slow_pairs`` are the pairs of those paths; ``suspected`` those that were slow once so far."""

    rails: Mapping[str, Mapping[str, Finding]]
    paths: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    slow_pairs: tuple[Pair, ...] = ()
    suspected: tuple[Pair, ...] = ()

    def of(self, host: str) -> list[tuple[str, Finding]]:
        return [(rail, found[host]) for rail, found in self.rails.items() if host in found]

    def blamed(self) -> list[str]:
        """Hosts with a finding against them, on any rail."""
        return list(dict.fromkeys(host for found in self.rails.values() for host, finding in found.items() if finding.blame != "none"))


def hunt(hosts: Sequence[str], limit: int, bars: Bars, measure: Measure, alive: Callable[[str], bool]) -> tuple[list[PairResult], Diagnosis]:
    """All results, and what they say. At most ``limit`` + RETESTS + CONTESTED rounds; ``alive`` says whether a host is still there."""
    results: list[PairResult] = []
    for number, pairs in enumerate(rounds(hosts, limit), 1):
        results += measure(number, "pairs", [pair for pair in pairs if all(map(alive, pair))])
    diagnosis = diagnose(results, hosts, bars)
    for number in range(limit + 1, limit + 1 + RETESTS + CONTESTED):
        left = [host for host in hosts if alive(host)]
        results = [result for result in results if all(map(alive, result.pair))]
        again = _again(left, results, diagnosis, number > limit + RETESTS)
        if not again:
            break
        results += measure(number, "suspects again, with nodes that did well", again)
        diagnosis = diagnose([result for result in results if all(map(alive, result.pair))], hosts, bars)
    return [result for result in results if all(map(alive, result.pair))], diagnosis


def _again(left: Sequence[str], results: Sequence[PairResult], diagnosis: Diagnosis, late: bool) -> list[Pair]:
    """Each suspect with a good node that is still free, and slow paths once more. A node is in one pair; ``late``: only who is contested."""
    blamed = set(diagnosis.blamed())
    fine = [host for host in left if host not in blamed and any(found.figure is not None for _, found in diagnosis.of(host))]
    clear = set(fine)
    suspects = [host for host in left if host not in clear and (not late or any(found.contested for _, found in diagnosis.of(host)))]
    # Good nodes go to suspects first: a node stops a job, a path slows it.
    spare = 0 if late else max(0, len(fine) - len(suspects)) // 2
    paths = _apart(diagnosis.suspected)[:spare]
    used = {host for pair in paths for host in pair}
    return paths + retest(suspects, [host for host in fine if host not in used], [result.pair for result in results])


def _apart(pairs: Sequence[Pair]) -> list[Pair]:
    """Those that have no node in common with an earlier one."""
    used: set[str] = set()
    apart = []
    for pair in pairs:
        if not used & set(pair):
            apart.append(pair)
            used |= set(pair)
    return apart


def diagnose(results: Sequence[PairResult], order: Sequence[str], bars: Bars) -> Diagnosis:
    """What all rails together say."""
    by_rail: dict[str, list[PairResult]] = defaultdict(list)
    for result in results:
        by_rail[result.rail].append(result)
    # A rail that is slow everywhere shows only beside the others.
    typical = max((_typical(measured) for measured in by_rail.values()), default=0.0) if len(by_rail) > 1 else None
    rails = {rail: isolate(measured, bars.floors, order, bars.ratio, typical) for rail, measured in by_rail.items()}
    slow = [(path_text(path.pair, measured), path) for rail, measured in by_rail.items() for path in slow_paths(measured, rails[rail])]
    # Other load makes a pair slow once; what stays slow is a path.
    sure = [(text, path.pair) for text, path in slow if path.times > 1]
    suspected = tuple(path.pair for _, path in slow if path.times == 1)
    return Diagnosis(rails, tuple(text for text, _ in sure), tuple(_shared(rails)), tuple(pair for _, pair in sure), suspected)


def _typical(results: Sequence[PairResult]) -> float:
    return middle([result.figure or 0.0 for result in results]) or 0.0


def _shared(rails: Mapping[str, Mapping[str, Finding]]) -> list[str]:
    """What many nodes have in common: a rail's switch, or that of a group."""
    texts = []
    for rail, found in rails.items():
        bad = [host for host, finding in found.items() if finding.blame != "none"]
        if rail and len(rails) > 1 and 2 * len(bad) > len(found):
            texts.append(f"rail {rail}: {len(bad)} of {len(found)} nodes are slow on it, and not on the other rails: its switch, or its cabling")
            continue
        on = f" on rail {rail}" if rail else ""
        groups = dict.fromkeys(finding.group for finding in found.values() if finding.group)
        texts += [f"{len(group)} nodes{on} are slow together, {group[0]} to {group[-1]}: what they share (leaf switch, uplink)" for group in groups]
    return texts
