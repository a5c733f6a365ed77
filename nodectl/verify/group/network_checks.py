"""Pairs and group: from gang results to measurements, and to the nodes that are at fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from nodectl.verify.group.gang import GangResult, Member, run_gang
from nodectl.verify.group.hunt import Bars, hunt
from nodectl.verify.group.isolate import FLOOR, Finding, PairResult
from nodectl.verify.group.pairs import Pair
from nodectl.verify.judging.floor_load import Floor, best_floor
from nodectl.verify.judging.formulas import median
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.judging.units import human
from nodectl.verify.parse.nccl_log import nccl_log
from nodectl.verify.session import Gone
from nodectl.verify.suite_load import SuiteStep

Gang = Callable[[Sequence[Member], SuiteStep, Sequence[int]], GangResult]
COLLECTIVE = "all_reduce"
# What NCCL calls the network of each fabric.
NETWORKS: Mapping[str, str] = MappingProxyType({"ib": "IB", "roce": "IB", "efa": "Libfabric"})
GROUP_METRIC = "network.all_reduce"
# A group is as fast as its slowest pair on a real network. Half of that, because nothing milder is a fault by itself (see isolate.py).
GROUP_SHARE = 0.5
# Lab hosts share the cores of one machine: the time grows with the number of ranks, so the bar shrinks by 2/n; and other load on
# those cores halved a group's figure in one of eight runs of three healthy hosts, so the bar is half of that again.
SIMULATED_SHARE = 0.25
# Of the median of the pairs, below which a node of such a lab is at fault: healthy pairs of one quiet run were seen from 287 to 967 MB/s, so
# half the median lies among them. A shaped link, and one that loses frames, is below a twentieth.
PLAYED_SHARE = 0.25
# Of the pairs of a round, so many are named on the screen: a line of four thousand names is read by nobody.
MOST_NAMED = 8
SayPair = Callable[[Mapping[str, Any]], None]


def _unsaid(_data: Mapping[str, Any]) -> None:
    return None


@dataclass(frozen=True)
class Fleet:
    """What is the same for all groups of a run. ``site`` is the site's own bar of each host (B/s), from hosts.yaml."""

    fabric: str
    sku: str
    gpus: int
    simulated: bool
    floors: Sequence[Floor]
    site: Mapping[str, Expectation]

    def conditions(self, nodes: int, size: int, ranks: int) -> dict[str, Any]:
        """What a reader needs to repeat a measurement, and what floors are chosen by."""
        return {
            "fabric": self.fabric, "sku": self.sku, "gpus": self.gpus, "collective": COLLECTIVE, "nodes": nodes, "ranks": ranks, "bytes": size,
        }

    def pair_floor(self, host: str, size: int) -> float | None:
        """The highest absolute bar of a pair that ``host`` is in."""
        shipped = best_floor(self.floors, "network.pairs", self.conditions(2, size, 2 * max(self.gpus, 1)))
        bars = [shipped.floor] if shipped else []
        if host in self.site:
            bars.append(float(self.site[host].value))
        return max(bars, default=None)


@dataclass
class PairsOutcome:
    """``gone`` by host; ``findings`` for every host that has a figure or was found at fault; ``paths`` and ``shared`` are sentences on slow
    paths, and on what slow nodes have in common."""

    results: list[PairResult] = field(default_factory=list)
    gone: dict[str, Gone] = field(default_factory=dict)
    findings: Mapping[str, Finding] = field(default_factory=dict)
    paths: Sequence[str] = ()
    shared: Sequence[str] = ()


def sizes_of(step: SuiteStep, members: Sequence[Member]) -> tuple[int, ...]:
    return step.gpu_sizes if members[0].backend == "nccl" else step.sizes


def measure_pairs(
    members: Sequence[Member],
    step: SuiteStep,
    fleet: Fleet,
    tell: Callable[[str], None],
    gang: Gang = run_gang,
    said: SayPair = _unsaid,
) -> PairsOutcome:
    """Round robin, the pairs of a round at once; then suspects once more with nodes that did well. ``gang`` measures one group; ``said`` hears
    the data of each pair's event."""
    outcome = PairsOutcome()
    by_host = {member.host: member for member in members}
    size = max(sizes_of(step, members))

    def measure(number: int, what: str, pairs: Sequence[Pair]) -> list[PairResult]:
        tell(f"{what}, round {number}: {_names(pairs)}")
        found = _round(pairs, by_host, step, outcome, gang)
        for result in found:
            said(pair_data(result, "all_reduce", size, number))
        return found

    # Where virtual links share one machine, pairs disturb each other: the fleet's own spread sets no bar there.
    bars = Bars({host: fleet.pair_floor(host, size) for host in by_host}, PLAYED_SHARE if fleet.simulated else None)
    outcome.results, diagnosis = hunt(list(by_host), int(step.option("rounds")), bars, measure, lambda host: host not in outcome.gone)
    outcome.findings = diagnosis.rails.get("", {})
    outcome.paths, outcome.shared = diagnosis.paths, diagnosis.shared
    return outcome


def pair_data(result: PairResult, tool: str, size: int, number: int) -> dict[str, Any]:
    """The `pair` event of one measured pair. ``value`` None with ``error`` where there is no figure."""
    return {
        "hosts": list(result.pair), "rail": result.rail, "tool": tool, "bytes": size, "value": result.figure, "unit": "B/s", "round": number,
        "error": result.error,
    }  # fmt: skip


def _names(pairs: Sequence[Pair]) -> str:
    shown = ", ".join(f"{a} with {b}" for a, b in pairs[:MOST_NAMED])
    return shown if len(pairs) <= MOST_NAMED else f"{shown} and {len(pairs) - MOST_NAMED} more"


def _round(pairs: Sequence[Pair], by_host: Mapping[str, Member], step: SuiteStep, outcome: PairsOutcome, gang: Gang) -> list[PairResult]:
    groups = [[by_host[a], by_host[b]] for a, b in pairs]
    if not groups:
        return []
    with ThreadPoolExecutor(len(groups), thread_name_prefix="pair") as pool:
        results = list(pool.map(lambda group: gang(group, step, sizes_of(step, group)), groups))
    for result in results:
        outcome.gone.update(result.gone)
    # A partner that was lost says nothing about the one that is left.
    return [_pair_result(pair, result) for pair, result in zip(pairs, results, strict=True) if not result.gone]


def _pair_result(pair: Pair, result: GangResult) -> PairResult:
    wrong = [size for size in result.output.sizes if size.wrong]
    if wrong:
        return PairResult(pair, None, f"{sum(size.wrong for size in wrong)} wrong values in the sum of {wrong[0].bytes} bytes: data is corrupted on the way")
    if not result.complete or not result.output.sizes:
        return PairResult(pair, None, result.why() or "no size was measured: " + "; ".join(result.output.skipped))
    return PairResult(pair, result.output.sizes[-1].bandwidth(COLLECTIVE, result.ranks, "median").busbw)


def pairs_reading(outcome: PairsOutcome, members: Sequence[Member], step: SuiteStep, fleet: Fleet) -> Reading:
    """One measurement per host that is still there: the middle one of its pairs with good partners.

    A node whose pairs all failed while others work measures 0."""
    reading = Reading()
    size = max(sizes_of(step, members))
    for member in members:
        if member.host in outcome.gone:
            continue
        finding = outcome.findings.get(member.host)
        conditions = fleet.conditions(2, size, 2 * member.nproc)
        value, error = _value(finding)
        detail = finding.detail if finding else ""
        measurement = Measurement(
            "network.pairs", value, "B/s", (member.host,), method_of(member), conditions, error=error, simulated=fleet.simulated, detail=detail,
        )
        reading.add(measurement, *_bars("network.pairs", member.host, fleet))
        if finding and finding.expected is not None and finding.basis not in ("", FLOOR):
            bar = Expectation("network.pairs", "at_least", finding.expected, "B/s", finding.basis, member.host, "this fleet", alone=False)
            reading.expectations.append(bar)
    return reading


def _value(finding: Finding | None) -> tuple[float | None, str]:
    if finding is None:
        return None, "no pair with it could be measured: its partners were lost"
    if finding.figure is None and finding.blame in ("node", "group"):
        return 0.0, ""
    return finding.figure, "" if finding.figure is not None else finding.detail


def _bars(metric: str, host: str, fleet: Fleet) -> list[Expectation]:
    return [replace(fleet.site[host], metric=metric)] if host in fleet.site else []


def method_of(member: Member) -> str:
    return f"torch.distributed all_reduce, {member.backend}"


def group_reading(members: Sequence[Member], result: GangResult, fleet: Fleet, best_pairs: Mapping[str, float]) -> Reading:
    """The whole group's busbw and the correctness of its values, for each member alike."""
    hosts = tuple(member.host for member in members)
    method = f"{method_of(members[0])}, torch {result.output.torch}"
    if not result.complete or not result.output.sizes:
        why = result.why() or "no size was measured: " + "; ".join(result.output.skipped)
        return unknown(GROUP_METRIC, hosts, method, why)
    largest = result.output.sizes[-1]
    conditions = fleet.conditions(len(members), largest.bytes, result.ranks)
    wrong = sum(size.wrong for size in result.output.sizes)
    reading = Reading()
    values = Measurement(
        "network.all_reduce.values", wrong == 0, "bool", hosts, method, conditions, simulated=fleet.simulated, detail=f"{wrong} wrong values in the sum",
    )
    reading.must_be_true(values, "each value is the sum of all ranks' patterns")
    statistic = "mean" if members[0].backend == "nccl" else "median"
    busbw = largest.bandwidth(COLLECTIVE, result.ranks, statistic).busbw
    raw = "; ".join(f"{size.bytes} B: {human(size.bandwidth(COLLECTIVE, result.ranks, statistic).busbw, 'B/s')}" for size in result.output.sizes)
    reading.add(Measurement(GROUP_METRIC, busbw, "B/s", hosts, method, {**conditions, "statistic": statistic}, raw, simulated=fleet.simulated))
    for host in hosts:
        reading.expectations += _bars(GROUP_METRIC, host, fleet)
    reading.expectations += _relative(hosts, fleet, best_pairs)
    reading.join([transport_reading(members, result, fleet)])
    return reading


def speed(result: GangResult) -> float:
    """busbw (B/s) of the largest size, 0 where none was measured."""
    return result.output.sizes[-1].bandwidth(COLLECTIVE, result.ranks, "median").busbw if result.output.sizes and result.ranks > 1 else 0.0


def _relative(hosts: Sequence[str], fleet: Fleet, best_pairs: Mapping[str, float]) -> list[Expectation]:
    """Pairs fine, together slow: something between the nodes (a switch, an oversubscribed uplink), not one of them."""
    figures = [best_pairs[host] for host in hosts if host in best_pairs]
    if len(hosts) < 3 or len(figures) < len(hosts):
        return []
    share = SIMULATED_SHARE * 2 / len(hosts) if fleet.simulated else GROUP_SHARE
    why = f"{share:.0%} of the median of the pairs, {human(median(figures), 'B/s')}; below it, pairs are fine and together they are slow"
    return [Expectation(GROUP_METRIC, "at_least", share * median(figures), "B/s", why, source="this fleet")]


def transport_reading(members: Sequence[Member], result: GangResult, fleet: Fleet) -> Reading:
    """NCCL falls back to sockets without an error: its own log says which network each node really used. One connection over sockets is as
    slow as all, so every network that was used counts."""
    reading = Reading()
    wanted = NETWORKS.get(fleet.fabric)
    if members[0].backend != "nccl" or wanted is None:
        return reading
    for member in members:
        log = nccl_log(result.logs.get(member.host, ""))
        error = "" if log.used else "NCCL's log does not say which network it used"
        absent = f": NCCL found no device for {', '.join(sorted(log.absent))}" if log.absent else ""
        warned = f"; it warned: {log.warnings[0]}" if log.warnings else ""
        method = f"NCCL_DEBUG=INFO, NCCL {log.version or 'of unknown version'}"
        why = f"a silent fallback{absent}{warned}"
        measurement = Measurement("network.transport", log.used or None, "text", (member.host,), method, error=error, detail=why)
        reading.add(measurement, Expectation("network.transport", "equals", wanted, "text", f"the fabric is {fleet.fabric}", member.host))
    return reading


def node_reading(member: Member, result: GangResult, fleet: Fleet) -> Reading:
    """The all-reduce over the GPUs of one node."""
    hosts = (member.host,)
    if not result.complete or not result.output.sizes:
        return unknown("node.all_reduce", hosts, method_of(member), result.why() or "; ".join(result.output.skipped) or "no size was measured")
    largest = result.output.sizes[-1]
    wrong = sum(size.wrong for size in result.output.sizes)
    conditions = {**fleet.conditions(1, largest.bytes, result.ranks), "fabric": "inside"}
    reading = Reading()
    reading.must_be_true(
        Measurement("node.all_reduce.values", wrong == 0, "bool", hosts, method_of(member), conditions, detail=f"{wrong} wrong values in the sum"),
        "each value is the sum of all ranks' patterns",
    )
    reading.add(Measurement("node.all_reduce", largest.bandwidth(COLLECTIVE, result.ranks, "mean").busbw, "B/s", hosts, method_of(member), conditions))
    return reading
