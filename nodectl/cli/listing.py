"""--list-tasks and --list-hosts as texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nodectl.cli.loading import Loaded
from nodectl.inventory.patterns import select
from nodectl.lang.task import Block, Node, Task


def tasks_listing(loaded: Loaded) -> str:
    """Every task in the order in which it would run; what an include brings is known only at run time."""
    lines = []
    for number, play in enumerate(loaded.playbook.plays, 1):
        lines.append(f"play #{number} ({play.hosts}): {play.name}  TAGS: [{', '.join(sorted(play.tags))}]")
        lines += [f"    {_title(task)}  TAGS: [{', '.join(sorted(task.tags))}]" for section in play.sections for task in tasks(section.nodes)]
    return "\n".join(lines)


def hosts_listing(loaded: Loaded, limit: str | None) -> str:
    lines = []
    for number, play in enumerate(loaded.playbook.plays, 1):
        hosts = select(loaded.inventory, play.hosts, limit)
        lines += [f"play #{number} ({play.hosts}): {play.name}", f"  hosts ({len(hosts)}):", *(f"    {host}" for host in hosts)]
    return "\n".join(lines)


def tasks(nodes: Iterable[Node]) -> Iterator[Task]:
    """The tasks of blocks too, in the order body, rescue, always."""
    for node in nodes:
        if isinstance(node, Block):
            yield from tasks((*node.body, *node.rescue, *node.always))
        else:
            yield node


def _title(task: Task) -> str:
    name = str(task.name or task.module)
    return f"{task.role.name} : {name}" if task.role else name
