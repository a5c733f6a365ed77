"""Who is measured with whom, and when: rounds in which a node is in one pair at a time."""

from __future__ import annotations

from collections import Counter
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
    """One more round: each suspect with a node that did well, the one it was paired with least often so far.

    When rounds are few, a suspect may have met only other bad nodes. More suspects than trusted nodes: the rest keeps its result.
    """
    met = Counter(frozenset(pair) for pair in measured)
    free = list(trusted)
    result: list[Pair] = []
    for suspect in suspects:
        if free:
            partner = min(free, key=lambda host: met[frozenset((suspect, host))])
            free.remove(partner)
            result.append((suspect, partner))
    return result
