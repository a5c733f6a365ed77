"""nodectl report RUN: what a run came to."""

from __future__ import annotations

from pathlib import Path

import click

from nodectl.cli.past import read_run
from nodectl.report.fold import fold
from nodectl.report.human import View
from nodectl.report.json import text
from nodectl.report.live import Live, console_for, show_closing


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="The content of report.json.")
@click.option("--log", is_flag=True, help="The whole log before the closing table.")
@click.option("-v", "--verbose", count=True, help="With --log: also what was ok or skipped; -vv: also every result.")
@click.option("-D", "--diff", is_flag=True, help="With --log: texts before and after.")
def command(run: Path, as_json: bool, log: bool, verbose: int, diff: bool) -> int:
    """Show the closing table of RUN (a run's folder), made anew from its journal.

    The exit code says whether the report could be made; the run's own code is in the report.
    """
    events = read_run(run)
    if as_json:
        click.echo(text(fold(events)), nl=False)
        return 0
    console = console_for()
    if log:
        live = Live(console, View(verbose, diff))
        for event in events:
            live(event)
    show_closing(console, fold(events), run.resolve())
    return 0
