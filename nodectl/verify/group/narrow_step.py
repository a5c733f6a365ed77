"""A group is slow though its pairs are fine: measures halves until the slow part is found, so that the others can be handed off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nodectl.verify.group.gang import GangResult, Member, run_gang
from nodectl.verify.group.narrow import LEAST, Group, narrow, narrowed_text
from nodectl.verify.group.network_checks import GROUP_METRIC, group_reading, sizes_of
from nodectl.verify.judging.reading import Reading
from nodectl.verify.suite_load import SuiteStep
from nodectl.verify.trial import Trial, forks


def slow(trial: Trial, reading: Reading) -> bool:
    """Whether the group's figure is below its bar."""
    return any(check.verdict == "fail" and check.name == GROUP_METRIC for check in trial.ledger.judge(reading))


def narrowed(trial: Trial, members: Sequence[Member], reading: Reading, step: SuiteStep) -> list[Reading]:
    """Readings of all ``members``: of the slow part what ``reading`` says, with where it is; of the others that of a group of their own."""
    hosts = [member.host for member in members]
    if len(hosts) < 2 * LEAST:
        return [reading]  # its halves are pairs, and pairs were measured
    found = narrow(hosts, lambda groups: [_is_slow(trial, group, step) for group in _measured(trial, groups, step)])
    text = narrowed_text(hosts, found)
    trial.ledger.warn(text)
    part = {host for group in found.groups for host in group}
    rest = [host for host in hosts if host not in part]
    told = Reading([replace(one, detail=text) if one.name == GROUP_METRIC else one for one in reading.measurements], reading.expectations)
    if len(rest) < 2:
        return [told]
    ((_, result),) = _measured(trial, [tuple(rest)], step)
    fresh = group_reading(trial.members(rest), result, trial.fleet(rest), trial.best_pairs)
    return [told.without(rest), fresh]


def _measured(trial: Trial, groups: Sequence[Group], step: SuiteStep) -> list[tuple[Group, GangResult]]:
    """Groups that have no node in common, at once. Who is lost on the way is out."""
    shown = " | ".join(f"{group[0]} to {group[-1]}" for group in groups[:4])
    trial.ledger.tell(f"all-reduce over parts: {shown}{f' and {len(groups) - 4} more' if len(groups) > 4 else ''}")
    with forks(len(groups), "part") as pool:
        results = list(pool.map(lambda members: run_gang(members, step, sizes_of(step, members)), [trial.members(group) for group in groups]))
    for result in results:
        trial.ledger.lose_all(result.gone, step.kind)
    return list(zip(groups, results, strict=True))


def _is_slow(trial: Trial, measured: tuple[Group, GangResult], step: SuiteStep) -> bool:
    """A part without a figure is not known to be slow: halving it would not tell more."""
    group, result = measured
    return result.complete and slow(trial, group_reading(trial.members(group), result, trial.fleet(group), trial.best_pairs))
