"""Steps that need several nodes at a time. Each takes the trial and its step, leaves its readings in the ledger, and covers who took part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nodectl.verify.group.collective_step import collectives
from nodectl.verify.group.directions import with_directions
from nodectl.verify.group.gang import GangResult, Member, run_gang
from nodectl.verify.group.gather import gather
from nodectl.verify.group.loss_checks import loss_reading
from nodectl.verify.group.narrow_step import narrowed, slow
from nodectl.verify.group.network_checks import group_reading, measure_pairs, node_reading, pairs_reading, sizes_of, speed
from nodectl.verify.group.pace_checks import METRIC
from nodectl.verify.group.pace_watch import PaceWatch
from nodectl.verify.group.rdma_step import rdma
from nodectl.verify.group.shared_step import shared
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
    watch = PaceWatch()
    outcome = measure_pairs(members, step, fleet, ledger.tell, watch.gang, said=lambda data: ledger.say("pair", "", data))
    ledger.lose_all(outcome.gone, step.kind)
    outcome.findings = with_directions(outcome.findings, [member for member in members if not ledger.lost(member.host)], step)
    for text in (*outcome.paths, *outcome.shared):
        ledger.warn(text)
    trial.best_pairs = {host: finding.best for host, finding in outcome.findings.items() if finding.best is not None}
    left = [host for host in hosts if not ledger.lost(host)]
    if len(left) > 1:
        ledger.judged(pairs_reading(outcome, members, step, fleet), step.kind)
        there = [member for member in members if member.host in left]
        ledger.judged(loss_reading(there, watch.runs, fleet), step.kind)
        _pace(trial, there, watch, step)
    ledger.cover(left, step.kind)


def _pace(trial: Trial, members: Sequence[Member], watch: PaceWatch, step: SuiteStep) -> None:
    """Judge who is slow by itself; whoever seems so gets a second look."""
    ledger = trial.ledger
    while suspects := watch.suspects():
        ledger.tell(f"the fixed work once more, all nodes at once: {', '.join(suspects)} was slow at it")
        ledger.lose_all(watch.look([member for member in members if not ledger.lost(member.host)], step).gone, step.kind)
    left = [member for member in members if not ledger.lost(member.host)]
    ledger.judged(watch.reading(left, trial.fleet([member.host for member in left])), step.kind)


def all_reduce(trial: Trial, step: SuiteStep) -> None:
    """Over all nodes that pass. Whoever breaks the group is taken out, so that the others can be handed off."""
    watch = PaceWatch()
    found = gather(trial, step.kind, "all-reduce", lambda members: watch.gang(members, step, sizes_of(step, members)))
    if found is None:
        return
    _group(trial, found.members, found.result, step)
    # Where pairs were measured the ranks' pace and what their links lose is known already.
    unknown = {member.host for member in found.members} - {check.host for check in trial.ledger.checks() if check.name == METRIC}
    if found.result.complete and unknown:
        there = [member for member in found.members if not trial.ledger.lost(member.host)]
        trial.ledger.judged(loss_reading(there, watch.runs, trial.fleet([member.host for member in there])), step.kind)
        _pace(trial, there, watch, step)


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


GROUPS: Mapping[str, GroupStep] = {
    "node_all_reduce": node_all_reduce, "pairs": pairs, "rdma": rdma, "all_reduce": all_reduce, "collectives": collectives, "shared": shared,
}
