"""`nodectl verify --adopt`: what healthy nodes reached becomes the site's own floors."""

from __future__ import annotations

import datetime
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nodectl.cli.terms import SITE_FLOORS, site_files, site_folder
from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.report.journal import JournalLost
from nodectl.report.replace_file import replace_file
from nodectl.verify.adopt import Run, entry, merged, propose
from nodectl.verify.evidence import readings_in
from nodectl.verify.judging.floor_load import Floor, floor_of_json, floors_of, shipped_floors


def adopt(evidence: Mapping[str, Any]) -> None:
    """Show what would be written into the file beside the run's inventory (or the first of site_floors), and write it; on a terminal after a question.

    Raises Mistakes where it cannot be read or written.
    """
    path = _path(evidence)
    run = Run(str(evidence["run_id"]), datetime.datetime.now(datetime.UTC).date().isoformat())
    found = propose(readings_in(evidence), [floor_of_json(one) for one in evidence["floors"]], shipped_floors(), run)
    for one in found:
        if one.floor is None:
            click.echo(f"not adopted: {one.about()}: {one.why_not}")
    adopted = [one.floor for one in found if one.floor is not None]
    if not adopted:
        click.echo("nothing to adopt")
        return
    old = _text(path)
    if "every" in tomllib.loads(old):
        hint = "name another file in site_floors of hosts.yaml, or write the common lines into each floor"
        raise Mistakes([Diagnostic("E408", f"{path} has [every], which would hold for adopted floors too", help=hint)])
    text = merged(old, adopted)
    floors_of(text, str(path), site=True)  # what a later run would refuse is not written
    _show(adopted, path)
    if sys.stdin.isatty() and not click.confirm(f"write {path}?"):
        click.echo("nothing was written")
        return
    try:
        replace_file(path, text)
    except JournalLost as error:
        raise Mistakes([Diagnostic("E406", str(error), help="give a file you may write to: site_floors in hosts.yaml")]) from None
    click.echo(f"written: {path}; from now on every run on this inventory holds its nodes against it, beside the shipped floors")


def _path(evidence: Mapping[str, Any]) -> Path:
    sources = [str(one) for one in evidence["run"].get("inventory") or []]
    if not sources:
        raise Mistakes([Diagnostic("E409", "this evidence does not say which inventory it is of", help="verify the nodes again, with --adopt")])
    files = site_files(evidence["inputs"]["settings"], sources)
    return files[0] if files else site_folder(sources) / SITE_FLOORS


def _show(adopted: Sequence[Floor], path: Path) -> None:
    click.echo(f"\nfor {path}:\n")
    for floor in adopted:
        click.echo(entry(floor))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Mistakes([Diagnostic("E408", f"floors of the site: {path} cannot be read: {why}", help="correct site_floors in hosts.yaml")]) from None


