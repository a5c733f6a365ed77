"""`nodectl handoff` on runs that came to verify nodes, and on those that did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.cli.main import run
from nodectl.report.journal import Journal
from nodectl.wire.event import Event
from tests.handoff.pool_events import node, waived

TASK = Event("task.end", 2.0, "n1", {"task": "t", "status": "ok"})
RUNS: list[tuple[dict[str, Any], list[Event], str]] = [
    ({"command": "run"}, [TASK], "this run verified nothing: it was `nodectl run`"),
    ({"command": "bootstrap", "check": True}, [TASK], "this run verified nothing: it was a rehearsal (--check)"),
    ({"command": "bootstrap"}, [TASK], "or ended before it came to that"),
]


def journal_of(folder: Path, start: dict[str, Any], events: list[Event]) -> None:
    folder.mkdir()
    journal = Journal(folder / "events.jsonl")
    for event in (Event("run.start", 1.0, "", {"run_id": "r", **start}), Event("play.start", 1.0, "", {"play": "p", "hosts": ["n1"]}), *events):
        journal(event)
    journal.close()


@pytest.mark.parametrize(("start", "events", "text"), RUNS)
@pytest.mark.parametrize("option", [[], ["--out", "out"]])
def test_a_run_that_verified_nothing_is_no_handoff(
    option: list[str], start: dict[str, Any], events: list[Event], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    journal_of(tmp_path / "past", start, events)
    assert run(["handoff", "past", *option]) == 1
    assert text in capsys.readouterr().err
    assert {path.name for path in tmp_path.rglob("*")} == {"past", "events.jsonl"}


VERIFIED = [
    Event("verdict", 3.0, "n1", {"verdict": "fail", "reasons": ["slow"]}),
    # All nodes were away before the verification: the bootstrap itself handed off nobody.
    Event("handoff", 3.0, "", {"path": "x", "hosts": [], "excluded": {}, "world_size": 0}),
]


@pytest.mark.parametrize("event", VERIFIED, ids=lambda event: event.kind)
def test_a_run_that_handed_off_nobody_can_be_written_anew(event: Event, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal_of(tmp_path / "past", {"command": "bootstrap"}, [event])
    assert run(["handoff", str(tmp_path / "past")]) == 0
    assert "handed off: no node" in capsys.readouterr().out
    assert (tmp_path / "past" / "handoff" / "excluded.json").exists()


# --format; exit code; words that are shown
CHOICES: list[tuple[str, int, list[str]]] = [
    ("slurm", 0, ["handed off: no node"]), ("slurm, kubernetes", 0, ["README.md"]), ("slrum", 1, ["'slrum': expected some of torchrun, mpi", "Did you mean slurm?"]),
    ("", 1, ["''"]), ("slurm,,mpi", 1, ["''"]), ("zzz", 1, ["'zzz'"]),
]


@pytest.mark.parametrize(("names", "code", "words"), CHOICES)
def test_formats(names: str, code: int, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal_of(tmp_path / "past", {"command": "verify"}, [VERIFIED[0]])
    assert run(["handoff", str(tmp_path / "past"), "--format", names]) == code
    shown = capsys.readouterr()
    assert [word for word in words if word not in shown.out + shown.err] == []
    assert (tmp_path / "past" / "handoff" / "slurm" / "apply.sh").exists() is (code == 0)
    assert not (tmp_path / "past" / "handoff" / "torchrun.sh").exists()


def test_who_is_waived_and_who_a_format_cannot_express_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [node("N1"), waived("N1"), Event("verdict", 3.0, "N1", {"verdict": "skipped", "reasons": []})]
    journal_of(tmp_path / "past", {"command": "verify"}, events)
    assert run(["handoff", str(tmp_path / "past")]) == 0
    shown = capsys.readouterr().out
    assert "of these with a waiver: N1\n" in shown
    assert "not in kubernetes: N1: 'N1' is not a node name of Kubernetes" in shown


def test_what_changed_since_an_earlier_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passed = Event("verdict", 3.0, "n1", {"verdict": "pass", "reasons": []})
    journal_of(tmp_path / "old", {"command": "verify"}, [node("n1"), passed])
    journal_of(tmp_path / "new", {"command": "verify"}, [node("n1"), VERIFIED[0]])
    assert run(["handoff", str(tmp_path / "new"), "--since", str(tmp_path / "old"), "--format", "slurm,skypilot"]) == 0
    assert capsys.readouterr().out == "# out: n1: failed: slow\nscontrol update NodeName=n1 State=DRAIN 'Reason=nodectl: failed: slow'\n"
    assert not (tmp_path / "new" / "handoff").exists()
    assert run(["handoff", str(tmp_path / "new"), "--since", str(tmp_path / "old"), "--out", "x"]) == 1
    journal_of(tmp_path / "none", {"command": "run"}, [])
    assert run(["handoff", str(tmp_path / "new"), "--since", str(tmp_path / "none")]) == 1
    assert "this run verified nothing" in capsys.readouterr().err
