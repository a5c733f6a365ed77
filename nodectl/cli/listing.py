"""--list-tasks, --list-hosts and --syntax-check as texts."""

from __future__ import annotations

from nodectl.cli.loading import Loaded
from nodectl.engine.options import Options
from nodectl.engine.tags import selected
from nodectl.inventory.patterns import select
from nodectl.lang.task import Task, tasks_of


def listing(loaded: Loaded, options: Options, list_tasks: bool, list_hosts: bool, syntax_check: bool) -> str | None:
    """What one of the three options asks for; None where none was given and the run is to go on."""
    if list_hosts:
        return hosts_listing(loaded, options.limit)
    if list_tasks:
        return tasks_listing(loaded, options)
    return f"{loaded.playbook.path}: no mistakes found" if syntax_check else None


def tasks_listing(loaded: Loaded, options: Options | None = None) -> str:
    """The tasks that --tags and --skip-tags select, in the order in which they would run; what an include brings is known only at run time."""
    lines = []
    only, skip = (options.tags, options.skip_tags) if options else ((), ())
    for number, play in enumerate(loaded.playbook.plays, 1):
        lines.append(f"play #{number} ({play.hosts}): {play.name}  TAGS: [{', '.join(sorted(play.tags))}]")
        for task in (task for section in play.sections for task in tasks_of(section.nodes)):
            tags = task.tags | play.tags
            if selected(tags, only, skip):
                lines.append(f"    {_title(task)}  TAGS: [{', '.join(sorted(tags))}]")
    return "\n".join(lines)


def hosts_listing(loaded: Loaded, limit: str | None) -> str:
    lines = []
    for number, play in enumerate(loaded.playbook.plays, 1):
        hosts = select(loaded.inventory, play.hosts, limit)
        lines += [f"play #{number} ({play.hosts}): {play.name}", f"  hosts ({len(hosts)}):", *(f"    {host}" for host in hosts)]
    return "\n".join(lines)


def _title(task: Task) -> str:
    name = str(task.name or task.module)
    return f"{task.role.name} : {name}" if task.role else name
