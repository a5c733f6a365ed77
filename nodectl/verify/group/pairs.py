"""Who is measured with whom, and when: rounds in which a node is in one pair at a time. Pure; each round costs O(n)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

Pair = tuple[str, str]


def rounds(hosts: Sequence[str], limit: int) -> list[list[Pair]]:
    """The first ``limit`` rounds of a round robin (circle method). n-1 rounds (n when odd) would cover all pairs.

    The first round pairs neighbours of the inventory, who mostly share a switch; the next ones go far across the fleet: nodes behind a slow
    uplink then have a good pair among themselves and bad ones outside. Pairs keep the inventory's order inside, so that a pair has one name.
    """
    count = len(hosts) + len(hosts) % 2
    # Places 0 and n-1, 1 and n-2, … meet in round 0: neighbours stand there. The last place of an odd fleet stays empty.
    ring = [*range(0, count, 2), *range(count - 1, 0, -2)]
    return [_round(hosts, ring, turn) for turn in _turns(count - 1, limit)]


def _round(hosts: Sequence[str], ring: Sequence[int], turn: int) -> list[Pair]:
    """Everybody but the first moves on by ``turn`` places; then who stands across is the partner."""
    moving = len(ring) - 1
    standing = [ring[0], *(ring[1 + (place - turn) % moving] for place in range(moving))]
    across = ((min(a, b), max(a, b)) for a, b in zip(standing[: len(ring) // 2], reversed(standing), strict=False))
    return [(hosts[a], hosts[b]) for a, b in across if b < len(hosts)]


def _turns(moving: int, limit: int) -> Iterator[int]:
    """0, then 1/4, 1/8, 3/8, 1/16 … of the way round, then what is left; each turn once. Most pairs of a turn are twice that turn apart in the
    inventory, so a quarter is as far as it goes, and early rounds differ from one another as much as they can."""
    seen: set[int] = set()
    half, parts = (moving + 1) // 2, 2
    order = [0]
    while parts < 2 * moving and len(order) <= 2 * limit:
        order += [half * odd // parts for odd in range(1, parts, 2)]
        parts *= 2
    for turn in (*order, *range(moving)):
        if turn < moving and turn not in seen and len(seen) < limit:
            seen.add(turn)
            yield turn


def retest(suspects: Sequence[str], trusted: Sequence[str], measured: Iterable[Pair]) -> list[Pair]:
    """One more round: each suspect with a node that did well, the one that it has met least often.

    When rounds are few, a suspect may have met only other bad nodes. More suspects than trusted nodes: the rest keeps its result.
    """
    met = Counter(frozenset(pair) for pair in measured)
    free = deque(trusted)
    result: list[Pair] = []
    for suspect in suspects:
        if not free:
            break
        result.append((suspect, _partner(suspect, free, met)))
    return result


def _partner(suspect: str, free: deque[str], met: Mapping[frozenset[str], int]) -> str:
    """Taken out of ``free``: the first that it has not met, else the one met least. A suspect has met few nodes, so few are looked at."""
    best = 0
    for place, host in enumerate(free):
        if met[frozenset((suspect, host))] < met[frozenset((suspect, free[best]))]:
            best = place
        if not met[frozenset((suspect, free[best]))]:
            break
    host = free[best]
    del free[best]
    return host
