"""nodectl handoff RUN: the handoff of a run, written anew from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from nodectl.cli.past import read_run
from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.handoff.write import NotWritten, write_handoff
from nodectl.wire.event import Event


@click.command("handoff")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write it here. Default: RUN/handoff")
def command(run: Path, out: Path | None) -> int:
    """Write hostfile, launch line, ssh_config and the list of excluded nodes of RUN (a run's folder)."""
    folder = out or run / "handoff"
    events = read_run(run)
    _verified(events)
    try:
        handoff = write_handoff(events, folder)
    except NotWritten as error:
        raise Mistakes([Diagnostic("E406", str(error), help="give a folder you may write to with --out")]) from None
    click.echo(f"handed off: {', '.join(handoff.hosts) or 'no node'} (world size {handoff.world_size})")
    click.echo(f"handoff:    {folder}")
    return 0


def _verified(events: Sequence[Event]) -> None:
    """Raises Mistakes for a run that never came to verify a node, and so left no handoff itself: an empty one would look like a verdict."""
    if any(event.kind in ("check", "verdict", "handoff") for event in events):
        return
    start = next((event.data for event in events if event.kind == "run.start"), {})
    why = "it was a rehearsal (--check)" if start.get("check") else f"it was `nodectl {start.get('command', '?')}`, or ended before it came to that"
    raise Mistakes([Diagnostic("E406", f"this run verified nothing: {why}", help="verify the nodes first: nodectl verify HOSTS, or nodectl bootstrap HOSTS")])
