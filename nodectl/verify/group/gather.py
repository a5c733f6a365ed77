"""A group over all nodes that pass. Whoever breaks it is taken out and it is formed again, so that the others can be handed off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nodectl.verify.bounds import ATTEMPTS
from nodectl.verify.group.gang import GangResult, Member
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading
from nodectl.verify.trial import Trial

Measure = Callable[[Sequence[Member]], GangResult]


class Gathered(NamedTuple):
    """``members`` took part and are still there; ``all`` formed the group; ``result`` is the last one, complete or not."""

    members: list[Member]
    all: list[Member]
    result: GangResult


def gather(trial: Trial, kind: str, what: str, measure: Measure, least: int = 2) -> Gathered | None:
    """None where fewer than ``least`` nodes pass, or two ranks: then there is nothing to measure, and whoever is there is covered."""
    ledger = trial.ledger
    for attempt in range(1, ATTEMPTS + 1):
        hosts = ledger.passing()
        members = trial.members(hosts)
        if len(hosts) < least or sum(member.nproc for member in members) < 2:
            break
        ledger.tell(f"{what} over {', '.join(hosts)}")
        result = measure(members)
        ledger.lose_all(result.gone, kind)
        blamed = blame(trial, members, result, kind)
        if result.complete or not (result.gone or blamed) or attempt == ATTEMPTS:
            return Gathered([member for member in members if not ledger.lost(member.host) and member.host not in blamed], members, result)
    ledger.cover(ledger.passing(), kind)
    return None


def blame(trial: Trial, members: Sequence[Member], result: GangResult, kind: str) -> Mapping[str, str]:
    """Nodes that broke the group although they answer: ranks that died, or never reached the rendezvous. Reason each, judged too."""
    if result.complete:
        return {}
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
    return why
