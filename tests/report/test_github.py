"""Annotations for GitHub: one line per node that is not ready, and no text that starts a command of its own."""

from __future__ import annotations

import re

import pytest

from nodectl.diagnostics.render_github import workflow_command
from nodectl.report.fold import fold
from nodectl.report.github import LINES_MOST, MOST, github
from nodectl.wire.event import Event
from tests.report.fleet import fleet, names
from tests.report.test_page_browser import HOSTILE, everything, hostile_run

COMMAND = re.compile(r"^::(error|warning) title=[^:,\n\r]*::[^\n\r]*$")


def lines(events: list[Event]) -> list[str]:
    text = github(fold(events))
    assert text == "" or text.endswith("\n")
    return text.splitlines()


def test_a_clean_run_says_nothing() -> None:
    assert github(fold(fleet(4, bad=0))) == ""


def test_the_first_line_is_the_run_the_others_are_nodes_worst_first() -> None:
    found = lines(everything())
    assert found[0].startswith("::error title=nodectl::")
    assert "are not ready" in found[0]
    titles = [re.sub(r".*title=([^:]*)::.*", r"\1", line) for line in found[1:]]
    assert [title.split("%3A ")[1] for title in titles] == ["unreachable", "lost", "fail", "unknown", "skipped"]
    assert titles[0].startswith(names(6)[2])


def test_a_waived_node_is_a_warning_with_who_and_why() -> None:
    [line] = [line for line in lines(everything()) if line.startswith("::warning")]
    assert "waived by ops until 2027-01-31: the new cable is on its way" in line


def test_unknown_is_an_error() -> None:
    [line] = [line for line in lines(everything()) if "unknown::" in line]
    assert line.startswith("::error")


def test_a_run_that_was_killed_is_an_error_even_where_all_seemed_well() -> None:
    [line] = lines(fleet(2, bad=0)[:-1])
    assert "came to no end" in line


def test_many_nodes_are_counted() -> None:
    found = lines(fleet(100, bad=80))
    assert len(found) == 1 + LINES_MOST + 1
    assert f"and {80 - LINES_MOST} more nodes" in found[-1]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_stay_in_their_line(text: str) -> None:
    found = lines(hostile_run(text))
    assert len(found) == 3
    assert [line for line in found if not COMMAND.match(line)] == []


@pytest.mark.parametrize("text", ["a\n::error::owned", "a\r\n::set-output name=x::y", "a\u2028::error::b", "50 %", "::", "a,file=b::c", "%0A::error::x"])
def test_nothing_ends_the_command_early(text: str) -> None:
    [line] = workflow_command("error", text, text, {"file": text}).split("\n")
    head, title = re.fullmatch(r"::error file=([^:,]*),title=([^:,]*)::.*", line, re.DOTALL).groups()  # type: ignore[union-attr]
    assert head == title
    assert undone(title) == text
    assert undone(line.split("::", 2)[2]) == text


def undone(text: str) -> str:
    """As GitHub's runner reads it back."""
    for code, char in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, char)
    return text


@pytest.mark.parametrize(("origin", "place"), [
    ("roles/base/tasks/main.yml:12:5", "file=roles/base/tasks/main.yml,line=12,col=5,"), ("a:b,c%.yml:1:2", "file=a%3Ab%2Cc%25.yml,line=1,col=2,"), ("", ""), ("nowhere", ""), (None, ""),
])
def test_a_failed_task_is_shown_beside_its_line(origin: str | None, place: str) -> None:
    failed = Event("task.end", 2.0, "n1", {"status": "failed", "task": "install", "result": {"msg": "no space"}, "origin": origin})
    later = Event("task.end", 3.0, "n1", {"status": "failed", "task": "x", "result": {}, "origin": "later.yml:1:1"})
    events = [Event("run.start", 1.0, "", {"command": "run", "hosts": ["n1"]}), failed, Event("run.end", 4.0)]
    assert lines(events)[1] == f"::error {place}title=n1%3A failed::install: no space"
    if place:
        assert lines([*events[:2], later, events[2]])[1] == lines(events)[1]


def test_long_reasons_are_cut() -> None:
    events = [Event("run.start", 1.0, "", {"command": "verify", "hosts": ["n1"]}), Event("verdict", 1.0, "n1", {"verdict": "fail", "reasons": ["x" * 100_000]}), Event("run.end", 2.0)]
    assert max(map(len, lines(events))) < MOST + 200
