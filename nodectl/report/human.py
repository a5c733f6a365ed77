"""Events as a person reads them: Ansible's words, and nothing where nothing happened."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from nodectl.diagnostics.model import Diagnostic
from nodectl.diagnostics.render_human import render_human
from nodectl.report.exit_code import MEANING
from nodectl.report.fold import HostSummary, Summary, complaint, title
from nodectl.report.sweep_table import sweep_lines
from nodectl.wire.event import Event
from nodectl.wire.origin import Origin

STYLES = {"ok": "green", "changed": "yellow", "failed": "red", "skipped": "cyan", "rescued": "magenta", "ignored": "magenta"}
VERDICT_STYLES = {"pass": "bold green", "fail": "bold red", "unknown": "bold yellow", "skipped": "bold magenta", "none": "dim"}
# As wide as Ansible draws its rules on a terminal of 80 columns.
RULE = 79
# The end of a program's output holds its complaint; more than this pushes the rest of the run off the screen.
TAIL = 20
# Characters of one of these lines: several terminal lines, for a compiler's command; a megabyte without a line end stays in the journal.
WIDEST = 1000
# Names in one line of the ending. The whole lists are in report.json and in the handoff.
NAMES_MOST = 16
# Keys of a result that other parts of the output show, or that only say what the status says.
QUIET_KEYS = frozenset({"changed", "failed", "skipped", "diff", "warnings", "ansible_facts", "invocation"})


@dataclass(frozen=True)
class View:
    """verbosity 0: what changed or failed; 1: also ok and skipped; 2: also every result. ``diff`` shows before and after."""

    verbosity: int = 0
    diff: bool = False


class TaskLog:
    """Turns events into lines. A heading is written once, before the first line that stands under it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._heading: tuple[str, int] = ("", 0)
        self._task_now: dict[str, Any] = {}
        self._started = 0
        self._items: dict[str, int] = {}
        self._warned: set[str] = set()

    def lines(self, event: Event) -> list[Text]:
        writers = {
            "play.start": self._play,
            "task.start": self._start,
            "task.item": self._item,
            "task.end": self._task,
            "host.unreachable": self._unreachable,
            "host.lost": self._lost,
            "host.stopped": self._stopped,
            "warning": self._warning,
            "check": self._check,
            "sweep": self._sweep,
            "progress": self._progress,
        }
        writer = writers.get(event.kind)
        return [harmless(line) for line in writer(event)] if writer else []

    def _play(self, event: Event) -> Iterator[Text]:
        self._heading = ("", 0)
        yield Text()
        yield rule(f"PLAY [{event.data.get('play', '')}]")

    def _start(self, event: Event) -> Iterator[Text]:
        """Nothing is shown yet: a task may turn out to have nothing to say."""
        self._started += 1
        self._task_now = event.data
        yield from ()

    def _head(self, event: Event) -> Iterator[Text]:
        key = (title(event.data), self._started)
        if key != self._heading:
            self._heading = key
            yield Text()
            yield rule(f"{'RUNNING HANDLER' if event.data.get('handler') else 'TASK'} [{key[0]}]")

    def _item(self, event: Event) -> Iterator[Text]:
        # An item's event names the task and no more; its module and role were told when the task began.
        event = replace(event, data={**self._task_now, **event.data})
        status = str(event.data.get("status"))
        if self._shown(status, event):
            self._items[event.host] = self._items.get(event.host, 0) + 1
            yield from self._head(event)
            yield from self._result(event, status, f" => (item={_short(event.data.get('item'))})")

    def _task(self, event: Event) -> Iterator[Text]:
        status = str(event.data.get("status"))
        items = self._items.pop(event.host, 0)
        if not self._shown(status, event) or (items and status not in ("failed", "ignored", "rescued")):
            return
        yield from self._head(event)
        yield from self._result(event, status, "", whole=items == 0)

    def _shown(self, status: str, event: Event) -> bool:
        return self._view.verbosity > 0 or status not in ("ok", "skipped") or (status == "ok" and event.data.get("module") == "debug")

    def _result(self, event: Event, status: str, suffix: str, whole: bool = True) -> Iterator[Text]:
        result = event.mapping("result")
        style = STYLES.get(status, "")
        if status in ("failed", "ignored", "rescued"):
            yield Text(f"fatal: [{event.host}]: FAILED!{suffix} => {complaint(result)}", style=style if status != "failed" else "bold red")
            if whole:
                yield from failure(event.data, result)
            if status != "failed":
                yield Text("...ignoring" if status == "ignored" else "...rescued", style=style)
        else:
            yield Text(f"{status}: [{event.host}]{suffix}{self._values(event, result)}", style=style)
        if self._view.diff:
            yield from diff_lines(event.data.get("diff"))

    def _values(self, event: Event, result: dict[str, Any]) -> str:
        if event.data.get("module") == "debug":
            shown = {key: value for key, value in result.items() if key not in QUIET_KEYS}
            return f" => {shown['msg']}" if set(shown) == {"msg"} and isinstance(shown["msg"], str) else f" => {_json(shown)}"
        if self._view.verbosity > 1:
            return f" => {_json({key: value for key, value in result.items() if key not in QUIET_KEYS})}"
        return ""

    def _unreachable(self, event: Event) -> Iterator[Text]:
        yield from _gone(event, "UNREACHABLE", "nothing was done on it")

    def _lost(self, event: Event) -> Iterator[Text]:
        yield from _gone(event, "LOST", "what its last step did is not known")

    def _stopped(self, event: Event) -> Iterator[Text]:
        yield Text(f"stopped: [{event.host}]: {event.data.get('reason', '')}", style="yellow")

    def _warning(self, event: Event) -> Iterator[Text]:
        """Many nodes have the same to say: it is shown once, with the first of them. The report has all."""
        text = str(event.data.get("text"))
        if text in self._warned and self._view.verbosity == 0:
            return
        self._warned.add(text)
        first = "" if self._view.verbosity else "first on "
        where = f" [{first}{event.host}]" if event.host else ""
        origin = origin_of(event.data.get("origin"))
        yield Text(f"[WARNING]:{where} {event.data.get('text', '')}{f' ({origin})' if origin else ''}", style="magenta")

    def _check(self, event: Event) -> Iterator[Text]:
        verdict = str(event.data.get("verdict"))
        if verdict != "pass" or self._view.verbosity > 0:
            yield Text(f"{verdict}: [{event.host}] {event.data.get('name', '')}: {event.data.get('reason', '')}", style=VERDICT_STYLES.get(verdict, ""))

    def _sweep(self, event: Event) -> Iterator[Text]:
        yield from sweep_lines(event.data, single=self._view.verbosity > 0)

    def _progress(self, event: Event) -> Iterator[Text]:
        # What one node is busy with is for the live view; a stage of the whole run is news.
        if not event.host or self._view.verbosity > 1:
            where = f"[{event.host}] " if event.host else ""
            yield Text(f"{where}{progress_text(event)}", style="dim")


def progress_text(event: Event) -> str:
    """"stage: text"; a step that runs on a node reports without a stage."""
    return ": ".join(str(event.data[key]) for key in ("stage", "text") if event.data.get(key))


def harmless(line: Text) -> Text:
    """What nodes and files say must not steer the terminal: control characters are shown as their escapes."""
    return line if line.plain.isprintable() else Text(printable(line.plain), style=line.style)


def printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text)


def rule(text: str) -> Text:
    return Text(f"{text} ".ljust(RULE, "*"), style="bold")


def _gone(event: Event, word: str, meaning: str) -> Iterator[Text]:
    yield Text(f"fatal: [{event.host}]: {word}! => {event.data.get('reason', '')} ({meaning})", style="bold red")
    if event.data.get("hint"):
        yield Text(f"  help: {event.data['hint']}", style="cyan")


def failure(data: dict[str, Any], result: dict[str, Any]) -> Iterator[Text]:
    """Where the failed task was written, with its line and a caret, and what the program said."""
    origin = origin_of(data.get("origin"))
    if origin:
        # Its headline would repeat the line above; what is left is the arrow, the snippet and the caret.
        text = render_human(Diagnostic("", "", origin), colour=False)
        yield from (Text(line) for line in text.splitlines()[1:])
    for stream in ("stdout", "stderr"):
        lines = str(result.get(stream) or "").splitlines()
        if lines:
            left_out = f" (last {TAIL} of {len(lines)} lines)" if len(lines) > TAIL else ""
            yield Text(f"  {stream}{left_out}:", style="bold")
            yield from (Text(f"    {_cut(line)}") for line in lines[-TAIL:])


def _cut(line: str) -> str:
    return line if len(line) <= WIDEST else f"{line[:WIDEST]}… ({len(line)} characters)"


def origin_of(text: Any) -> Origin | None:
    """The place that an event names as file:line:column."""
    parts = str(text or "").rsplit(":", 2)
    return Origin(parts[0], int(parts[1]), int(parts[2])) if len(parts) == 3 and parts[1].isdecimal() and parts[2].isdecimal() else None


def diff_lines(diffs: Any) -> Iterator[Text]:
    """Unified diffs of texts, coloured as diff tools do."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for diff in [item for item in diffs if isinstance(item, dict)] if isinstance(diffs, list) else []:
        before, after = str(diff.get("before", "")), str(diff.get("after", ""))
        header = str(diff.get("before_header", "before")), str(diff.get("after_header", "after"))
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), *header, lineterm=""):
            yield Text(line, style=styles.get(line[:1], ""))
        if before.splitlines() == after.splitlines() and before != after:
            yield Text("  (only the newline at the end differs)", style="dim")


def _short(item: Any) -> str:
    text = item if isinstance(item, str) else _json(item)
    # One line of a terminal; the journal holds the whole item.
    return text if len(text) <= 120 else text[:117] + "..."


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def recap(summary: Summary) -> list[Text]:
    """Ansible's recap, one line per host, so that scripts which read it go on working."""
    width = max(map(len, summary.hosts), default=0)
    return [Text(), rule("PLAY RECAP"), *(Text(recap_line(name, host, width), style=_recap_style(host)) for name, host in summary.hosts.items())]


def recap_line(name: str, host: HostSummary, width: int = 0) -> str:
    """unreachable counts a lost host too: Ansible has no other word for it."""
    return f"{name:<{width}} : {recap_counts(host)}"


def recap_counts(host: HostSummary) -> str:
    s = host.stats
    return f"ok={s.ok} changed={s.changed} unreachable={int(host.gone)} failed={s.failed} skipped={s.skipped} rescued={s.rescued} ignored={s.ignored}"


def _recap_style(host: HostSummary) -> str:
    if host.gone or host.stats.failed:
        return "red"
    return "yellow" if host.stats.changed else "green"


def verdict_table(summary: Summary) -> Table:
    """One row per node: what became of it, what was proven, and why not."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("NODE", "STATUS", "CHANGED", "CHECKS", "VERDICT"):
        table.add_column(column, no_wrap=True)
    table.add_column("WHY", overflow="fold")
    for name, host in summary.hosts.items():
        checks = _checks(host)
        verdict = Text(host.verdict if host.verdict != "none" or summary.proving else "-", style=VERDICT_STYLES[host.verdict])
        table.add_row(name, Text(host.status, style="" if host.status == "ok" else "red"), str(host.stats.changed), checks, verdict, Text(printable(why(host))))
    return table


def _checks(host: HostSummary) -> str:
    passed = sum(check["verdict"] == "pass" for check in host.checks)
    stand_ins = f", {len(host.simulated)} simulated" if host.simulated else ""
    return f"{passed}/{len(host.checks)}{stand_ins}" if host.checks else "-"


def why(host: HostSummary) -> str:
    """Every reason that keeps the host from being proven; handlers that did not run are one a person must know of."""
    reasons = [host.reason] if host.reason else []
    reasons += [reason for reason in host.reasons if reason not in reasons]
    if host.pending_handlers:
        reasons.append(f"handlers that did not run: {', '.join(host.pending_handlers)}")
    return "\n".join(reasons)


def ending(summary: Summary, folder: Path) -> list[Text]:
    """The last lines: what was handed off, where everything is, and what the exit code means."""
    lines = [Text()]
    if summary.handoff:
        hosts, excluded = summary.handoff.get("hosts"), summary.handoff.get("excluded")
        names = listed(list(map(str, hosts)) if isinstance(hosts, list) else []) or "no node"
        left_out = f"; left out: {listed([_excluded_name(item) for item in excluded])}" if excluded and isinstance(excluded, (dict, list)) else ""
        lines.append(Text(f"handed off: {names} (world size {summary.handoff.get('world_size', 0)}){left_out}"))
        lines.append(Text(f"handoff:    {summary.handoff.get('path', '')}"))
        lines += _refused(summary.handoff.get("refused"))
    lines.append(Text(f"run folder: {folder}"))
    if (folder / "report.html").exists():
        lines.append(Text(f"report:     {folder / 'report.html'}"))
    lines += _waived(summary)
    lines += _stand_ins(summary)
    if not summary.complete:
        lines.append(Text("the journal has no end: this run was killed, or is still going on", style="bold red"))
    code = summary.exit_code
    lines.append(Text(f"exit code {int(code)}: {_meaning(summary)}", style="bold green" if code == 0 else "bold red"))
    return lines


def _refused(by_format: object) -> list[Text]:
    """Proven nodes that one of the formats cannot express: whoever uses that format would miss them."""
    found = by_format if isinstance(by_format, dict) else {}
    missed = {name: ", ".join(map(str, hosts)) for name, hosts in found.items() if isinstance(hosts, dict) and hosts}
    return [Text(f"not in {name}: {hosts} (README.md of the handoff says why)") for name, hosts in missed.items()]


def _waived(summary: Summary) -> list[Text]:
    """One line: a run in which something was waived has not proven everything, and says so."""
    by_check: dict[str, list[str]] = {}
    for name, host in summary.hosts.items():
        for said in host.waived:
            by_check.setdefault(said, []).append(name)
    told = "; ".join(f"{said} on {listed(hosts)}" for said, hosts in by_check.items())
    return [Text(printable(f"waived:     {told}"), style="magenta")] if told else []


def _stand_ins(summary: Summary) -> list[Text]:
    names = sorted({name for host in summary.hosts.values() for name in host.simulated})
    if not names:
        return []
    told = f"simulated:  {listed(names)}: measured on stand-ins for hardware (gloo, loop devices); the way is proven, the speed is not"
    return [Text(told, style="yellow")]


def listed(names: Sequence[str]) -> str:
    """Names in a line: of a thousand the first, and how many more."""
    return ", ".join(names) if len(names) <= NAMES_MOST else f"{', '.join(names[:NAMES_MOST])} and {len(names) - NAMES_MOST} more"


def _excluded_name(item: Any) -> str:
    return str(item.get("host", item)) if isinstance(item, dict) else str(item)


def _meaning(summary: Summary) -> str:
    if summary.exit_code == 0 and not summary.proving:
        return "done (a rehearsal: nothing was changed)" if summary.check else "done"
    return MEANING[summary.exit_code]
