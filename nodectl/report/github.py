"""A run as GitHub annotations: workflow commands that a job prints. One line per node that is not ready, worst first.

GitHub shows ten errors and ten warnings of a step, so the first line says what the whole run came to.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodectl.diagnostics.render_github import workflow_command
from nodectl.report.fold import HostSummary, Summary
from nodectl.report.human import origin_of, printable, why
from nodectl.report.page_top import headline

# Characters of one annotation: GitHub cuts off at 64 KiB, and nobody reads a screen of them.
MOST = 4_000
# Lines of one kind. GitHub drops them after 50 in a job; report.html has all.
LINES_MOST = 50


def github(summary: Summary) -> str:
    """The lines, each ended; "" for a run in which everything is well and nothing was waived."""
    return "".join(f"{line}\n" for line in _lines(summary))


def _lines(summary: Summary) -> Iterator[str]:
    bad = summary.not_ready()
    if bad or not summary.complete:
        end = "" if summary.complete else "; the run came to no end"
        yield workflow_command("error", "nodectl", printable(f"{headline(summary)}{end}. Everything is in report.html of run {summary.run_id}"))
    for name, host in bad[:LINES_MOST]:
        severity = "warning" if host.state == "skipped" else "error"
        yield workflow_command(severity, f"{printable(name)}: {host.state}", _said(host), _place(host))
    if len(bad) > LINES_MOST:
        yield workflow_command("error", "nodectl", f"and {len(bad) - LINES_MOST} more nodes")


def _place(host: HostSummary) -> dict[str, str]:
    """GitHub shows the annotation beside the line of the task that failed."""
    origin = origin_of(host.origin) if host.status == "failed" else None
    return {"file": printable(origin.file), "line": str(origin.line), "col": str(origin.column)} if origin else {}


def _said(host: HostSummary) -> str:
    text = "\n".join(part for part in (why(host), *host.waived, host.hint) if part) or "nothing was proven about it"
    shown = printable(text)
    return shown if len(shown) <= MOST else f"{shown[:MOST]}…"
