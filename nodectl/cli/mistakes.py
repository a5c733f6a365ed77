"""Mistakes in the wanted format."""

from __future__ import annotations

from collections.abc import Sequence

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
