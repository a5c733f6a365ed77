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


@click.command("advise")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--workload", required=True, metavar="FILE", help=f"A YAML file, or one of {', '.join(shipped())}.")
@click.option("--explain", is_flag=True, help="Also each figure down to a measurement, the workload file or a named assumption.")
@click.option("--json", "as_data", is_flag=True, help="JSON instead of text.")
def command(run: Path, workload: str, explain: bool, as_data: bool) -> int:
    """Say what a training step and run will cost on what RUN (a run's folder) measured: compute, network, storage, what would be faster, where to keep what."""
    answer = _answer(run, workload)
    if as_data:
        click.echo(as_json(answer), nl=False)
        return 0
    for line in [*lines(answer), *(["", *explained(answer)] if explain else [])]:
        click.echo(line)
    return 0


def _answer(run: Path, workload: str) -> Advice:
    """Raises Mistakes for a workload that is wrong, or that no storage suits."""
    found = Collector()
    work = load_workload(workload, found)
    found.stop_if_wrong()
    if work is None:
        raise Mistakes(list(found))
    try:
        return advise(work, read(read_run(run)))
    except ValueError as error:
        raise Mistakes([Diagnostic("E411", str(error), help="change constraints in the workload, or measure a place that meets them")]) from None
