"""A diagnostic as a workflow command: GitHub shows it beside the line in a pull request."""

from __future__ import annotations

from nodectl.diagnostics.model import Diagnostic


def render_github(diagnostic: Diagnostic) -> str:
    """One line, `::error file=…,line=…,col=…,endColumn=…,title=…::message`."""
    pairs = {}
    if diagnostic.origin:
        origin = diagnostic.origin
        pairs = {"file": origin.file, "line": str(origin.line), "col": str(origin.column), "endColumn": str(origin.column + origin.width)}
    pairs["title"] = f"nodectl {diagnostic.code}"
    properties = ",".join(f"{name}={_property(value)}" for name, value in pairs.items())
    parts = [diagnostic.message, *(part for part in (diagnostic.label, diagnostic.help) if part)]
    return f"::{diagnostic.severity} {properties}::{_message('. '.join(parts))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
