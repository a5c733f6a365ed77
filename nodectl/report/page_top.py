"""The top of a run's page, as plain HTML: the verdict, which nodes, why, and what to do. It reads without scripts."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from nodectl.report.exit_code import MEANING
from nodectl.report.fold import BADNESS, HostSummary, Summary
from nodectl.report.human import printable, why

# Rows of the table of nodes that are not ready. Where more are not, a cause is shared, and the table below it groups by cause.
ROWS_MOST = 40
# Node names in one cell of the table that groups by cause.
NAMES_MOST = 12
REASON_MOST = 600
# The same as in page/format.js: colour is never the only sign.
SIGNS = {"pass": "✓", "skipped": "⊘", "unknown": "?", "fail": "✕", "none": "·"}
_HEAD = '<table class="{kind}"><caption>{caption}</caption><thead><tr>{columns}</tr></thead><tbody>'
_NOTHING = "nothing was proven about it"


def _text(text: str) -> str:
    return html.escape(printable(text))


def _head(kind: str, caption: str, *columns: str) -> str:
    return _HEAD.format(kind=kind, caption=caption, columns="".join(f'<th scope="col">{column}</th>' for column in columns))


def headline(summary: Summary) -> str:
    count, bad = len(summary.hosts), summary.not_ready()
    word = "proven ready" if summary.proving else "done"
    if not count:
        return "No node took part in this run"
    if not bad:
        return f"{'All ' if count > 1 else ''}{count} node{'s are' if count > 1 else ' is'} {word}"
    names = f": {', '.join(name for name, _ in bad[:3])}{f' and {len(bad) - 3} more' if len(bad) > 3 else ''}"
    return f"{len(bad)} of {count} node{'s' if count > 1 else ''} {'is' if len(bad) == 1 else 'are'} not {word}{names}"


def sign(summary: Summary) -> str:
    bad = summary.not_ready()
    word = bad[0][1].state if bad else "pass" if summary.hosts else "none"
    return _badge(word)


def _badge(word: str) -> str:
    kind = word if word in BADNESS else "unknown" if word == "stopped" else "fail"
    return f'<span class="badge {kind}"><span aria-hidden="true">{SIGNS.get(word, "?")}</span> {_text(word)}</span>'


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
    return f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>"


def causes(summary: Summary) -> Iterator[str]:
    bad = summary.not_ready()
    if not bad:
        return
    yield _head("why stacks", "Why", "Node", "State", "Reason")
    for name, host in bad[:ROWS_MOST]:
        yield _why_row(name, host)
    yield "</tbody></table>"
    if len(bad) > ROWS_MOST:
        yield f"<p>and {len(bad) - ROWS_MOST} more, by cause:</p>"
        yield from _grouped(bad)


def _why_row(name: str, host: HostSummary) -> str:
    link = f'<a href="#node={_address(name)}">{_text(name)}</a>'
    hint = f'<p class="hint">{_text(host.hint)}</p>' if host.hint else ""
    told = [_cut(line) for line in why(host).splitlines()] or [_NOTHING]
    lines = "".join(f"<li>{_text(line)}</li>" for line in told)
    return f'<tr><th scope="row">{link}</th><td>{_badge(host.state)}</td><td><ul>{lines}</ul>{hint}</td></tr>'


def _address(name: str) -> str:
    """As decodeURIComponent of the page reads it."""
    return quote(printable(name), safe="")


def _cut(text: str) -> str:
    return text if len(text) <= REASON_MOST else f"{text[:REASON_MOST]}…"


def _grouped(bad: Sequence[tuple[str, HostSummary]]) -> Iterator[str]:
    """Nodes by what is said of them, without the figures: one switch that is slow is one line, not sixteen."""
    found: dict[str, list[str]] = {}
    for name, host in bad:
        cause = re.sub(r"\d+(\.\d+)?", "#", (why(host).splitlines() or [_NOTHING])[0])
        found.setdefault(f"{host.state}: {_cut(cause)}", []).append(name)
    yield _head("stacks", "By cause", "Nodes", "Cause", "Which")
    for cause, names in sorted(found.items(), key=lambda item: -len(item[1]))[:ROWS_MOST]:
        more = f" and {len(names) - NAMES_MOST} more" if len(names) > NAMES_MOST else ""
        yield f'<tr><td class="number">{len(names)}</td><td>{_text(cause)}</td><td>{_text(", ".join(names[:NAMES_MOST]) + more)}</td></tr>'
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
        yield f"<li>{_text(nodes)}: <code>{_text(str(summary.handoff.get('path', '')))}</code></li>"
    if bad and summary.proving and summary.inventory:
        again = f"nodectl verify {shlex.join(summary.inventory)} --limit {shlex.quote(','.join(bad[:NAMES_MOST]))}"
        yield f"<li>When what is named above is mended, prove it again: <code>{_text(again)}</code></li>"
    yield from (f"<li>Waived on {_text(name)}: {_text(said)}</li>" for name, said in _waivers(summary)[:ROWS_MOST])
    simulated = sorted({name for host in summary.hosts.values() for name in host.simulated})
    if simulated:
        yield f"<li>Measured on stand-ins for hardware, so the way is proven and the speed is not: {_text(', '.join(simulated))}</li>"


def _waivers(summary: Summary) -> list[tuple[str, str]]:
    return [(name, said) for name, host in summary.hosts.items() for said in host.waived]
