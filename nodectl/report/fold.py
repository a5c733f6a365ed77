"""Events to summary: what a run came to, per host. Pure: the same events give the same summary, live or a year later."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from nodectl.report.exit_code import ExitCode, first
from nodectl.wire.event import Event

Status = Literal["ok", "failed", "unreachable", "lost", "stopped"]
Verdict = Literal["pass", "fail", "unknown", "skipped", "none"]

# A later event may only make the status worse: a host that failed stays failed when the budget then stops the play.
SEVERITY: dict[Status, int] = {"ok": 0, "stopped": 1, "failed": 2, "unreachable": 3, "lost": 3}
# The worse, the higher. `skipped` is what the user waived: it holds a node back from "proven", but is no finding against it.
BADNESS: dict[str, int] = {"none": 0, "pass": 1, "skipped": 2, "unknown": 3, "fail": 4}
# These commands promise a proof; a host of theirs without a verdict is not proven. Others (run, plan) promise none.
PROVING = frozenset({"bootstrap", "verify"})
# Characters of a program's last line in a reason: two lines of a terminal. A program may print a megabyte without a line end.
LAST_WORDS = 300


@dataclass
class Stats:
    """As Ansible counts: ``ok`` includes what changed and what failed and was ignored."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    skipped: int = 0
    rescued: int = 0
    ignored: int = 0


@dataclass
class HostSummary:
    """``reason`` says why the status is not ok; ``reasons`` say why the verdict is not pass; ``origin`` is where the task
    that failed first was written (file:line:column), ``node`` what the node event said."""

    status: Status = "ok"
    stats: Stats = field(default_factory=Stats)
    pending_handlers: list[str] = field(default_factory=list)
    verdict: Verdict = "none"
    reasons: list[str] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""
    hint: str = ""
    origin: str = ""
    node: dict[str, Any] = field(default_factory=dict)

    @property
    def gone(self) -> bool:
        return self.status in ("unreachable", "lost")

    @property
    def state(self) -> str:
        """One word: what became of the node where that went wrong, else its verdict."""
        return self.status if self.status != "ok" else self.verdict

    @property
    def badness(self) -> int:
        return BADNESS["fail"] + 1 if self.status != "ok" else BADNESS[self.verdict]

    @property
    def simulated(self) -> list[str]:
        """Checks whose figure comes from a stand-in for hardware: they prove the way, not the speed."""
        return [str(check["name"]) for check in self.checks if check["simulated"]]

    @property
    def waived(self) -> list[str]:
        """Checks that the user has taken out, each with who, why and until."""
        return [f"{check['name']} ({waiver_text(check['waiver'])})" for check in self.checks if check["verdict"] == "skipped"]


@dataclass
class Summary:
    """``complete`` is False where the journal ends without run.end: the process was killed, or still runs."""

    command: str = ""
    run_id: str = ""
    version: str = ""
    check: bool = False
    inventory: list[str] = field(default_factory=list)
    started: float = 0.0
    ended: float = 0.0
    complete: bool = False
    said_exit_code: int | None = None
    hosts: dict[str, HostSummary] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    handoff: dict[str, Any] = field(default_factory=dict)
    suite: dict[str, Any] = field(default_factory=dict)
    sweeps: list[dict[str, Any]] = field(default_factory=list)
    pairs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended - self.started)

    @property
    def proving(self) -> bool:
        return self.command in PROVING and not self.check

    def ready(self, host: HostSummary) -> bool:
        """As good as this command can find a node: proven where it proves, else done."""
        return host.status == "ok" and (host.verdict == "pass" if self.proving else host.verdict in ("none", "pass"))

    def not_ready(self) -> list[tuple[str, HostSummary]]:
        """Worst first; nodes of one badness in the order of the inventory."""
        return sorted(((name, host) for name, host in self.hosts.items() if not self.ready(host)), key=lambda item: -item[1].badness)

    @property
    def exit_code(self) -> ExitCode:
        """What the events say; a run that never came to its end says why in run.end, and that is kept."""
        if self.said_exit_code in (ExitCode.INPUT_WRONG, ExitCode.BUG, ExitCode.INTERRUPTED):
            return ExitCode(self.said_exit_code)
        return first(code for host in self.hosts.values() for code in host_codes(host, self.proving))


def host_codes(host: HostSummary, proving: bool) -> list[ExitCode]:
    """Every exit code that this host is a reason for. Unknown is not a pass, and neither is no verdict where one was promised."""
    codes = []
    if host.stats.failed or host.status == "failed":
        codes.append(ExitCode.TASK_FAILED)
    if host.gone:
        codes.append(ExitCode.UNREACHABLE)
    # A waived check was not passed: whoever reads only the exit code must not take the run for proven.
    if host.verdict in ("fail", "unknown", "skipped") or (proving and host.verdict == "none"):
        codes.append(ExitCode.NOT_PROVEN)
    return codes


def fold(events: Iterable[Event]) -> Summary:
    """The summary of one run's events. Kinds that are not known are passed over: an older nodectl reads a newer journal."""
    summary = Summary()
    for event in events:
        summary.started = summary.started or event.at
        summary.ended = max(summary.ended, event.at)
        apply = _APPLY.get(event.kind)
        if apply:
            apply(summary, event)
    return summary


def _host(summary: Summary, name: str) -> HostSummary:
    return summary.hosts.setdefault(name, HostSummary())


def _worsen(host: HostSummary, status: Status, reason: str, hint: str = "") -> None:
    if SEVERITY[status] > SEVERITY[host.status]:
        host.status, host.reason, host.hint = status, reason, hint


def _run_start(summary: Summary, event: Event) -> None:
    data = event.data
    summary.command = str(data.get("command", ""))
    summary.run_id = str(data.get("run_id", ""))
    summary.version = str(data.get("version", ""))
    summary.check = bool(data.get("check", False))
    summary.inventory = event.texts("inventory")
    for name in event.texts("hosts"):
        _host(summary, name)


def _play_start(summary: Summary, event: Event) -> None:
    for name in event.texts("hosts"):
        _host(summary, name)


def _task_end(summary: Summary, event: Event) -> None:
    host, stats, status = _host(summary, event.host), _host(summary, event.host).stats, event.data.get("status")
    result = event.mapping("result")
    if status in ("ok", "changed", "ignored"):
        stats.ok += _inclusions(event.data, result)
    if status == "changed" or (status == "ignored" and result.get("changed")):
        stats.changed += 1
    if status == "failed":
        stats.failed += 1
        host.origin = host.origin or str(event.data.get("origin") or "")
        _worsen(host, "failed", _why_failed(event.data, result))
    elif status == "skipped":
        stats.skipped += 1
    elif status == "rescued":
        stats.rescued += 1
    elif status == "ignored":
        stats.ignored += 1


def _inclusions(data: dict[str, Any], result: dict[str, Any]) -> int:
    """1; for a looped include the number of inclusions, each of which Ansible counts."""
    items = result.get("results")
    return sum(not (isinstance(item, dict) and item.get("skipped")) for item in items) if data.get("include") and isinstance(items, list) else 1


def _why_failed(data: dict[str, Any], result: dict[str, Any]) -> str:
    task = title(data)
    said = complaint(result)
    return f"{task}: {said}" if task else said


def complaint(result: dict[str, Any]) -> str:
    """Why a step failed, in one line: its message, and of a program the exit code and the last thing it said. Of a loop, the first item's."""
    found = result.get("results")
    items = [one for one in found if isinstance(one, dict) and one.get("failed")] if isinstance(found, list) else []
    if items:
        more = f" (and {len(items) - 1} more of its items)" if len(items) > 1 else ""
        return f"{complaint(items[0])}{more}"
    msg = str(result.get("msg") or "failed")
    if not result.get("rc"):
        return msg
    last = str(result.get("stderr") or "").strip().rpartition("\n")[2]
    shown = last if len(last) <= LAST_WORDS else f"{last[:LAST_WORDS]}…"
    return f"{msg} (rc={result['rc']}){f': {shown}' if last and last not in msg else ''}"


def title(data: dict[str, Any]) -> str:
    """A task as Ansible names it: "role : name", or the module where the task has no name."""
    name = str(data.get("task") or data.get("module") or "")
    role = str(data.get("role") or "")
    return f"{role} : {name}" if role and name else role or name


def _unreachable(summary: Summary, event: Event) -> None:
    _worsen(_host(summary, event.host), "unreachable", str(event.data.get("reason", "")), str(event.data.get("hint", "")))


def _lost(summary: Summary, event: Event) -> None:
    _worsen(_host(summary, event.host), "lost", str(event.data.get("reason", "")), str(event.data.get("hint", "")))


def _stopped(summary: Summary, event: Event) -> None:
    _worsen(_host(summary, event.host), "stopped", str(event.data.get("reason", "")))


def _pending(summary: Summary, event: Event) -> None:
    _host(summary, event.host).pending_handlers = event.texts("handlers")


def _check(summary: Summary, event: Event) -> None:
    found = {key: event.data.get(key) for key in ("name", "verdict", "value", "unit", "floor", "reason", "source", "simulated", "step", "raw")}
    waiver = event.mapping("waiver")
    # Skipped by nobody is a check that did not run.
    if found["verdict"] not in ("pass", "fail", "unknown", "skipped") or (found["verdict"] == "skipped" and not waiver):
        found["verdict"] = "unknown"
    _host(summary, event.host).checks.append({**found, "waiver": waiver})


def waiver_text(waiver: dict[str, Any]) -> str:
    """"waived by ops until 2026-12-31: the new cable is on its way"."""
    until = f" until {waiver['until']}" if waiver.get("until") else ""
    return f"waived by {waiver.get('who') or 'nobody named'}{until}: {waiver.get('why') or 'no reason given'}"


def _verdict(summary: Summary, event: Event) -> None:
    host = _host(summary, event.host)
    # Whatever is not one of the known words was not judged: unknown.
    said = event.data.get("verdict")
    host.verdict = said if said in ("pass", "fail", "unknown", "skipped") else "unknown"
    host.reasons = event.texts("reasons")


def _node(summary: Summary, event: Event) -> None:
    _host(summary, event.host).node = dict(event.data)


def _warning(summary: Summary, event: Event) -> None:
    text = str(event.data.get("text", ""))
    line = f"{event.host}: {text}" if event.host else text
    if line not in summary.warnings:
        summary.warnings.append(line)


def _handoff(summary: Summary, event: Event) -> None:
    summary.handoff = dict(event.data)


def _suite(summary: Summary, event: Event) -> None:
    summary.suite = dict(event.data)


def _sweep(summary: Summary, event: Event) -> None:
    summary.sweeps.append(dict(event.data))


def _pair(summary: Summary, event: Event) -> None:
    summary.pairs.append(dict(event.data))


def _run_end(summary: Summary, event: Event) -> None:
    summary.complete = True
    summary.said_exit_code = event.data.get("exit_code")


_APPLY: dict[str, Callable[[Summary, Event], None]] = {
    "run.start": _run_start,
    "play.start": _play_start,
    "task.end": _task_end,
    "host.unreachable": _unreachable,
    "host.lost": _lost,
    "host.stopped": _stopped,
    "handlers.pending": _pending,
    "check": _check,
    "verdict": _verdict,
    "node": _node,
    "warning": _warning,
    "handoff": _handoff,
    "suite": _suite,
    "sweep": _sweep,
    "pair": _pair,
    "run.end": _run_end,
}
