"""nodectl advise RUN --workload FILE: what a step of training will cost on the nodes of a run, and where to keep what."""

from __future__ import annotations

from pathlib import Path

import click

from nodectl.advise.advice import Advice, advise
from nodectl.advise.measured import read
from nodectl.advise.text import as_json, explained, lines
from nodectl.advise.workload_load import load_workload, shipped
from nodectl.cli.past import read_run
from nodectl.diagnostics.model import Collector, Diagnostic, Mistakes
from nodectl.report.fold import fold
from nodectl.report.journal import JournalLost
from nodectl.report.page import page
from nodectl.report.replace_file import replace_file
from nodectl.wire.event import Event


@click.command("advise")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--workload", required=True, metavar="FILE", help=f"A YAML file, or one of {', '.join(shipped())}.")
@click.option("--explain", is_flag=True, help="Also each figure down to a measurement, the workload file or a named assumption.")
@click.option("--json", "as_data", is_flag=True, help="JSON instead of text.")
def command(run: Path, workload: str, explain: bool, as_data: bool) -> int:
    """Say what a training step and run will cost on what RUN (a run's folder) measured: compute, network, storage, what would be faster, where to keep what.

    The answer also becomes the last section of RUN's report.html.
    """
    events = read_run(run)
    answer = _answer(events, workload)
    _on_page(run, events, answer)
    if as_data:
        click.echo(as_json(answer), nl=False)
        return 0
    for line in [*lines(answer), *(["", *explained(answer)] if explain else [])]:
        click.echo(line)
    return 0


def _on_page(run: Path, events: list[Event], answer: Advice) -> None:
    """A run in an archive that cannot be written is asked all the same."""
    try:
        replace_file(run / "report.html", page(fold(events), advice=answer))
    except JournalLost as error:
        click.echo(f"warning: the answer does not stand in the run's page: {error}", err=True)


def _answer(events: list[Event], workload: str) -> Advice:
    """Raises Mistakes for a workload that is wrong, or that no storage suits."""
    found = Collector()
    work = load_workload(workload, found)
    found.stop_if_wrong()
    if work is None:
        raise Mistakes(list(found))
    try:
        return advise(work, read(events))
    except ValueError as error:
        raise Mistakes([Diagnostic("E411", str(error), help="change constraints in the workload, or measure a place that meets them")]) from None
