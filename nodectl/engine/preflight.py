"""What can be found out before the first connection and needs the run's options: hosts, tags, the task to start at."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from nodectl.diagnostics.model import Collector, Mistakes
from nodectl.engine.actions.contract import ActionFailed
from nodectl.engine.include import task_file
from nodectl.engine.runtime import Runtime
from nodectl.engine.serial import batches
from nodectl.engine.tags import SPECIAL
from nodectl.inventory.patterns import select
from nodectl.lang.playbook import Play, Playbook, grows
from nodectl.lang.task import Task, tasks_of
from nodectl.lang.template_error import TemplateError

_DYNAMIC = ("include_tasks", "include_role")


def preflight(run: Runtime, playbook: Playbook) -> dict[int, list[str]]:
    """The hosts of each play (by its number). Raises Mistakes with everything that was found."""
    found = Collector()
    hosts = {number: _hosts(run, play, Collector() if grows(playbook.plays[:number]) else found) for number, play in enumerate(playbook.plays)}
    for play in playbook.plays:
        _check_numbers(run, play, found)
    _check_tags(run, playbook, found)
    _check_start(run, playbook, found)
    found.stop_if_wrong()
    return hosts


def hosts_pattern(run: Runtime, play: Play) -> str:
    """The play's pattern: a template there sees the extra variables only. Raises TemplateError."""
    value = run.templar.render(play.hosts, run.options.extra_vars)
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _hosts(run: Runtime, play: Play, found: Collector) -> list[str]:
    try:
        named = select(run.inventory, hosts_pattern(run, play))
        allowed = set(select(run.inventory, "all", run.options.limit)) if run.options.limit else set(named)
    except TemplateError as error:
        advice = error.hint or "give it with -e: here, before any host is chosen, there are no other variables"
        found.error("E213", f"hosts: {error.message}", play.hosts_origin, label="which hosts?", help=advice)
        return []
    except Mistakes as mistakes:
        for one in mistakes.diagnostics:
            found.error(one.code, one.message, one.origin or play.hosts_origin, label=one.label, help=one.help)
        return []
    return [host for host in named if host in allowed]


def hosts_now(run: Runtime, play: Play) -> list[str]:
    """The hosts of a play after the inventory has grown; none where nothing matches even now."""
    return _hosts(run, play, Collector())


def serial_of(run: Runtime, play: Play) -> list[Any]:
    """Raises TemplateError."""
    return [run.templar.render(size, run.options.extra_vars) for size in play.serial]


def percentage_of(run: Runtime, play: Play) -> float | None:
    """max_fail_percentage, where it is set. Raises TemplateError or ValueError."""
    said = run.templar.render(play.max_fail_percentage, run.options.extra_vars)
    if said is None:
        return None
    try:
        return float(said)
    except (TypeError, ValueError):
        raise ValueError(f"max_fail_percentage wants a number, not {said!r}") from None


def _check_numbers(run: Runtime, play: Play, found: Collector) -> None:
    """Templates in them see the extra variables only: they are needed before any host is looked at."""
    try:
        batches(["one host"], serial_of(run, play))
        percentage_of(run, play)
    except (TemplateError, ValueError) as error:
        found.error("E209", f"play '{play.name}': {error}", play.origin)


def _check_tags(run: Runtime, playbook: Playbook, found: Collector) -> None:
    """An unknown tag would select nothing, silently. Where an include's name is a template, its tags cannot be known."""
    asked = [*run.options.tags, *run.options.skip_tags]
    if not asked:
        return
    known, whole = _known_tags(run, playbook)
    for tag in dict.fromkeys(asked):
        if tag not in known and tag not in SPECIAL and whole:
            listed = ", ".join(sorted(known)) or "none: no task here has a tag"
            found.error("E401", f"no task has the tag '{tag}'", None, help=f"{_near(tag, known)} known tags: {listed}".strip())


def _known_tags(run: Runtime, playbook: Playbook) -> tuple[set[str], bool]:
    known: set[str] = set()
    whole = True
    for play in playbook.plays:
        known |= play.tags
        todo = list(_tasks(play))
        seen: set[tuple[str, str]] = set()
        while todo:
            task = todo.pop()
            known |= task.tags | task.apply_tags
            if task.module in _DYNAMIC:
                key = (str(task.origin), str(sorted(task.args.items(), key=str)))
                inside = [] if key in seen else _inside(run, task)
                seen.add(key)
                whole = whole and inside is not None
                todo += inside or []
    return known, whole


def _inside(run: Runtime, task: Task) -> list[Task] | None:
    """The tasks that a dynamic include brings in, or None where that is only known at run time."""
    name = task.args.get("file") or task.args.get("name")
    if not isinstance(name, str) or run.templar.is_template(name):
        return None
    try:
        if task.module == "include_tasks":
            return list(tasks_of(run.loader.tasks(task_file(run, task, name), task).nodes))
        return list(tasks_of(run.loader.role(name, task, run.playbook_dir).nodes))
    except (Mistakes, ActionFailed):
        return None


def _check_start(run: Runtime, playbook: Playbook, found: Collector) -> None:
    wanted = run.options.start_at_task
    if wanted is None:
        return
    names = {name for play in playbook.plays for task in _tasks(play) for name in task_titles(task)}
    if wanted not in names:
        found.error("E402", f"no task is named '{wanted}'", None, help=_near(wanted, names))


def task_titles(task: Task) -> list[str]:
    """The names by which --start-at-task finds a task."""
    return [str(task.name), f"{task.role.name} : {task.name}"] if task.role else [str(task.name)]


def _tasks(play: Play) -> Iterator[Task]:
    for section in play.sections:
        yield from tasks_of(section.nodes)
    yield from play.handlers


def _near(name: str, known: Any) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean '{near[0]}'?" if near else ""


def roles_of(play: Play) -> list[Any]:
    """Every use of a role in a play, in the order of the text, each once."""
    return list({id(task.role): task.role for task in _tasks(play) if task.role is not None}.values())
