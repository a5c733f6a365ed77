"""Who is measured with whom, and when: rounds in which a node is in one pair at a time."""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[str, str]


def rounds(hosts: Sequence[str], limit: int) -> list[list[Pair]]:
    """The first ``limit`` rounds of a round robin (circle method). n-1 rounds (n when odd) would cover all pairs.

    Pairs keep the inventory's order inside, so that a pair has one name.
    """
    ring: list[str | None] = list(hosts) if len(hosts) % 2 == 0 else [*hosts, None]
    order = {host: index for index, host in enumerate(hosts)}
    result: list[list[Pair]] = []
    for _ in range(min(limit, max(len(ring) - 1, 0))):
        half = len(ring) // 2
        matched = [(a, b) for a, b in zip(ring[:half], reversed(ring[half:]), strict=True) if a is not None and b is not None]
        result.append([(a, b) if order[a] < order[b] else (b, a) for a, b in matched])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return result


def retest(suspects: Sequence[str], trusted: Sequence[str], measured: Sequence[Pair]) -> list[Pair]:
    """One more round: each suspect with a node that did well, one it was not yet paired with where there is such.

    A suspect met only other bad nodes otherwise, when rounds are few. More suspects than trusted nodes: the rest keeps its result.
    """
    known = {frozenset(pair) for pair in measured}
    free = list(trusted)
    result: list[Pair] = []
    for suspect in suspects:
        new = [host for host in free if frozenset((suspect, host)) not in known]
        if new:
            free.remove(new[0])
            result.append((suspect, new[0]))
    return result
