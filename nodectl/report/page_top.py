"""The top of a run's page, as plain HTML: the verdict, which nodes, why, and what to do. It reads without scripts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from nodectl.report.exit_code import MEANING
from nodectl.report.fold import BADNESS, HostSummary, Summary
from nodectl.report.human import printable, why
from nodectl.report.page_table import head, safe

# Nodes that are shown one by one: they fit on a screen. Where more are not ready they share a cause, and are grouped by it.
FEW = 8
# Rows of a table here. The rack and the checks below it have all nodes.
ROWS_MOST = 40
# Node names in one cell of the table that groups by cause.
NAMES_MOST = 12
REASON_MOST = 600
# The same as in page/format.js: colour is never the only sign.
SIGNS = {"pass": "✓", "skipped": "⊘", "unknown": "?", "fail": "✕", "none": "·"}
_NOTHING = "nothing was proven about it"


def headline(summary: Summary) -> str:
    """What the run came to, in one line. A node that is waived is handed off, and yet not proven: it is counted by itself."""
    count, found = len(summary.hosts), summary.not_ready()
    waived = [name for name, host in found if host.state == "skipped"]
    bad = [name for name, host in found if host.state != "skipped"]
    if not count:
        return "No node took part in this run"
    if bad:
        besides = f"; {len(waived)} more {_are(len(waived))} ready only by a waiver" if waived else ""
        return f"{_of(bad, count)} not {'ready' if summary.proving else 'done'}: {_first(bad)}{besides}"
    if waived:
        return f"{_of(waived, count)} ready only by a waiver: {_first(waived)}"
    return f"{'All ' if count > 1 else ''}{count} node{'s' if count > 1 else ''} {_are(count)} {'proven ready' if summary.proving else 'done'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _of(names: Sequence[str], count: int) -> str:
    return f"{len(names)} of {count} node{'s' if count > 1 else ''} {_are(len(names))}"


def _first(names: Sequence[str]) -> str:
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"


def sign(summary: Summary) -> str:
    bad = summary.not_ready()
    word = bad[0][1].state if bad else "none" if not summary.hosts else "pass" if summary.proving else "done"
    return _badge(word)


def _badge(word: str) -> str:
    kind = word if word in BADNESS else {"stopped": "unknown", "done": "pass"}.get(word, "fail")
    return f'<span class="badge {kind}"><span aria-hidden="true">{SIGNS[kind]}</span> {safe(word)}</span>'


def facts(summary: Summary) -> Iterator[str]:
    yield _fact("Run", summary.run_id)
    if summary.command:
        yield _fact("Command", f"nodectl {summary.command}{' --check' if summary.check else ''}")
    if summary.suite.get("name"):
        yield _fact("Suite", str(summary.suite["name"]))
    if summary.started:
        yield _fact("Started", datetime.fromtimestamp(summary.started, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"))
        yield _fact("Took", took(summary.seconds))
    code = summary.exit_code
    yield _fact("Exit code", f"{int(code)}: {MEANING[code] if summary.proving or code else 'done'}")
    if summary.version:
        yield _fact("nodectl", summary.version)


def took(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _fact(name: str, value: str) -> str:
    return f"<div><dt>{safe(name)}</dt><dd>{safe(value)}</dd></div>"


def causes(summary: Summary) -> Iterator[str]:
    """Node by node where they are few, else by cause, with the nodes below a fold."""
    bad = summary.not_ready()
    if not bad:
        return
    many = len(bad) > FEW
    if many:
        yield from _grouped(bad)
        yield f"<details><summary>Node by node ({min(len(bad), ROWS_MOST)} of {len(bad)})</summary>"
    yield head("why stacks", "Why", "Node", "State", "Reason")
    yield from (_why_row(name, host) for name, host in bad[:ROWS_MOST])
    yield "</tbody></table>"
    if many:
        yield "</details>"


def _why_row(name: str, host: HostSummary) -> str:
    link = f'<a href="#node={_address(name)}">{safe(name)}</a>'
    hint = f'<p class="hint">{safe(host.hint)}</p>' if host.hint else ""
    if host.status == "failed" and host.origin:
        hint = f'<p class="hint">written at <code>{safe(host.origin)}</code></p>{hint}'
    told = [_cut(line) for line in why(host).splitlines()] or [_NOTHING]
    lines = "".join(f"<li>{safe(line)}</li>" for line in told)
    return f'<tr><th scope="row">{link}</th><td>{_badge(host.state)}</td><td><ul>{lines}</ul>{hint}</td></tr>'


def _address(name: str) -> str:
    """As decodeURIComponent of the page reads it."""
    return quote(printable(name), safe="")


def _cut(text: str) -> str:
    return text if len(text) <= REASON_MOST else f"{text[:REASON_MOST]}…"


def _grouped(bad: Sequence[tuple[str, HostSummary]]) -> Iterator[str]:
    """Nodes by what is said of them, without the figures: one switch that is slow is one line, not sixteen."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, host in bad:
        said = f"{host.state}: {(why(host).splitlines() or [_NOTHING])[0]}"
        found.setdefault(re.sub(r"\d+(\.\d+)?", "#", said), []).append((name, said))
    yield head("stacks", "Why", "Nodes", "Reason, of the first of them", "Which")
    for nodes in sorted(found.values(), key=len, reverse=True)[:ROWS_MOST]:
        more = f" and {len(nodes) - NAMES_MOST} more" if len(nodes) > NAMES_MOST else ""
        names = ", ".join(name for name, _ in nodes[:NAMES_MOST]) + more
        count = f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"
        yield f'<tr><td class="number">{count}</td><td>{safe(_cut(nodes[0][1]))}</td><td>{safe(names)}</td></tr>'
    yield "</tbody></table>"


def actions(summary: Summary) -> Iterator[str]:
    """What to do next, as far as the events say it."""
    bad = [name for name, _ in summary.not_ready()]
    if not summary.complete:
        yield "<li>This run has no end in its journal: it was stopped, or still goes on. What is not listed here was not proven.</li>"
    if summary.handoff:
        hosts = summary.handoff.get("hosts")
        count = len(hosts) if isinstance(hosts, list) else 0
        world = f"handed off (world size {summary.handoff.get('world_size', 0)})"
        nodes = f"{count} node{'s are' if count != 1 else ' is'} {world}" if count else "No node is handed off"
        yield f"<li>{safe(nodes)}: <code>{safe(str(summary.handoff.get('path', '')))}</code></li>"
    if bad and summary.proving and summary.inventory:
        again = f"nodectl verify {shlex.join(summary.inventory)}"  # all of them: a pair has two ends
        yield f"<li>When what is named above is mended, prove it again: <code>{safe(again)}</code></li>"
    yield from (f"<li>Waived on {safe(name)}: {safe(said)}</li>" for name, said in _waivers(summary)[:ROWS_MOST])
    if summary.warnings:
        yield f'<li><a href="#warnings">{len(summary.warnings)} warning{"s" if len(summary.warnings) > 1 else ""}</a> at the end of this page</li>'
    simulated = sum(len(host.simulated) for host in summary.hosts.values())
    if simulated:
        every = sum(len(host.checks) for host in summary.hosts.values())
        yield f"<li>{simulated} of {every} checks ran on stand-ins for hardware (marked <i>simulated</i>): the way is proven, the speed is not.</li>"


def _waivers(summary: Summary) -> list[tuple[str, str]]:
    return [(name, said) for name, host in summary.hosts.items() for said in host.waived]
