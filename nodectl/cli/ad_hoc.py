"""One task on some hosts without a playbook: what `facts` and `ping` run. The same engine, so the same connections and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from nodectl.cli.loading import check_targets, inventory_secrets
from nodectl.cli.options import Asked, read_options
from nodectl.diagnostics.model import Collector
from nodectl.engine.outside import output
from nodectl.engine.run import RunResult, run_playbook
from nodectl.inventory.load import load_inventory
from nodectl.inventory.model import Inventory
from nodectl.lang.playbook import Play, Playbook, Section
from nodectl.lang.task import Task
from nodectl.report.fold import Summary, fold
from nodectl.report.redact import Redactor
from nodectl.transport.pool import Pool
from nodectl.wire.event import Event
from nodectl.wire.origin import Origin

COMMAND_LINE = Origin("<command line>", 1, 1)


def one_task(module: str, args: dict[str, Any], pattern: str, play_name: str) -> Playbook:
    """A playbook of one task. Facts are not gathered first: the task is all that is asked."""
    task = Task(module, args, COMMAND_LINE, name=module)
    play = Play(play_name, pattern, COMMAND_LINE, COMMAND_LINE, (Section("tasks", (task,)),), (), Path.cwd(), gather_facts=False)
    return Playbook(Path("<command line>"), (play,))


def ask(
    pattern: str, sources: Sequence[str], module: str, args: dict[str, Any], given: dict[str, Any], seen: Callable[[Event], None]
) -> tuple[Summary, RunResult]:
    """Runs the task on every host of ``pattern``; ``seen`` gets each event, masked. Raises Mistakes before any connection."""
    found = Collector()
    asked = read_options(given, found)
    inventory = load_inventory(sources, found, asked.options.vault, output)
    check_targets(inventory, sources, pattern, asked.limit, found)
    found.stop_if_wrong()
    return _run(inventory, one_task(module, args, pattern, module), asked, seen)


def _run(inventory: Inventory, playbook: Playbook, asked: Asked, seen: Callable[[Event], None]) -> tuple[Summary, RunResult]:
    events: list[Event] = []
    redactor = Redactor([*asked.secrets, *inventory_secrets(inventory)])

    def emit(event: Event) -> None:
        masked = redactor.event(event)
        events.append(masked)
        seen(masked)

    with closing(Pool(asked.limits)) as connections:
        result = run_playbook(playbook, inventory, asked.options, connections, emit)
    return fold(events), result
