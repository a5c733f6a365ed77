"""Steps that need several nodes at a time. Each takes the trial and its step, leaves its readings in the ledger, and covers who took part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nodectl.verify.bounds import ATTEMPTS
from nodectl.verify.gang import GangResult, Member, run_gang
from nodectl.verify.measurement import Measurement
from nodectl.verify.narrow_step import narrowed, slow
from nodectl.verify.network_checks import group_reading, measure_pairs, node_reading, pairs_reading, sizes_of, speed
from nodectl.verify.reading import Reading
from nodectl.verify.suite_load import SuiteStep
from nodectl.verify.trial import Trial, forks

GroupStep = Callable[[Trial, SuiteStep], None]


def node_all_reduce(trial: Trial, step: SuiteStep) -> None:
    """Over the GPUs of each node by itself."""
    ledger = trial.ledger
    ledger.cover(ledger.hosts, step.kind)
    inside = [member for member in trial.members(ledger.passing()) if member.backend == "nccl" and member.nproc > 1]
    if not inside:
        return
    with forks(len(inside), "node") as pool:
        results = list(pool.map(lambda member: run_gang([member], step, step.gpu_sizes), inside))
    for member, result in zip(inside, results, strict=True):
        ledger.lose_all(result.gone, step.kind)
        if member.host not in result.gone:
            ledger.judged(node_reading(member, result, trial.fleet([member.host])), step.kind)


def pairs(trial: Trial, step: SuiteStep) -> None:
    """Which node, or which path, is slow?"""
    ledger = trial.ledger
    hosts = ledger.passing()
    if len(hosts) < 2:
        ledger.cover(hosts, step.kind)
        return
    members, fleet = trial.members(hosts), trial.fleet(hosts)
    outcome = measure_pairs(members, step, fleet, ledger.tell, said=lambda data: ledger.say("pair", "", data))
    ledger.lose_all(outcome.gone, step.kind)
    for text in (*outcome.paths, *outcome.shared):
        ledger.warn(text)
    trial.best_pairs = {host: finding.best for host, finding in outcome.findings.items() if finding.best is not None}
    left = [host for host in hosts if not ledger.lost(host)]
    if len(left) > 1:
        ledger.judged(pairs_reading(outcome, members, step, fleet), step.kind)
    ledger.cover(left, step.kind)


def all_reduce(trial: Trial, step: SuiteStep) -> None:
    """Over all nodes that pass. Whoever breaks the group is taken out, so that the others can be handed off."""
    ledger = trial.ledger
    for attempt in range(1, ATTEMPTS + 1):
        hosts = ledger.passing()
        if len(hosts) < 2:
            ledger.cover(hosts, step.kind)
            return
        members = trial.members(hosts)
        ledger.tell(f"all-reduce over {', '.join(hosts)}")
        result = run_gang(members, step, sizes_of(step, members))
        ledger.lose_all(result.gone, step.kind)
        blamed = _blame(trial, members, result, step.kind)
        if result.complete or not (result.gone or blamed) or attempt == ATTEMPTS:
            left = [member for member in members if not ledger.lost(member.host) and member.host not in blamed]
            _group(trial, left, result, step)
            return


def _group(trial: Trial, members: Sequence[Member], result: GangResult, step: SuiteStep) -> None:
    """Judge the group. A figure below its bar is measured once more and the better one counts: other load passes, a bad switch does not.

    Of what stays slow the part is found, and the nodes outside it get a figure of their own."""
    ledger = trial.ledger
    hosts = [member.host for member in members]
    reading = group_reading(members, result, trial.fleet(hosts), trial.best_pairs)
    if slow(trial, reading):
        ledger.tell(f"all-reduce over {', '.join(hosts)} once more: it was below its bar")
        second = run_gang(members, step, sizes_of(step, members))
        ledger.lose_all(second.gone, step.kind)
        if second.complete and speed(second) > speed(result):
            reading = group_reading(members, second, trial.fleet(hosts), trial.best_pairs)
    left = [member for member in members if not ledger.lost(member.host)]
    readings = narrowed(trial, left, reading, step) if slow(trial, reading) and len(left) == len(members) else [reading]
    for one in readings:
        ledger.judged(one.without([host for host in hosts if ledger.lost(host)]), step.kind)


def _blame(trial: Trial, members: Sequence[Member], result: GangResult, kind: str) -> set[str]:
    """Nodes that broke the group although they answer: ranks that died, or never reached the rendezvous."""
    if result.complete:
        return set()
    why = dict(result.blamed)
    first = 0
    for member in members:
        mine = set(range(first, first + member.nproc))
        first += member.nproc
        if mine & result.output.missing and member.host not in result.gone and member.host not in why and member is not members[0]:
            why[member.host] = f"its ranks never reached the rendezvous at {members[0].address}: {result.errors.get(member.host, 'no reason was given')}"
    for host, reason in why.items():
        broke = Measurement("network.all_reduce.ranks", False, "bool", (host,), "torch.distributed", detail=f"it broke the group: {reason}")
        reading = Reading()
        reading.must_be_true(broke, "its ranks take part to the end")
        trial.ledger.judged(reading, kind)
    return set(why)


GROUPS: Mapping[str, GroupStep] = {"node_all_reduce": node_all_reduce, "pairs": pairs, "all_reduce": all_reduce}
