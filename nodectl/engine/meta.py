"""meta tasks: they steer the run and touch no node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from nodectl.engine.cursor import Cursor, Failure
from nodectl.engine.node import node_for
from nodectl.engine.strategy import Group
from nodectl.lang.template_error import TemplateError

if TYPE_CHECKING:
    from nodectl.engine.play import Batch

# What is done once, whoever asks for it.
_FOR_ALL = ("refresh_inventory", "clear_host_errors")
Steer = Callable[["Batch", str, Group, Cursor], None]


def run_meta(batch: Batch, group: Group, cursors: dict[str, Cursor]) -> None:
    """On every host of the group for which the task's condition holds."""
    action = str(group.task.args.get("action", "noop"))
    chosen = [host for host in group.members if _holds(batch, group, host, cursors[host])]
    if action == "flush_handlers":
        _flush(batch, group, chosen, cursors)
        return
    for host in chosen[:1] if action in _FOR_ALL else chosen:
        _STEER[action](batch, host, group, cursors[host])


def _holds(batch: Batch, group: Group, host: str, cursor: Cursor) -> bool:
    """False moves the host on; a condition that cannot be decided fails the host."""
    run, task = batch.run, group.task
    variables = run.variables.of_task(batch.scope, host, group.members[host])
    try:
        if run.templar.holds(task.when, variables):
            return True
    except TemplateError as error:
        batch.fail_here(task, host, f"meta: the condition cannot be decided: {error}", cursor)
        return False
    cursor.advance()
    return False


def _flush(batch: Batch, group: Group, hosts: list[str], cursors: dict[str, Cursor]) -> None:
    failures = batch.flush(hosts)
    for host in hosts:
        if host in failures:
            cursors[host].fail(Failure(failures[host].task, failures[host].result, rescuable=False))
        elif batch.run.state(host).gone:
            cursors[host].end()
        else:
            cursors[host].advance()


def _end_host(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    """The host takes part again in the next play."""
    batch.stop(host, f"meta: end_host at {group.task.origin}", for_good=False)
    batch.ended.add(host)
    cursor.end()


def _end_batch(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    batch.ended.add(host)
    cursor.end()


def _end_play(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    batch.play_ended = True
    _end_batch(batch, host, group, cursor)


def _end_role(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    cursor.end_role(group.task.role)


def _clear_facts(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    batch.run.state(host).forget_facts()
    cursor.advance()


def _clear_host_errors(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    """Hosts of the play that failed take part again in the next plays; this one goes on without them."""
    for name in batch.scope.hosts:
        batch.run.state(name).forgive()
    cursor.advance()


def _refresh_inventory(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    """Hosts of this play stay those it began with; the next ones see what the sources say now."""
    batch.run.refresh_inventory()
    cursor.advance()


def _reset_connection(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    variables = batch.run.variables.of_task(batch.scope, host, group.members[host])
    node_for(batch.run, batch.scope, group.task, variables, host).reset()
    cursor.advance()


def _noop(batch: Batch, host: str, group: Group, cursor: Cursor) -> None:
    cursor.advance()


_STEER: Mapping[str, Steer] = {
    "noop": _noop,
    "end_host": _end_host,
    "end_batch": _end_batch,
    "end_play": _end_play,
    "end_role": _end_role,
    "clear_facts": _clear_facts,
    "clear_host_errors": _clear_host_errors,
    "refresh_inventory": _refresh_inventory,
    "reset_connection": _reset_connection,
}
