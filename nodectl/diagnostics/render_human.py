"""A diagnostic as a person reads it in a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import IO

from rich.console import Console
from rich.text import Text

from nodectl.diagnostics.model import Diagnostic
from nodectl.diagnostics.source import snippet

_COLOURS = {"error": "bold red", "warning": "bold yellow"}


def wants_colour(stream: IO[str] | None = None, environ: Mapping[str, str] | None = None) -> bool:
    """Colour only on a terminal, and never with NO_COLOR set (no-color.org) or TERM=dumb."""
    stream = sys.stderr if stream is None else stream
    environ = os.environ if environ is None else environ
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def render_human(diagnostic: Diagnostic, colour: bool | None = None) -> str:
    """The block for one diagnostic, without a newline at its end. ``colour`` None asks the terminal of stderr."""
    text = build(diagnostic)
    if not (wants_colour() if colour is None else colour):
        return text.plain
    console = Console(force_terminal=True, color_system="standard", width=1000, highlight=False)
    with console.capture() as capture:
        console.print(text, soft_wrap=True, end="")
    return capture.get()


def build(diagnostic: Diagnostic) -> Text:
    """The block as styled text."""
    paint = _COLOURS[diagnostic.severity]
    text = Text()
    text.append(f"{diagnostic.severity}[{diagnostic.code}]", paint).append(f": {_one_line(diagnostic.message)}", "bold")
    gutter = len(str(diagnostic.origin.line)) if diagnostic.origin else 1
    if diagnostic.origin:
        text.append(f"\n{' ' * gutter}--> ", "blue").append(str(diagnostic.origin))
        _source(text, diagnostic, gutter, paint)
    if diagnostic.help:
        text.append(f"\n{' ' * gutter} = ", "blue").append("help: ", "bold").append(_one_line(diagnostic.help))
    return text


def _source(text: Text, diagnostic: Diagnostic, gutter: int, paint: str) -> None:
    assert diagnostic.origin is not None
    found = snippet(diagnostic.origin)
    if found is None:
        if diagnostic.label:
            text.append(f"\n{' ' * gutter} | ", "blue").append(_one_line(diagnostic.label), paint)
        return
    text.append(f"\n{' ' * gutter} |\n{found.line} | ", "blue").append(found.text)
    text.append(f"\n{' ' * gutter} | ", "blue").append(" " * found.indent + "^" * found.width, paint)
    if diagnostic.label:
        text.append(f" {_one_line(diagnostic.label)}", paint)


def _one_line(text: str) -> str:
    """Control characters of the user's file must not steer the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)
