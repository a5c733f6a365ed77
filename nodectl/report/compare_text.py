"""A comparison of two runs for a person, for a program and for the page: worst first, and what is left out is counted."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from nodectl.report.compare import Change, Comparison
from nodectl.report.human import printable
from nodectl.verify.judging.units import UnitError, human, unit

# Lines of one kind on a screen. A slow switch changes every check of its nodes: the first forty tell which, and --format json has all.
LINES_MOST = 40


def comparison_lines(found: Comparison) -> list[str]:
    """The whole comparison as lines of text."""
    lines = [printable(f"{found.after} compared with {found.before}; figures that moved by less than {found.noise:.0%} are noise")]
    for title, texts in _blocks(found):
        lines += ["", f"{title} ({len(texts)})", *(f"  {printable(text)}" for text in texts[:LINES_MOST])]
        if len(texts) > LINES_MOST:
            lines.append(f"  and {len(texts) - LINES_MOST} more: --format json has all")
    return [*lines, "", summary_line(found)]


def summary_line(found: Comparison) -> str:
    counts = {kind: sum(change.kind == kind for change in found.changes) for kind in ("slower", "faster")}
    return f"{counts['slower']} slower, {counts['faster']} faster, verdicts of nodes that changed: {len(found.verdicts)}, checks as before: {found.same}"


def _blocks(found: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Title and lines; what is empty is not there."""
    blocks = {
        "Nodes whose verdict changed": [f"{name}: {before} -> {after}" for name, before, after in found.verdicts],
        "Checks whose verdict changed": [_verdict_line(change) for change in found.changes if change.kind == "verdict"],
        "Slower": [_figure_line(change) for change in found.changes if change.kind == "slower"],
        "Faster": [_figure_line(change) for change in found.changes if change.kind == "faster"],
        "Other": [f"{change.host}: {change.check}: {_figures(change)}" for change in found.changes if change.kind == "changed"],
        "Nodes that are not there any more": found.nodes_gone,
        "New nodes": found.nodes_come,
        "Checks that were not made any more": _by_check(found.checks_gone),
        "New checks": _by_check(found.checks_come),
    }
    yield from ((title, texts) for title, texts in blocks.items() if texts)


def _by_check(pairs: list[tuple[str, str]]) -> list[str]:
    """One line per check, with its nodes: a suite with one check more is one line, not a thousand."""
    found: dict[str, list[str]] = {}
    for host, check in pairs:
        found.setdefault(check, []).append(host)
    return [f"{check}: {', '.join(hosts[:5])}{f' and {len(hosts) - 5} more' if len(hosts) > 5 else ''}" for check, hosts in found.items()]


def _verdict_line(change: Change) -> str:
    figures = f" ({_figures(change)})" if change.before != change.after else ""
    return f"{change.host}: {change.check}: {change.verdict_before} -> {change.verdict_after}{figures}{_stand_in(change)}"


def _figure_line(change: Change) -> str:
    return f"{change.host}: {change.check}: {moved(change)} ({_figures(change)}){_stand_in(change)}"


def moved(change: Change) -> str:
    """"31 % slower", "2.4 times as fast"; of times the same, so that slower is always slower."""
    ratio = change.ratio or 0.0
    if ratio >= 2:
        return f"{ratio:.1f} times as fast"
    return f"{abs(1 - ratio):.0%} {'slower' if ratio < 1 else 'faster'}".replace("%", " %")


def _figures(change: Change) -> str:
    return f"{_value(change.before, change.unit)} -> {_value(change.after, change.unit)}"


def _stand_in(change: Change) -> str:
    return " [simulated]" if change.simulated else ""


def _value(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "no value"
    if not isinstance(value, (int, float)):
        return str(value)
    try:
        return human(value, unit(name).base).split(" (")[0]
    except UnitError:
        return f"{value:g} {name}".strip()


def comparison_json(found: Comparison) -> str:
    return json.dumps({**asdict(found), "summary": summary_line(found)}, indent=2, ensure_ascii=False) + "\n"


def comparison_html(found: Comparison) -> str:
    """A section of the page."""
    blocks = []
    for title, texts in _blocks(found):
        more = f"<li>and {len(texts) - LINES_MOST} more</li>" if len(texts) > LINES_MOST else ""
        lines = "".join(f"<li>{html.escape(printable(text))}</li>" for text in texts[:LINES_MOST])
        blocks.append(f"<h3>{html.escape(title)} ({len(texts)})</h3><ul>{lines}{more}</ul>")
    title = '<h2 id="compare-title">Compared with an earlier run</h2>'
    head = f"Beside {found.before}; figures that moved by less than {found.noise:.0%} are noise. {summary_line(found)}."
    return f'<section aria-labelledby="compare-title">{title}<p>{html.escape(printable(head))}</p>{"".join(blocks)}</section>'
