"""`nodectl lab` where no lab is: words, refusals, and nothing started."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from nodectl.cli.commands import lab
from nodectl.cli.commands.lab import fault_words
from nodectl.cli.main import run
from nodectl.lab import faults
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import Fault

WORDS = [
    (("n2", "slow-link", "100mbit"), ("n2", "slow-link", "100mbit")),
    (("n2", "down"), ("n2", "down", "")),
    (("store-down",), ("", "store-down", "")),
]


@pytest.mark.parametrize(("words", "meaning"), WORDS)
def test_fault_words(words: tuple[str, ...], meaning: tuple[str, str, str]) -> None:
    assert fault_words(words) == meaning


@pytest.mark.parametrize("words", [("n2",), ("n2", "slow-link", "1mbit", "more"), ("store-down", "a", "b")])
def test_fault_words_that_make_no_sense(words: tuple[str, ...]) -> None:
    with pytest.raises(LabProblem, match="expected"):
        fault_words(words)


def test_faults_are_listed_with_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "fault"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(faults.kinds())
    assert any(line.startswith("HOST slow-link [rate") for line in lines)
    assert any(line.startswith("store-down ") for line in lines)


@pytest.mark.parametrize(
    "argv", [["status"], ["fault", "n1", "down"], ["lift", "n1", "down"], ["reset", "n1"]], ids=lambda argv: argv[0]
)
def test_without_a_lab_the_way_to_one_is_told(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", *argv, "--dir", str(tmp_path / "none")]) == 1
    assert f"nodectl lab up --dir {tmp_path / 'none'}" in capsys.readouterr().err


def test_down_without_a_lab_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "down", "--dir", str(tmp_path / "none")]) == 0
    assert "there is no lab" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "text"), [(["--hosts", "0"], "--hosts 0"), (["--disks", "99"], "--disks 99"), (["--name", "Bad Name"], "lab name")])
def test_up_refuses_what_no_lab_can_be(option: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "up", "--dir", str(tmp_path / "lab"), *option]) == 1
    assert text in capsys.readouterr().err
    assert not (tmp_path / "lab").exists()


@pytest.mark.parametrize(("applied", "text"), [([Fault("n1", "down")], "lifted\n"), ([Fault("n2", "down")], "was not applied; nothing to lift\n")])
def test_lift_says_whether_there_was_something_to_lift(
    applied: list[Fault], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lifted = []
    monkeypatch.setattr(lab, "running", lambda folder: SimpleNamespace(faults=applied))
    monkeypatch.setattr(faults, "lift", lambda state, host, fault: lifted.append((host, fault)))
    assert run(["lab", "lift", "n1", "down", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"n1 down: {text}"
    assert lifted == [("n1", "down")]
