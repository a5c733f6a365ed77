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


def test_the_answer_is_the_last_section_of_the_page(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["advise", str(past), "--workload", "12b"]) == 0
        said, page = capsys.readouterr().out, (past / "report.html").read_text("utf-8")
        assert page.count('<section id="advice"') == 1, "a second time replaces the first"
        assert page.index('<section id="advice"') > page.index('<section id="warnings"')
        assert said.splitlines()[0] in page
    assert run(["advise", str(past), "--workload", "70b"]) == 0
    page = (past / "report.html").read_text("utf-8")
    assert "70B dense" in page
    assert "12B dense" not in page


def test_a_run_that_cannot_be_written_is_answered_all_the_same(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (past / "report.html").mkdir()
    assert run(["advise", str(past), "--workload", "12b"]) == 0
    said = capsys.readouterr()
    assert "bottleneck: " in said.out
    assert "warning: the answer does not stand in the run's page: " in said.err
