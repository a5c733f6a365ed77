"""A slow node: in both directions, or only when it sends, or only when it receives? One broadcast each way with a node that did well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from nodectl.verify.group.gang import Case, GangResult, Member, Program, run_program
from nodectl.verify.group.isolate import RELATIVE, Finding, OneWay
from nodectl.verify.group.network_checks import sizes_of
from nodectl.verify.group.pairs import retest
from nodectl.verify.judging.formulas import Undefined
from nodectl.verify.judging.units import human
from nodectl.verify.suite_load import SuiteStep

# One direction below half of the other is a fault of that direction; other load takes from both.
ONE_SIDED = RELATIVE
# Many slow nodes have something else in common than a dirty optic each.
MOST = 8
Run = Callable[[Sequence[Member], Program], GangResult]


def with_directions(findings: Mapping[str, Finding], members: Sequence[Member], step: SuiteStep, run: Run = run_program) -> dict[str, Finding]:
    """The same findings; those of slow nodes say which direction alone is slow, where one is. Nothing else is concluded from it: a node that
    is lost meanwhile, or gives no figure, keeps its finding."""
    by_host = {member.host: member for member in members}
    slow = [host for host, found in findings.items() if found.blame == "node" and found.figure is not None and not found.one_way and host in by_host]
    good = [host for host, found in findings.items() if found.blame == "none" and found.figure is not None and host in by_host]
    pairs = retest(slow, good, []) if len(slow) <= MOST else []
    if not pairs:
        return dict(findings)
    groups = [[by_host[a], by_host[b]] for a, b in pairs]
    with ThreadPoolExecutor(len(groups), thread_name_prefix="direction") as pool:
        results = list(pool.map(lambda group: run(group, both_ways(group, step)), groups))
    told = {pair[0]: _told(findings[pair[0]], pair[1], result) for pair, result in zip(pairs, results, strict=True)}
    return {**findings, **told}


def both_ways(members: Sequence[Member], step: SuiteStep) -> Program:
    """A broadcast from a rank of the first node, then from one of the second, in one start."""
    size = max(sizes_of(step, members))
    iterations, warmup = int(step.option("iterations")), int(step.option("warmup"))
    cases = tuple(Case("broadcast", (size,), root=root, warmup=warmup, iterations=iterations) for root in (0, members[0].nproc))
    return Program(cases, step.deadline, step.option("timeout"))


def _told(finding: Finding, partner: str, result: GangResult) -> Finding:
    sending, receiving = (_speed(result, case) for case in (0, 1))
    if sending is None or receiving is None or min(sending, receiving) >= ONE_SIDED * max(sending, receiving):
        return finding
    way: OneWay = "sending" if sending < receiving else "receiving"
    other = "receiving" if way == "sending" else "sending"
    figures = f"{human(min(sending, receiving), 'B/s')} against {human(max(sending, receiving), 'B/s')} when it is {other}, with {partner}"
    return replace(finding, one_way=way, detail=f"{finding.detail}. Slow only when {finding.host} is {way}: {figures}")


def _speed(result: GangResult, case: int) -> float | None:
    """B/s of a broadcast; None where there is no figure."""
    sizes = result.output.cases.get(case, ())
    if not result.complete or not sizes:
        return None
    try:
        return sizes[-1].bandwidth("broadcast", result.ranks, "mean").busbw
    except Undefined:
        return None
