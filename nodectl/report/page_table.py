"""Tables of a run's page, as plain HTML: they read without scripts, and narrow screens show a row's cells below each other, with their columns' names."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from nodectl.report.human import printable

_HEAD = '<table class="{kind}"><caption>{caption}</caption><thead><tr>{columns}</tr></thead><tbody>'


def safe(text: str) -> str:
    """Nothing in it is markup, turns the reading direction or steers a terminal."""
    return html.escape(printable(text))


def head(kind: str, caption: str, *columns: str) -> str:
    """Up to the first row. ``caption`` and ``columns`` are HTML."""
    return _HEAD.format(kind=kind, caption=caption, columns="".join(f'<th scope="col">{column}</th>' for column in columns))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """All of it, of texts. The first cell of a row names the row."""
    return head("stacks", safe(caption), *map(safe, columns)) + "".join(_row(columns, row) for row in rows) + "</tbody></table>"


def _row(columns: Sequence[str], cells: Sequence[str]) -> str:
    rest = "".join(f'<td data-name="{safe(column)}">{safe(cell)}</td>' for column, cell in zip(columns[1:], cells[1:], strict=True))
    return f'<tr><th scope="row">{safe(cells[0])}</th>{rest}</tr>'
