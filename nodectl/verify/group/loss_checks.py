"""Whose link loses packets? From what the kernel sent again on each connection of the groups to the node that has it with most of its peers. Pure.

A lost packet is sent again by whoever sent it, so a bad link is seen by everybody who talks over it: each link between two nodes counts with the
worse of its directions, and a node is as bad as the middle of its links. One with a bad partner, or with one bad path, is well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low

from nodectl.verify.group.gang import Member
from nodectl.verify.group.network_checks import MOST_NAMED, Fleet
from nodectl.verify.group.pace_checks import Run
from nodectl.verify.group.pairs import Pair
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading

METRIC = "network.retransmits"
# Percent of the segments of data. With as much loss one connection with a round trip of 0.1 ms and segments of 1460 bytes is held to 2 Gb/s
# (Mathis et al. 1997: 1.22 x segment / (round trip x sqrt(loss))), whatever the link is; healthy links of one room lose next to nothing.
LIMIT = 0.5
# Virtual links on one machine drop packets of 64 KiB (45 segments) when its cores are busy: 0.48 % was seen on one link of four healthy hosts, and
# 1.08 % in a short group whose ranks were killed; two such bursts more are let pass.
PLAYED_LIMIT = 2.0
SOURCE = "Mathis, Semke, Mahdavi, Ott: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm (1997); nodectl policy (2026-12)"
# Below so many segments of a direction a single burst would be a share: 64 KiB that are lost at once (one packet of a virtual link) are 45.
LEAST_SEGMENTS = 10_000


def losses(runs: Sequence[Run]) -> dict[Pair, float]:
    """Percent that was sent again between two hosts, the worse direction; only where enough was sent over TCP to tell."""
    counted: dict[Pair, list[int]] = {}
    for members, result in runs:
        names = {member.address: member.host for member in members}
        first = 0
        for member in members:
            for rank in range(first, first + member.nproc):
                for address, (sent, again) in result.output.resent.get(rank, {}).items():
                    total = counted.setdefault((member.host, names.get(address, "")), [0, 0])
                    total[0] += sent
                    total[1] += again
            first += member.nproc
    found: dict[Pair, float] = {}
    for (sender, peer), (sent, again) in counted.items():
        if peer not in ("", sender) and sent >= LEAST_SEGMENTS:
            link = (min(sender, peer), max(sender, peer))
            found[link] = max(found.get(link, 0.0), 100 * again / sent)
    return found


def loss_reading(members: Sequence[Member], runs: Sequence[Run], fleet: Fleet) -> Reading:
    """One measurement per member that sent enough over TCP; none where RDMA carried the data."""
    reading, links, limit = Reading(), losses(runs), PLAYED_LIMIT if fleet.simulated else LIMIT
    for member in members:
        mine = {next(host for host in link if host != member.host): share for link, share in links.items() if member.host in link}
        if mine:
            measured = Measurement(
                METRIC, median_low(mine.values()), "percent", (member.host,), "TCP_INFO of the ranks' connections", {"peers": len(mine)}, _listed(mine),
                simulated=fleet.simulated, detail=f"{_listed(mine)}; cable, optic or port of this node, or a switch that drops: ip -s link, ethtool -S",
            )  # fmt: skip
            why = "segments that were lost and sent again, over the middle one of this node's links"
            reading.add(measured, Expectation(METRIC, "at_most", limit, "percent", why, member.host, SOURCE))
    return reading


def _listed(shares: Mapping[str, float]) -> str:
    worst = sorted(shares.items(), key=lambda item: -item[1])
    more = len(worst) - MOST_NAMED
    return ", ".join(f"with {host} {share:.2g} %" for host, share in worst[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
