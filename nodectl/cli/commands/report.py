"""nodectl report RUN: what a run came to; nodectl report RUN LATER: what got slower."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from nodectl.cli.past import read_run
from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.report.compare import NOISE, Comparison, compare
from nodectl.report.compare_text import comparison_json, comparison_lines
from nodectl.report.fold import Summary, fold
from nodectl.report.github import github
from nodectl.report.human import View
from nodectl.report.journal import JournalLost
from nodectl.report.json import text
from nodectl.report.junit import junit
from nodectl.report.live import Live, console_for, show_closing
from nodectl.report.page import page
from nodectl.report.replace_file import replace_file

FORMATS: dict[str, Callable[[Summary], str]] = {"json": text, "html": page, "junit": junit, "github": github}
_SHAPES = "html and junit are files; github prints annotations."
_NOISE = "With LATER: figures that move by less count as the same."
_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("report")
@click.argument("run", type=_FOLDER)
@click.argument("later", type=_FOLDER, required=False)
@click.option("--format", "shape", type=click.Choice(["human", *FORMATS]), default="human", show_default=True, help=_SHAPES)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write it there instead of printing it.")
@click.option("--noise", type=click.FloatRange(0, 99), default=100 * NOISE, show_default=True, metavar="PERCENT", help=_NOISE)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--log", is_flag=True, help="The whole log before the closing table.")
@click.option("-v", "--verbose", count=True, help="With --log: also what was ok or skipped; -vv: also every result.")
@click.option("-D", "--diff", is_flag=True, help="With --log: texts before and after.")
def command(run: Path, later: Path | None, shape: str, out: Path | None, noise: float, as_json: bool, log: bool, verbose: int, diff: bool) -> int:
    """Show the closing table of RUN (a run's folder), made anew from its journal. With LATER, a second run: what got slower or faster since RUN.

    The exit code says whether the report could be made; the run's own code is in the report.
    """
    shape = "json" if as_json else shape
    if later:
        _give(_compared(fold(read_run(run)), fold(read_run(later)), noise / 100, shape), out)
    elif shape == "human" and not out:
        _show(run, log, View(verbose, diff))
    else:
        _give(FORMATS[_file_shape(shape)](fold(read_run(run))), out)
    return 0


def _file_shape(shape: str) -> str:
    """The closing table is for a terminal."""
    if shape == "human":
        raise Mistakes([Diagnostic("E406", "the closing table is not written to a file", help=f"with --out, give --format {', '.join(FORMATS)}")])
    return shape


def _compared(before: Summary, after: Summary, noise: float, shape: str) -> str:
    found: Comparison = compare(before, after, noise)
    if shape == "html":
        return page(after, found)
    if shape in ("junit", "github"):
        hint = "give --format human, json or html"
        raise Mistakes([Diagnostic("E406", f"two runs are not compared as {shape}", help=hint)])
    return comparison_json(found) if shape == "json" else "".join(f"{line}\n" for line in comparison_lines(found))


def _give(document: str, out: Path | None) -> None:
    if out is None:
        # What a node said need not be text in this terminal's encoding.
        click.echo(document.encode("utf-8", "backslashreplace"), nl=False)
        return
    try:
        replace_file(out, document)
    except JournalLost as error:
        raise Mistakes([Diagnostic("E406", str(error), help="give a file you may write to with --out")]) from None


def _show(run: Path, log: bool, view: View) -> None:
    events = read_run(run)
    console = console_for()
    if log:
        live = Live(console, view)
        for event in events:
            live(event)
    show_closing(console, fold(events), run.resolve())
