"""A whole playbook on an inventory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from nodectl.engine.handlers import HandlerTable
from nodectl.engine.options import Options as Options
from nodectl.engine.play import Batch
from nodectl.engine.preflight import hosts_now, preflight, roles_of, serial_of
from nodectl.engine.runtime import Emit, PlayScope, Runtime
from nodectl.engine.serial import batches, ordered
from nodectl.engine.state import HostStatus
from nodectl.inventory.model import Inventory
from nodectl.lang.playbook import Play, Playbook
from nodectl.lang.template import Templar
from nodectl.transport.channel import Connections

# Exit codes of the house; verification adds 3.
OK, TASK_FAILED, UNREACHABLE = 0, 2, 4


@dataclass(frozen=True)
class RunResult:
    """``status`` holds every host of every play. ``variables(host)`` are fully merged and rendered, facts included."""

    status: dict[str, HostStatus]
    variables: Callable[[str], dict[str, Any]]

    @property
    def exit_code(self) -> int:
        found = set(self.status.values())
        if "failed" in found:
            return TASK_FAILED
        return UNREACHABLE if found & {"unreachable", "lost"} else OK


def run_playbook(playbook: Playbook, inventory: Inventory, options: Options, connections: Connections, emit: Emit) -> RunResult:
    """Raises Mistakes before any connection for what is wrong with tags, handlers, patterns or files. ``emit`` is called from one thread at a time.

    The connections stay open for what follows (verification), except when the run is interrupted.
    """
    run = Runtime(playbook.path, inventory, options, connections, emit, Templar())
    hosts = preflight(run, playbook)
    pool = ThreadPoolExecutor(max(1, options.forks), thread_name_prefix="engine")
    whole = False
    try:
        start_at = [options.start_at_task] if options.start_at_task else []
        for number, play in enumerate(playbook.plays):
            run.enter(play.basedir)
            hosts[number] = hosts_now(run, play) if run.grown else hosts[number]
            _play(run, play, hosts[number], pool, start_at)
        run.enter(playbook.path.parent)
        whole = True
    finally:
        if not whole:  # an interrupt or a bug: threads must not wait for answers nobody reads
            run.stop.set()
            connections.close()
        pool.shutdown(wait=True, cancel_futures=True)
    took_part = dict.fromkeys(host for names in hosts.values() for host in names)
    return RunResult({host: run.state(host).status for host in took_part}, run.variables.rendered)


def _play(run: Runtime, play: Play, named: Sequence[str], pool: Executor, start_at: list[str]) -> None:
    hosts = [host for host in named if not run.state(host).gone]
    run.emit("play.start", play=play.name, hosts=list(hosts), origin=str(play.origin))
    if not hosts:
        text = f"play '{play.name}': none of its hosts is left" if named else f"play '{play.name}': no host matches '{play.hosts}' within the limit"
        run.emit("warning", text=text, origin=str(play.hosts_origin))
        return
    handlers = HandlerTable(play.handlers)
    left = batches(ordered(hosts, play.order), serial_of(run, play))
    while left:
        scope = PlayScope(play, hosts, left.pop(0), roles_of(play), handlers)
        scope.remaining = [host for host in hosts if not run.state(host).gone]
        batch = Batch(run, scope, pool, start_at)
        try:
            batch.through()
        finally:
            batch.settle()
        if batch.play_ended:
            return
        reason = _end_of_play(batch)
        if reason:
            for host in [host for names in left for host in names]:
                batch.stop(host, f"not started: {reason}")
            return


def _end_of_play(batch: Batch) -> str:
    """Why the batches after this one are not started, or "". With max_fail_percentage it is the budget alone that decides."""
    if batch.broken:
        return batch.broken
    gone = [host for host in batch.hosts if batch.run.state(host).gone]
    if len(gone) == len(batch.hosts) and batch.scope.play.max_fail_percentage is None:
        return "every host of the batch before failed"
    return ""
