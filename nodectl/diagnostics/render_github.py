"""A diagnostic as a workflow command: GitHub shows it beside the line in a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nodectl.diagnostics.model import Diagnostic


def render_github(diagnostic: Diagnostic) -> str:
    """One line, `::error file=…,line=…,col=…,endColumn=…,title=…::message`."""
    pairs = {}
    if diagnostic.origin:
        origin = diagnostic.origin
        pairs = {"file": origin.file, "line": str(origin.line), "col": str(origin.column), "endColumn": str(origin.column + origin.width)}
    parts = [diagnostic.message, *(part for part in (diagnostic.label, diagnostic.help) if part)]
    return workflow_command(diagnostic.severity, f"nodectl {diagnostic.code}", ". ".join(parts), pairs)


def workflow_command(severity: str, title: str, message: str, place: Mapping[str, str] = MappingProxyType({})) -> str:
    """One annotation as one line: nothing in ``title``, ``message`` or ``place`` can end it and start a command of its own."""
    properties = ",".join(f"{name}={_property(value)}" for name, value in {**place, "title": title}.items())
    return f"::{severity} {properties}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
