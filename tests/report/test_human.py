"""The texts a person reads, exactly."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from nodectl.report.fold import HostSummary, Stats, fold
from nodectl.report.human import NAMES_MOST, TaskLog, View, diff_lines, ending, listed, recap_line, verdict_table, why
from nodectl.report.live import Live, console_for, show_closing
from nodectl.wire.event import Event
from tests.report.fleet import fleet


def task(host: str, status: str, result: dict[str, Any] | None = None, **data: Any) -> Event:
    return Event("task.end", 2.0, host, {"task": "install", "role": "base", "module": "apt", "status": status, "result": result or {}, **data})


def item(host: str, status: str, what: Any, result: dict[str, Any] | None = None) -> Event:
    return Event("task.item", 2.0, host, {"task": "install", "status": status, "item": what, "result": result or {}})


START = Event("task.start", 1.0, "", {"task": "install", "role": "base", "module": "apt", "handler": False})


def said(view: View, *events: Event) -> list[str]:
    log = TaskLog(view)
    return [line.plain for event in events for line in log.lines(event)]


HEAD = "TASK [base : install] " + "*" * 57

SHOWN = [
    # quiet where nothing happened
    (0, [task("n1", "ok"), task("n2", "skipped")], []),
    (0, [task("n1", "changed"), task("n2", "changed")], ["", HEAD, "changed: [n1]", "changed: [n2]"]),
    (1, [task("n1", "ok"), task("n2", "skipped")], ["", HEAD, "ok: [n1]", "skipped: [n2]"]),
    (2, [task("n1", "ok", {"rc": 0, "changed": False})], ["", HEAD, 'ok: [n1] => {"rc": 0}']),
    # a debug task is there to be read
    (0, [task("n1", "ok", {"msg": "hello"}, module="debug")], ["", HEAD, "ok: [n1] => hello"]),
    (0, [task("n1", "ok", {"fabric": "tcp"}, module="debug")], ["", HEAD, 'ok: [n1] => {"fabric": "tcp"}']),
    # loops: the items are shown, and not a second time as a whole
    (0, [START, item("n1", "ok", "a"), item("n1", "changed", "b"), task("n1", "changed")], ["", HEAD, "changed: [n1] => (item=b)"]),
    (0, [START, item("n1", "changed", {"k": 1}), task("n1", "changed"), task("n2", "changed")], ["", HEAD, 'changed: [n1] => (item={"k": 1})', "changed: [n2]"]),
    (0, [replace(START, data={**START.data, "module": "debug"}), item("n1", "ok", "a", {"msg": "see a"}), task("n1", "ok", {"msg": "All items completed"}, module="debug")],
     ["", HEAD, "ok: [n1] => (item=a) => see a"]),
    # trouble
    (0, [task("n1", "failed", {"msg": "no space"})], ["", HEAD, "fatal: [n1]: FAILED! => no space"]),
    (0, [task("n1", "ignored", {"msg": "no"})], ["", HEAD, "fatal: [n1]: FAILED! => no", "...ignoring"]),
    (0, [task("n1", "rescued", {"msg": "no"})], ["", HEAD, "fatal: [n1]: FAILED! => no", "...rescued"]),
    (0, [task("n1", "failed", {"msg": "no", "rc": 1, "stderr": "a\nb"})], ["", HEAD, "fatal: [n1]: FAILED! => no (rc=1): b", "  stderr:", "    a", "    b"]),
    (0, [Event("host.unreachable", 1.0, "n1", {"reason": "refused", "hint": "start sshd"})],
     ["fatal: [n1]: UNREACHABLE! => refused (nothing was done on it)", "  help: start sshd"]),
    (0, [Event("host.lost", 1.0, "n1", {"reason": "silent for 20 s"})], ["fatal: [n1]: LOST! => silent for 20 s (what its last step did is not known)"]),
    (0, [Event("host.stopped", 1.0, "n1", {"reason": "budget"})], ["stopped: [n1]: budget"]),
    (0, [Event("warning", 1.0, "n1", {"text": "odd", "origin": "a.yml:3:1"})], ["[WARNING]: [first on n1] odd (a.yml:3:1)"]),
    # verification: what did not pass is news, what passed is asked for
    (0, [Event("check", 1.0, "n1", {"name": "clock", "verdict": "pass", "reason": "fine"})], []),
    (1, [Event("check", 1.0, "n1", {"name": "clock", "verdict": "pass", "reason": "fine"})], ["pass: [n1] clock: fine"]),
    (0, [Event("check", 1.0, "n1", {"name": "clock", "verdict": "unknown", "reason": "no chrony"})], ["unknown: [n1] clock: no chrony"]),
    (0, [Event("progress", 1.0, "", {"stage": "verify", "text": "pairs"}), Event("progress", 1.0, "n1", {"stage": "apt", "text": "50 %"})], ["verify: pairs"]),
    (0, [Event("play.start", 1.0, "", {"play": "base"})], ["", "PLAY [base] " + "*" * 67]),
]  # fmt: skip


@pytest.mark.parametrize(("verbosity", "events", "lines"), SHOWN, ids=[str(number) for number in range(len(SHOWN))])
def test_lines(verbosity: int, events: list[Event], lines: list[str]) -> None:
    assert said(View(verbosity), *events) == lines


def test_a_heading_comes_once_and_again_after_another_task() -> None:
    lines = said(View(), task("n1", "changed"), task("n2", "changed"), task("n1", "changed", task="other"), task("n2", "changed"))
    assert [line for line in lines if line.startswith("TASK")] == [HEAD, "TASK [base : other] " + "*" * 59, HEAD]


def test_the_same_warning_of_many_nodes_is_shown_once() -> None:
    events = [Event("warning", 1.0, f"n{number}", {"text": "odd"}) for number in range(3)]
    assert said(View(), *events) == ["[WARNING]: [first on n0] odd"]
    assert len(said(View(1), *events)) == 3


def test_handlers_are_named_as_such() -> None:
    assert said(View(), task("n1", "changed", handler=True))[1].startswith("RUNNING HANDLER [base : install] **")


def test_failure_shows_the_line_of_the_task(tmp_path: Path) -> None:
    path = tmp_path / "main.yml"
    path.write_text("- name: one\n  apt: {name: x}\n- name: two\n  command: false\n")
    lines = said(View(), task("n1", "failed", {"msg": "rc 1"}, origin=f"{path}:3:3"))
    text = "\n".join(lines)
    assert f"{path}:3:3" in text
    assert "- name: two" in text
    assert text.splitlines()[-1].endswith("^")
    assert text.count("rc 1") == 1, "the message is said once"


def test_long_output_is_cut_and_says_so() -> None:
    lines = said(View(), task("n1", "failed", {"msg": "no", "stdout": "\n".join(f"line {n}" for n in range(50))}))
    assert "  stdout (last 20 of 50 lines):" in lines
    assert lines[-1] == "    line 49"
    assert "    line 29" not in lines


DIFFS = [
    ({"before": "a\nb\n", "after": "a\nc\n", "before_header": "/etc/x", "after_header": "/etc/x (new)"},
     ["--- /etc/x", "+++ /etc/x (new)", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]),
    ({"before": "", "after": "new\n"}, ["--- before", "+++ after", "@@ -0,0 +1 @@", "+new"]),
    ({"before": "a", "after": "a\n"}, ["  (only the newline at the end differs)"]),
    ({"before": "a", "after": "a"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("diff", "lines"), DIFFS)
def test_diff(diff: dict[str, str], lines: list[str]) -> None:
    assert [line.plain for line in diff_lines([diff])] == lines


def test_diff_is_shown_only_when_asked_for() -> None:
    event = task("n1", "changed", diff=[{"before": "a\n", "after": "b\n"}])
    assert "+b" in said(View(diff=True), event)
    assert "+b" not in said(View(), event)


def test_recap_line_is_ansibles() -> None:
    host = HostSummary(stats=Stats(51, 40, 0, 3, 1, 2))
    assert recap_line("n1", host) == "n1 : ok=51 changed=40 unreachable=0 failed=0 skipped=3 rescued=1 ignored=2"
    assert recap_line("n1", HostSummary(status="lost"), 4) == "n1   : ok=0 changed=0 unreachable=1 failed=0 skipped=0 rescued=0 ignored=0"


def test_every_reason_is_told_once() -> None:
    host = HostSummary("failed", reason="disk: full", reasons=["disk: full", "slow"], pending_handlers=["restart sshd"])
    assert why(host) == "disk: full\nslow\nhandlers that did not run: restart sshd"


def run_of_two() -> list[Event]:
    return [
        Event("run.start", 1.0, "", {"command": "bootstrap", "run_id": "r"}),
        Event("play.start", 1.0, "", {"play": "p", "hosts": ["n1", "n2"]}),
        task("n1", "changed"),
        task("n2", "ok"),
        Event("check", 2.0, "n2", {"name": "pair", "verdict": "fail", "reason": "0.1 of 1.0 GB/s"}),
        Event("verdict", 3.0, "n1", {"verdict": "pass", "reasons": []}),
        Event("verdict", 3.0, "n2", {"verdict": "fail", "reasons": ["0.1 of 1.0 GB/s"]}),
        Event("handoff", 4.0, "", {"path": "/r/handoff", "hosts": ["n1"], "excluded": {"n2": {"kind": "failed"}}, "world_size": 1}),
        Event("run.end", 5.0, "", {"exit_code": 3}),
    ]


def closing(events: list[Event]) -> str:
    stream = io.StringIO()
    show_closing(console_for(stream), fold(events), Path("/r"))
    return stream.getvalue()


def test_closing_says_who_why_where_and_what_the_code_means() -> None:
    lines = closing(run_of_two()).splitlines()
    assert "n1 : ok=1 changed=1 unreachable=0 failed=0 skipped=0 rescued=0 ignored=0" in lines
    table = [line.split() for line in lines if line.startswith(("NODE", "n1  ", "n2  "))]
    assert table == [
        ["NODE", "STATUS", "CHANGED", "CHECKS", "VERDICT", "WHY"],
        ["n1", "ok", "1", "-", "pass"],
        ["n2", "ok", "0", "0/1", "fail", "0.1", "of", "1.0", "GB/s"],
    ]
    assert "handed off: n1 (world size 1); left out: n2" in lines
    assert "run folder: /r" in lines
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[-1] == "exit code 3: a verification failed or is unknown"


def test_a_killed_run_is_named() -> None:
    assert "the journal has no end" in closing(run_of_two()[:-1])


@pytest.mark.parametrize(("command", "check", "text"), [("run", False, "done"), ("run", True, "done (a rehearsal: nothing was changed)"), ("bootstrap", True, "done (a rehearsal: nothing was changed)")])
def test_done_does_not_claim_a_proof_that_was_not_made(command: str, check: bool, text: str) -> None:
    events = [Event("run.start", 1.0, "", {"command": command, "check": check}), Event("play.start", 1.0, "", {"hosts": ["n1"]}), Event("run.end", 2.0, "", {"exit_code": 0})]
    assert closing(events).splitlines()[-1] == f"exit code 0: {text}"


def test_plain_output_has_no_escape_codes_and_no_markup() -> None:
    stream = io.StringIO()
    live = Live(console_for(stream), View())
    with live:
        live(task("n1", "changed", task="mount [bold]/data[/bold] :smile:"))
    assert "\x1b" not in stream.getvalue()
    assert "[bold]/data[/bold] :smile:" in stream.getvalue()


def test_a_node_cannot_steer_the_terminal() -> None:
    lines = said(View(), task("n1", "failed", {"msg": "\x1b[2Jgone\u202e", "rc": 1, "stderr": "a\tb\x07"}))  # rich drops the bell itself
    assert "fatal: [n1]: FAILED! => \\x1b[2Jgone\\u202e (rc=1): a\tb" in lines
    assert why_shown("\x1b[2J") == "\\x1b[2J"


def why_shown(reason: str) -> str:
    stream = io.StringIO()
    console_for(stream).print(verdict_table(fold([Event("host.lost", 1.0, "n1", {"reason": reason})])))
    return stream.getvalue().split()[-1]


def test_text_that_the_terminal_cannot_encode_does_not_end_a_run() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Live(console_for(stream), View())(task("n1", "failed", {"msg": "grün \udcff"}))
    stream.flush()
    assert b"FAILED! => gr\\xfcn" in stream.buffer.getvalue()


def test_a_terminal_shows_who_is_busy() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, color_system=None)
    live = Live(console, View())
    live(Event("play.start", 1.0, "", {"play": "p", "hosts": [f"n{number}" for number in range(15)]}))
    live(START)
    live(task("n0", "ok"))
    console.print(live._table())
    text = stream.getvalue()
    assert "n1 " in text
    assert "base : install" in text
    assert "and 2 more" in text
    assert "n0 " not in text


@pytest.mark.parametrize(("refused", "lines"), [
    ({"kubernetes": {"N1": "capitals", "N2": "capitals"}, "slurm": {}}, ["not in kubernetes: N1, N2 (README.md of the handoff says why)"]),
    ({}, []), (None, []), ("x", []), ({"slurm": "x", "mpi": ["n1"]}, []),
])
def test_formats_that_miss_a_node_are_said(refused: Any, lines: list[str]) -> None:
    text = closing([Event("handoff", 4.0, "", {"path": "/r/handoff", "hosts": ["n1"], "excluded": {}, "world_size": 1, "refused": refused})])
    assert [line for line in text.splitlines() if line.startswith("not in ")] == lines


@pytest.mark.parametrize(("count", "end"), [(0, ""), (1, "n0"), (NAMES_MOST, f"n{NAMES_MOST - 1}"), (NAMES_MOST + 3, f"n{NAMES_MOST - 1} and 3 more")])
def test_long_lists_of_names_are_counted(count: int, end: str) -> None:
    assert listed([f"n{place}" for place in range(count)]).endswith(end)


def test_the_ending_of_a_thousand_nodes_fits_on_a_screen(tmp_path: Path) -> None:
    assert max(len(line.plain) for line in ending(fold(fleet(1000, checks=2, bad=40, rounds=1)), tmp_path)) < 600
