"""Whatever a journal holds, and wherever it ends: it folds, it is shown, and it never reads better than it was."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from nodectl.report.fold import SEVERITY, Summary, fold
from nodectl.report.human import TaskLog, View
from nodectl.report.journal import BadJournal, Journal, JournalLost, read_journal
from nodectl.report.json import report, text
from nodectl.report.live import Live, show_closing
from nodectl.wire.event import Event

FEW = settings(deadline=None, max_examples=30)
HOSTS = ("n1", "n2", "n3")


def task(host: str, status: str, **data: Any) -> Event:
    return Event("task.end", 2.0, host, {"play": "p", "task": "t", "role": "", "module": "copy", "status": status, "result": {"msg": "m"}, "diff": [], **data})


def check(host: str, verdict: str) -> Event:
    data = {"name": "network.pairs", "verdict": verdict, "value": 1e9, "unit": "B/s", "floor": 3e7, "reason": "r", "source": "s", "simulated": False, "raw": ""}
    return Event("check", 2.5, host, data)


# What can happen to one host in a bootstrap, in its order.
LIVES: list[list[Event]] = [
    [task("H", "ok"), task("H", "changed"), check("H", "pass"), Event("verdict", 3.0, "H", {"verdict": "pass", "reasons": []})],
    [task("H", "ok"), task("H", "failed", result={"msg": "no space", "rc": 1, "stderr": "x\nfull\n"}), Event("handlers.pending", 2.1, "H", {"handlers": ["restart"]})],
    [task("H", "ignored"), task("H", "skipped"), Event("host.lost", 2.2, "H", {"reason": "no byte", "why": "lost", "hint": "look"})],
    [Event("host.unreachable", 2.0, "H", {"reason": "refused", "why": "refused", "hint": "", "task": "t"})],
    [task("H", "rescued"), Event("host.stopped", 2.3, "H", {"reason": "end_host"})],
    [task("H", "ok"), check("H", "fail"), check("H", "unknown"), Event("verdict", 3.0, "H", {"verdict": "fail", "reasons": ["network.pairs: slow"]})],
    [Event("progress", 2.0, "H", {"stage": "", "text": "50 %"}), Event("warning", 2.0, "H", {"text": "careful", "origin": "a.yml:1:2"}), task("H", "changed")],
    [Event("task.item", 2.0, "H", {"task": "t", "item": {"a": 1}, "status": "failed", "result": {"msg": "i"}, "diff": []}), task("H", "failed")],
]


def life(host: str, number: int) -> list[Event]:
    return [Event(event.kind, event.at, host, event.data) for event in LIVES[number]]


def start() -> list[Event]:
    about = {"command": "bootstrap", "argv": ["bootstrap"], "run_id": "r", "version": "0", "check": False, "diff": False, "playbook": "b.yml", "inventory": ["h"]}
    return [Event("run.start", 1.0, "", about), Event("play.start", 1.1, "", {"play": "p", "hosts": list(HOSTS)}), Event("task.start", 1.2, "", {"task": "t"})]


END = Event("run.end", 9.0, "", {"exit_code": 2, "seconds": 8.0})
FULL = [*start(), *(event for index, host in enumerate(HOSTS) for number in range(index, len(LIVES), 3) for event in life(host, number)), END]


def shown(summary: Summary) -> str:
    stream = io.StringIO()
    show_closing(Console(file=stream, width=160), summary, Path("/r"))
    return stream.getvalue()


def logged(events: list[Event], view: View) -> str:
    log = TaskLog(view)
    return "\n".join(line.plain for event in events for line in log.lines(event))


# -- order


@FEW
@given(st.lists(st.integers(0, len(LIVES) - 1), min_size=3, max_size=3), st.randoms())
def test_hosts_may_be_told_in_any_order(numbers: list[int], shuffle: random.Random) -> None:
    """Threads of hosts meet at one lock: only each host's own order is fixed."""
    lives = {host: life(host, number) for host, number in zip(HOSTS, numbers, strict=True)}
    one_by_one = [event for host in HOSTS for event in lives[host]]
    left = {host: list(events) for host, events in lives.items()}
    mixed = []
    while any(left.values()):
        host = shuffle.choice([name for name, events in left.items() if events])
        mixed.append(left[host].pop(0))
    one, other = report(fold([*start(), *mixed, END])), report(fold([*start(), *one_by_one, END]))
    assert sorted(one.pop("warnings")) == sorted(other.pop("warnings"))
    assert one == other


@FEW
@given(st.lists(st.integers(0, len(LIVES) - 1), min_size=1, max_size=4))
def test_no_event_makes_a_status_better(numbers: list[int]) -> None:
    events = [*start(), *(event for number in numbers for event in life("n1", number))]
    worst = 0
    for end in range(len(events) + 1):
        status = fold(events[:end]).hosts.get("n1")
        severity = SEVERITY[status.status] if status else 0
        assert severity >= worst
        worst = severity


@FEW
@given(st.lists(st.builds(Event, st.text(max_size=9).map(lambda word: f"new.{word}"), st.just(2.0), st.sampled_from([*HOSTS, "n9", ""])), max_size=6), st.randoms())
def test_kinds_of_a_later_version_change_nothing(strangers: list[Event], shuffle: random.Random) -> None:
    events = list(FULL)
    for stranger in strangers:
        events.insert(shuffle.randrange(3, len(events)), stranger)
    assert report(fold(events)) == report(fold(FULL))
    assert logged(events, View(2, True)) == logged(FULL, View(2, True))


# -- ends


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    journal = Journal(path)
    for event in FULL:
        journal(event)
    journal.close()
    return path.read_bytes()


@pytest.mark.parametrize("part", range(8))
def test_a_journal_cut_anywhere_folds_to_what_was_written_until_then(part: int, whole: bytes, tmp_path: Path) -> None:
    """Every other byte of the file is tried, a sixteenth of them per case."""
    path = tmp_path / "events.jsonl"
    for length in range(part, len(whole), 16):
        path.write_bytes(whole[:length])
        events = read_journal(path)
        # A line without its newline counts only when it is whole.
        lines = whole[:length].count(b"\n")
        assert len(events) in (lines, lines + 1)
        assert events == FULL[: len(events)]
        summary = fold(events)
        assert summary.complete is (len(events) == len(FULL))
        assert summary.exit_code != 0 or not events or events[-1].kind in ("run.start",), length


@pytest.mark.parametrize("length", [0, 1, 40, 400, 900, 1500, -2])
def test_a_cut_journal_says_that_it_has_no_end(length: int, whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(whole[:length])
    assert "the journal has no end" in shown(fold(read_journal(tmp_path / "j")))


@FEW
@given(st.binary(min_size=1, max_size=60), st.integers(0, 200))
def test_bytes_in_the_middle_are_read_or_named(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    path = tmp_path_factory.mktemp("j") / "events.jsonl"
    whole = b'{"kind":"run.start","at":1,"host":"","command":"run"}\n' * 4
    path.write_bytes(whole[:place] + noise + whole[place:])
    with contextlib.suppress(BadJournal):
        shown(fold(read_journal(path)))


BAD_LINES = [
    "[]", "{}", "3", '"text"', "null", "true", '{"kind": "x"}', '{"kind": "x", "at": 1}', '{"kind": "x", "at": "soon", "host": ""}', '{"kind": "x", "at": null, "host": ""}',
    '{"kind": "x", "at": -1, "host": ""}', '{"kind": "x", "at": NaN, "host": ""}', '{"kind": "x", "at": Infinity, "host": ""}', '{"kind": "x", "at": 1e300, "host": ""}',
    '{"kind": "x", "at": [], "host": ""}', "[" * 5000, '{"kind": "x", "at": 253402300800, "host": ""}', '{"at": 1, "host": ""}', "{'kind': 'x'}",
]


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:50])
def test_a_line_that_is_no_event_is_named(line: str, tmp_path: Path) -> None:
    good = '{"kind":"a","at":1,"host":""}\n'
    (tmp_path / "j").write_text(f"{good}{line}\n{good}")
    with pytest.raises(BadJournal, match=r"j:2: not an event of nodectl"):
        read_journal(tmp_path / "j")


def test_blank_lines_are_no_events(tmp_path: Path) -> None:
    good = '{"kind":"a","at":1,"host":""}\n'
    (tmp_path / "j").write_text(f"\n{good}  \n\n{good}\n")
    assert len(read_journal(tmp_path / "j")) == 2


def test_nothing_is_written_behind_half_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room that comes back after a full disk: one more line would make the whole journal unreadable."""
    plain = os.write
    journal = Journal(tmp_path / "j")
    journal(Event("a", 1.0))

    def full(file: int, data: bytes) -> int:
        if len(data) < 10:
            raise OSError(28, "No space left on device")
        return plain(file, data[:-9])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalLost, match="No space left"):
        journal(Event("b", 2.0))
    monkeypatch.setattr(os, "write", plain)
    with pytest.raises(JournalLost, match="was cut off"):
        journal(Event("c", 3.0))
    journal.close()
    assert [event.kind for event in read_journal(tmp_path / "j")] == ["a"]


# -- values

ODD: list[Any] = [None, True, -1, 1e300, "", "x:y:\u00b2", [], [None, "x", {"x": 1}], {}, {"msg": [1], "results": 3, "rc": "x", "stderr": {}, "changed": None, "before": 1, "after": None}]
MORE = [
    Event("handoff", 4.0, "", {"path": "h", "hosts": ["n1"], "excluded": {"n2": {"kind": "failed"}}, "world_size": 1}),
    task("n1", "ok", include=True, result={"results": [{"skipped": True}]}),
    task("n1", "failed", diff=[{"before": "a", "after": "b", "before_header": "x", "after_header": "y"}], origin="a.yml:1:2", result={"results": [{"failed": True, "msg": "x"}]}),
    Event("progress", 2.0, "", {"stage": "verify", "text": "x"}),
]
# Each kind once, with every key it has.
KINDS = list({(event.kind, tuple(event.data)): event for event in [*FULL, *MORE]}.values())


@pytest.mark.parametrize("event", KINDS, ids=lambda event: f"{event.kind} {len(event.data)}")
def test_any_value_of_any_key_is_told_somehow(event: Event) -> None:
    """A journal of another version, or one that somebody edited: shown as far as it can be read, never a crash."""
    for key in event.data:
        for value in ODD:
            odd = Event(event.kind, event.at, event.host, {**event.data, key: value})
            events = [*start(), *(life("n2", 0)), odd, END]
            summary = fold(events)
            json.loads(text(summary))
            assert "n2" in shown(summary)
            logged(events, View(2, True))
            live = Live(Console(file=io.StringIO(), width=100), View(1))
            live(odd)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**5000, {1: 2}, {(1, 2): 3}, {"a": {None: float("nan")}}, b"x", object(), {"x"}, Path("/x")], ids=lambda value: type(value).__name__)
def test_what_json_cannot_hold_becomes_text_and_ends_nothing(value: Any, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal(Event("task.end", 1.0, "n1", {"result": {"value": value, "beside": 1}}))
    journal.close()

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    json.loads((tmp_path / "j").read_text(), parse_constant=refuse)
    (event,) = read_journal(tmp_path / "j")
    assert event.data["result"]["beside"] == 1


def test_a_value_without_bottom_is_cut(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    deep["deep"] = deep
    journal = Journal(tmp_path / "j")
    journal(Event("x", 1.0, "", {"value": deep}))
    journal.close()
    assert "nested too deep" in (tmp_path / "j").read_text()


def test_a_journal_of_an_older_version_with_nan_is_still_read(tmp_path: Path) -> None:
    (tmp_path / "j").write_text('{"kind":"check","at":1,"host":"n1","name":"x","verdict":"fail","value":NaN,"simulated":false}\n')
    (event,) = read_journal(tmp_path / "j")
    assert event.data["value"] == "NaN"
