"""Which rank is slow by itself? From the fixed work that every rank does without network to the node that holds up the others. Pure.

In a collective all ranks take the same time, because all wait for the slowest: its times tell nothing. So each rank does the same work first,
and its own time for that is compared with the other nodes'. The median of its rounds counts: other load passes, a rank that is held back is so
in most of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodectl.verify.group.gang import GangResult, Member
from nodectl.verify.group.network_checks import Fleet
from nodectl.verify.judging.formulas import median
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading
from nodectl.verify.judging.units import human
from nodectl.verify.parse.workload import Pace

METRIC = "network.slow_rank"
# Rounds of fixed work: about 0.3 s on idle cores. A rank that is held back is so in most of them.
ROUNDS = 12
# Times as long as the other nodes' median, in every look that all nodes took at the same time. Healthy nodes of one kind differ by a few per
# cent; hosts of a lab that share two cores by up to 1.4 (docs/truth.md). A rank at half its pace doubles the length of each step.
MOST_TIMES = 2.0
# In pairs that run one after the other, under whatever else happens meanwhile: worth a look at all nodes at once.
SUSPICIOUS = 1.5
# Looks at a suspect. Other load that holds up one node of many through two of them is a finding.
LOOKS = 2
# Of the time of its work a rank has a core nearly always; below this share something takes the core away from it.
OWN_CORE = 0.7
# One group that did the work, and what came of it.
Run = tuple[Sequence[Member], GangResult]


def ratios(runs: Sequence[Run]) -> dict[str, float]:
    """Each host's time for the fixed work over the other hosts' median; on the core or on the GPU, whichever is further off.

    Of several runs a host's best counts, in a run its slowest rank. Hosts without a full report are left out; one alone compares with nothing.
    """
    own = {host: found for host, found in _by_host(runs).items() if found}
    if len(own) < 2:
        return {}
    result = {}
    for host in own:
        parts = [_best(own[host], gpu) / median([_best(found, gpu) for other, found in own.items() if other != host]) for gpu in _parts(own)]
        result[host] = max(parts)
    return result


def least(looks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Each host's best look; without one that it took part in, nothing."""
    found: dict[str, float] = {}
    for look in looks:
        for host, ratio in look.items():
            found[host] = min(ratio, found.get(host, ratio))
    return found


def pace_reading(members: Sequence[Member], found: Mapping[str, float], runs: Sequence[Run], fleet: Fleet) -> Reading:
    """One measurement per member: its ratio of ``found``, with what ``runs`` (the last counts) say of why. Nothing for a single node."""
    reading = Reading()
    paces = _by_host(runs)
    for member in members if len(members) > 1 else ():
        mine = paces.get(member.host) or [[]]
        value = found.get(member.host)
        measured = Measurement(
            METRIC, value, "count", (member.host,), "fixed work without network", {"rounds": len(mine[-1][0].host) if mine[-1] else 0, "ranks": member.nproc},
            _raw(mine[-1]), error="" if value is not None else "its ranks did not report the fixed work, or nobody else did",
            simulated=fleet.simulated, detail=_detail(mine[-1]),
        )  # fmt: skip
        why = "times as long as the other nodes' ranks need for the same work without network; every step of a job waits for the slowest"
        reading.add(measured, Expectation(METRIC, "at_most", MOST_TIMES, "count", why, member.host))
    return reading


def _by_host(runs: Sequence[Run]) -> dict[str, list[list[Pace]]]:
    """Per host the ranks' reports of each run in which all of its ranks reported."""
    found: dict[str, list[list[Pace]]] = {}
    for members, result in runs:
        first = 0
        for member in members:
            mine = [result.output.pace[rank] for rank in range(first, first + member.nproc) if rank in result.output.pace]
            first += member.nproc
            found.setdefault(member.host, []).extend([mine] if len(mine) == member.nproc else [])
    return found


def _parts(own: Mapping[str, Sequence[Sequence[Pace]]]) -> list[bool]:
    """The core's part always; the GPU's where every rank has one."""
    return [False, True] if all(pace.device for found in own.values() for paces in found for pace in paces) else [False]


def _best(found: Sequence[Sequence[Pace]], gpu: bool) -> float:
    return min(_times(paces, gpu) for paces in found)


def _times(paces: Sequence[Pace], gpu: bool) -> float:
    return max(median(pace.device if gpu else pace.host) for pace in paces)


def _raw(paces: Sequence[Pace]) -> str:
    return "; ".join(f"host {_ms(pace.host)}, had a core {_share(pace):.0%}, GPU {_ms(pace.device)}, waited {_ms(pace.wait)}" for pace in paces)


def _ms(times: Sequence[float]) -> str:
    return human(median(times), "s") if times else "none"


def _share(pace: Pace) -> float:
    """Of the time of its work, how much it had a core."""
    return min(1.0, sum(pace.cpu) / sum(pace.host))


def _detail(paces: Sequence[Pace]) -> str:
    if not paces:
        return ""
    slowest = max(paces, key=lambda pace: median(pace.host))
    share = _share(slowest)
    if share < OWN_CORE:
        cause = f"it had a core for {share:.0%} of that time: other programs run on this node, or its processes are held back (cgroup quota, nice)"
    elif slowest.device and median(slowest.device) > median(slowest.host):
        cause = "its GPU is slow: look at clocks, throttle reasons and other processes on it"
    else:
        cause = "it had a core all the time, so the core itself is slow: look at clocks, governor and temperature"
    return f"its ranks need {human(median(slowest.host), 's')} for the work; {cause}"
