"""The order in which hosts go through tasks: linear (a barrier per task over all hosts) or free (each host at its own pace)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nodectl.engine.cursor import Cursor, Position
from nodectl.lang.task import Task

# Runs one task on these hosts; moves their cursors on.
RunGroup = Callable[["Group"], None]


class Group(NamedTuple):
    """One task and the hosts that are at it, in play order."""

    task: Task
    members: dict[str, Position]


def next_group(cursors: Mapping[str, Cursor]) -> Group | None:
    """The smallest position over all hosts, and the hosts that stand there at the same task; None when all are through."""
    places = {host: place for host, cursor in cursors.items() if (place := cursor.position()) is not None}
    if not places:
        return None
    least = min(place.path for place in places.values())
    here = {host: place for host, place in places.items() if place.path == least}
    task = next(iter(here.values())).task
    return Group(task, {host: place for host, place in here.items() if place.task is task})


def linear(cursors: Mapping[str, Cursor], run_group: RunGroup) -> None:
    while (group := next_group(cursors)) is not None:
        run_group(group)


def free(cursors: Mapping[str, Cursor], run_group: RunGroup, each: Callable[[Callable[[str], None], Sequence[str]], None]) -> None:
    """``each`` calls a function for every host, as many at a time as there are forks."""

    def alone(host: str) -> None:
        linear({host: cursors[host]}, run_group)

    each(alone, list(cursors))
