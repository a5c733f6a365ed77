"""Plays as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodectl.lang.seen import Seen
from nodectl.lang.task import Become, Node, Reach, Task, Template, tasks_of
from nodectl.wire.origin import Origin


@dataclass(frozen=True)
class Section:
    """pre_tasks, roles, tasks or post_tasks: handlers are flushed at the end of each, as in Ansible (roles and tasks are one)."""

    name: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Prompt:
    """A variable that a person is asked for. ``private``: the answer is not echoed, and is a secret; ``confirm``: it is asked twice."""

    name: str
    text: str
    origin: Origin
    default: str | None = None
    private: bool = True
    confirm: bool = False


@dataclass(frozen=True)
class Play:
    """One play. ``handlers`` holds those of the play and of every role in it, in Ansible's order of search (last wins)."""

    name: str
    hosts: str
    origin: Origin
    hosts_origin: Origin
    sections: tuple[Section, ...]
    handlers: tuple[Task, ...]
    basedir: Path
    vars: dict[str, Any] = field(default_factory=dict)
    vars_files: tuple[Template, ...] = ()
    gather_facts: bool | None = None
    gather_subset: tuple[str, ...] = ()
    become: Become = Become()
    reach: Reach = Reach()
    strategy: str = "linear"
    serial: tuple[Any, ...] = ()
    max_fail_percentage: Template = None
    any_errors_fatal: bool = False
    force_handlers: bool = False
    environment: tuple[Template, ...] = ()
    tags: frozenset[str] = frozenset()
    order: str = "inventory"
    prompts: tuple[Prompt, ...] = ()


@dataclass(frozen=True)
class Playbook:
    """``seen`` is what the load saw of names, for warnings."""

    path: Path
    plays: tuple[Play, ...]
    seen: Seen = field(default_factory=Seen)


def grows(plays: Iterable[Play]) -> bool:
    """Whether tasks of ``plays`` add hosts or groups: what a later play's pattern means is then only known when it begins."""
    return any(task.module in ("add_host", "group_by") for play in plays for section in play.sections for task in tasks_of(section.nodes))
