"""Mistakes in the wanted format."""

from __future__ import annotations

from collections.abc import Sequence

import click

from nodectl.diagnostics.model import Diagnostic
from nodectl.diagnostics.order import in_order
from nodectl.diagnostics.render_github import render_github
from nodectl.diagnostics.render_human import render_human
from nodectl.diagnostics.render_json import render_json


def render_mistakes(diagnostics: Sequence[Diagnostic], form: str) -> str:
    """human: one block each and a count; json: one document; github: one workflow command per line."""
    if form == "json":
        return render_json(diagnostics)
    if form == "github":
        return "\n".join(render_github(diagnostic) for diagnostic in in_order(diagnostics))
    blocks = [render_human(diagnostic) for diagnostic in in_order(diagnostics)]
    errors = sum(diagnostic.severity == "error" for diagnostic in in_order(diagnostics))
    if errors:
        blocks.append(f"{errors} mistake{'s' if errors != 1 else ''} found; no node was touched.")
    return "\n\n".join(blocks)


def wanted_form() -> str:
    """What --format says on the command line that is being obeyed."""
    settings = click.get_current_context().find_root().obj
    return settings.format if settings is not None else "human"


def tell_no_mistakes(warnings: Sequence[Diagnostic], text: str) -> None:
    """The answer to a check that found no mistake: ``text`` for a person, and for a program what mistakes would have looked like, without any."""
    form = wanted_form()
    if form == "human":
        if warnings:
            click.echo(render_mistakes(warnings, form), err=True)
        click.echo(text)
    elif form == "json" or warnings:
        click.echo(render_mistakes(warnings, form))
