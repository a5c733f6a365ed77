"""Handlers: found by name or by topic, each run once per flush in the order of definition."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nodectl.lang.task import Task

Render = Callable[[Any], str]


class _Entry(NamedTuple):
    """``group`` counts the lists that handlers came in: those of one use of a role, or those of the play."""

    task: Task
    key: str
    group: int


class HandlerTable:
    """The handlers of one play. A key is what a person reads ("role : name"), so it can be kept from one run to the next.

    Each use of a role brings the role's handlers again; they share their keys, and the last ones run.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._lock = threading.Lock()
        self._entries: tuple[_Entry, ...] = ()
        self.add(tasks)

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(entry.task for entry in self._entries)

    def add(self, tasks: Sequence[Task]) -> None:
        """Handlers of a role that came in at run time; those already here stay as they are."""
        with self._lock:
            known = {id(entry.task) for entry in self._entries}
            fresh = [task for task in tasks if id(task) not in known]
            for task in fresh:
                before = self._entries[-1] if self._entries else None
                group = (before.group + (before.task.role is not task.role)) if before else 0
                self._entries += (_Entry(task, _key(task, self._entries, group), group),)

    def key_of(self, task: Task) -> str:
        """"" for a task that is no handler of this table, or whose place another use of its role has taken."""
        key = next((entry.key for entry in self._entries if entry.task is task), "")
        return key if key and next(entry for entry in reversed(self._entries) if entry.key == key).task is task else ""

    def resolve(self, wanted: str, render: Render) -> list[str]:
        """Keys of the handlers that ``wanted`` means, in their order: one of that name, and of those that listen to it one of each name.

        Of several of one name that of the last role wins, the play's own over all; within one list the first does, as in Ansible.
        """
        entries = self._entries
        by_rank = sorted(enumerate(entries), key=lambda pair: -pair[1].group)
        named = next((entry for _, entry in by_rank if wanted in _names(entry.task, render)), None)
        listening: dict[str, _Entry] = {}
        for number, entry in by_rank:
            if wanted in _topics(entry.task):
                listening.setdefault(str(entry.task.name) or f"#{number}", entry)
        return list(dict.fromkeys(entry.key for entry in entries if entry is named or entry in listening.values()))

    def with_keys(self, keys: Sequence[str]) -> list[str]:
        """Those of ``keys`` that this table has."""
        own = {entry.key for entry in self._entries}
        return [key for key in keys if key in own]


def _names(task: Task, render: Render) -> list[str]:
    name = render(task.name)
    if not name:
        return []
    return [name, f"{task.role.name} : {name}"] if task.role else [name]


def _topics(task: Task) -> list[str]:
    return [*task.listen, *(f"{task.role.name} : {topic}" for topic in task.listen)] if task.role else list(task.listen)


def _key(task: Task, before: Sequence[_Entry], group: int) -> str:
    """Its place parts it from another of its name in the same list. One without a name is only reached by its topics: the first names it."""
    if task.name:
        same = sum(entry.task.name == task.name for entry in before if entry.group == group)
        name = f"{task.name} #{same + 1}" if same else str(task.name)
    else:
        name = f"{task.listen[0] if task.listen else task.module} #{len(before)}"
    return f"{task.role.name} : {name}" if task.role else name
