"""The lines of a user's file that a diagnostic points to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodectl.wire.origin import Origin

# Bytes of a file that are read to find a line; what lies beyond is shown without its text.
MAX_BYTES = 16 * 1024 * 1024
# Columns of a source line that are shown: a line of a terminal, with room for the gutter.
MAX_WIDTH = 140
_TAB = "    "


@dataclass(frozen=True)
class Snippet:
    """One line, ready to print: ``text`` has no tabs or control characters; the caret stands ``indent`` columns in and is ``width`` wide."""

    line: int
    text: str
    indent: int
    width: int


def snippet(origin: Origin) -> Snippet | None:
    """The line of ``origin``, or None when the file cannot be read or has no such line. Long lines are cut around the caret."""
    try:
        with Path(origin.file).open("rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except (OSError, ValueError):
        return None
    lines = text.splitlines()
    if not 0 < origin.line <= len(lines):
        return None
    return cut(lines[origin.line - 1], origin)


def cut(row: str, origin: Origin) -> Snippet:
    """``row`` as it is shown. Widths are those on the screen: a tab counts four columns."""
    start = min(max(origin.column - 1, 0), len(row))
    before, token, after = row[:start], row[start : start + origin.width], row[start + origin.width :]
    shown_before, shown_token, shown_after = _printable(before), _printable(token), _printable(after)
    width = max(len(shown_token), 1)
    left = 0
    if len(shown_before) + width > MAX_WIDTH:
        left = max(len(shown_before) - MAX_WIDTH // 2, 0)
        shown_before = "…" + shown_before[left + 1 :]
    text = shown_before + shown_token + shown_after
    if len(text) > MAX_WIDTH:
        text = text[: MAX_WIDTH - 1] + "…"
    return Snippet(origin.line, text, len(shown_before), max(1, min(width, MAX_WIDTH - len(shown_before))))


def _printable(text: str) -> str:
    return "".join(_TAB if char == "\t" else char if char.isprintable() else "?" for char in text)
