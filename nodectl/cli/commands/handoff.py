"""nodectl handoff RUN: the handoff of a run, written anew from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import click

from nodectl.cli.past import read_run
from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.handoff.change import COMMANDS, change, commands
from nodectl.handoff.formats import FORMATS
from nodectl.handoff.write import NotWritten, handed_off, write_handoff
from nodectl.wire.event import Event


@click.command("handoff")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write it here. Default: RUN/handoff")
@click.option("--format", "names", metavar="NAMES", help=f"Only these in the folder, with commas between them: {', '.join(FORMATS)}. Default: all")
@click.option(
    "--since", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="EARLIER",
    help="Write nothing; print the commands that take out whom the run EARLIER handed off and RUN does not (for Slurm and Kubernetes, or those of --format)",
)
def command(run: Path, out: Path | None, names: str | None, since: Path | None) -> int:
    """Write anew what a training job, Slurm, SkyPilot and Kubernetes need to use the proven nodes of RUN (a run's folder) and to leave the others out."""
    formats = _formats(names)
    events = read_run(run)
    _verified(events)
    if since is not None:
        return _changes(since, events, formats, out)
    return _write(events, out or run / "handoff", formats)


def _changes(since: Path, events: Sequence[Event], formats: Sequence[str], out: Path | None) -> int:
    if out is not None:
        raise click.UsageError("--since writes no file: leave out --out")
    earlier = read_run(since)
    _verified(earlier)
    found = change(handed_off(earlier), handed_off(events))
    click.echo(commands(found, [name for name in COMMANDS if name in formats]), nl=False)
    return 0


def _write(events: Sequence[Event], folder: Path, formats: Sequence[str]) -> int:
    try:
        handoff = write_handoff(events, folder, formats)
    except NotWritten as error:
        raise Mistakes([Diagnostic("E406", str(error), help="give a folder you may write to with --out")]) from None
    click.echo(f"handed off: {', '.join(handoff.hosts) or 'no node'} (world size {handoff.world_size})")
    if handoff.waived:
        click.echo(f"of these with a waiver: {', '.join(handoff.waived)}")
    for name, refused in handoff.refused.items():
        for host, why in refused.items():
            click.echo(f"not in {name}: {host}: {why}")
    click.echo(f"handoff:    {folder} (README.md says what each file is for)")
    return 0


def _formats(names: str | None) -> Sequence[str]:
    """Raises BadParameter for a word that is no format."""
    if names is None:
        return tuple(FORMATS)
    wanted = [name.strip() for name in names.split(",")]
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown:
        near = [*dict.fromkeys(one for name in unknown for one in get_close_matches(name, FORMATS, 1))]
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise click.BadParameter(f"{', '.join(map(repr, unknown))}: expected some of {', '.join(FORMATS)}.{hint}", param_hint="--format")
    return wanted


def _verified(events: Sequence[Event]) -> None:
    """Raises Mistakes for a run that never came to verify a node, and so left no handoff itself: an empty one would look like a verdict."""
    if any(event.kind in ("check", "verdict", "handoff") for event in events):
        return
    start = next((event.data for event in events if event.kind == "run.start"), {})
    why = "it was a rehearsal (--check)" if start.get("check") else f"it was `nodectl {start.get('command', '?')}`, or ended before it came to that"
    raise Mistakes([Diagnostic("E406", f"this run verified nothing: {why}", help="verify the nodes first: nodectl verify HOSTS, or nodectl bootstrap HOSTS")])
