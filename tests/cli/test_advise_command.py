"""`nodectl advise` on a run's folder: text, explanation, JSON, and what is said when it cannot answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodectl.cli.main import run
from nodectl.report.journal import Journal
from tests.advise.test_measured import GROUP, SCRATCH, events, mount


@pytest.fixture
def past(tmp_path: Path) -> Path:
    folder = tmp_path / "past"
    folder.mkdir()
    journal = Journal(folder / "events.jsonl")
    for event in events(GROUP, *SCRATCH, *mount("/ckpt")):
        journal(event)
    journal.close()
    return folder


def test_text_and_explanation(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", str(past), "--workload", "12b"]) == 0
    short = capsys.readouterr().out
    assert "bottleneck: " in short
    assert "[measured: " not in short
    assert run(["advise", str(past), "--workload", "12b", "--explain"]) == 0
    long = capsys.readouterr().out
    assert long.startswith(short)
    assert "[measured: phase.checkpoint_write:/ckpt on n1]" in long


def test_json_is_json_alone(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", str(past), "--workload", "12b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["workload"] == "12B dense"


WRONG = [
    (["--workload", "13b"], "no workload '13b'", "did you mean 12b?"),
    (["--workload", "bad.yaml"], "unknown key 'layer'", "did you mean layers?"),
]


@pytest.mark.parametrize(("options", "what", "hint"), WRONG)
def test_what_cannot_be_answered(options: list[str], what: str, hint: str, past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("name: x\nmodel: {layer: 3}\n")
    assert run(["advise", str(past), *options]) == 1
    said = capsys.readouterr().err
    assert what in said
    assert hint in said
