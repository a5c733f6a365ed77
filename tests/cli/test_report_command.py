"""nodectl report, and what a run leaves beside its journal however it ends."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from nodectl.cli.main import run
from nodectl.cli.session import Session
from nodectl.report import files
from nodectl.report.fold import Summary
from nodectl.report.human import View
from nodectl.report.journal import Journal, JournalLost
from nodectl.transport.channel import Limits
from nodectl.wire.event import Event
from nodectl.wire.secret import MASK, Secret
from tests.report.fleet import fleet

FILES = ("report.json", "report.html", "junit.xml", "annotations.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return record(tmp_path / "r", fleet(4, bad=1))


def record(folder: Path, events: list[Event]) -> Path:
    folder.mkdir()
    journal = Journal(folder / "events.jsonl")
    for event in events:
        journal(event)
    journal.close()
    return folder


def session(folder: Path, *secrets: Secret, **about: Any) -> Session:
    folder.mkdir()
    return Session(folder, Limits(), View(), secrets, **{"command": "verify", "hosts": ["n1", "n2"], **about})


# -- the command

FORMATS = [("json", '"verdict": "fail"'), ("html", "<!doctype html>"), ("junit", "<testsuites "), ("github", "::error title=nodectl::1 of 4 nodes is not ready")]


@pytest.mark.parametrize(("shape", "words"), FORMATS)
def test_formats_are_printed_or_written(shape: str, words: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(folder), "--format", shape]) == 0
    printed = capsys.readouterr().out
    assert words in printed
    out = tmp_path / "out"
    assert run(["report", str(folder), "--format", shape, "--out", str(out)]) == 0
    assert out.read_text() == printed
    assert capsys.readouterr().out == ""


def test_human_is_the_closing_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(folder)]) == 0
    assert "exit code 3" in capsys.readouterr().out


def test_json_is_still_an_option_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] == 3


def test_two_runs(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = record(tmp_path / "before", fleet(4, bad=0))
    assert run(["report", str(before), str(folder)]) == 0
    assert "network.pairs: pass -> fail" in capsys.readouterr().out
    assert run(["report", str(before), str(folder), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["kind"] == "verdict"
    assert run(["report", str(before), str(folder), "--format", "html"]) == 0
    assert "Compared with an earlier run" in capsys.readouterr().out
    assert run(["report", str(before), str(folder), "--noise", "95", "--format", "json"]) == 0
    assert {change["kind"] for change in json.loads(capsys.readouterr().out)["changes"]} == {"verdict"}


@pytest.mark.parametrize(("argv", "words"), [
    (["--out", "x"], "the closing table is not written to a file"),
    (["{}", "--format", "junit"], "two runs are not compared as junit"),
    (["{}", "--format", "github"], "two runs are not compared as github"),
    (["--format", "pdf"], "'pdf' is not one of"),
    (["--format", "json", "--out", "/no/such/folder/x"], "cannot be written"),
    (["{}", "--noise", "-1"], "-1"),
])
def test_what_does_not_go_is_said(argv: list[str], words: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["report", str(folder), *(word.format(folder) for word in argv)]) == 1
    assert words in capsys.readouterr().err


# -- what a run leaves


def test_a_run_leaves_all_files_for_its_owner_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with session(tmp_path / "r") as running:
        running.tell("check", "n1", name="gpu.ecc", verdict="fail", reason="measured 3, expected 0", simulated=False)
        running.tell("verdict", "n1", verdict="fail", reasons=["gpu.ecc: measured 3, expected 0"])
    for name in FILES:
        assert stat.S_IMODE((tmp_path / "r" / name).stat().st_mode) == 0o600
    assert "gpu.ecc: measured 3" in (tmp_path / "r" / "report.html").read_text()
    assert f"report:     {tmp_path / 'r' / 'report.html'}" in capsys.readouterr().out
    assert not list((tmp_path / "r").glob("*.part"))


@pytest.mark.parametrize(("error", "headline"), [(KeyboardInterrupt(), "2 of 2 nodes are not ready"), (RuntimeError("our bug"), "2 of 2 nodes are not ready")])
def test_however_it_ends_what_is_known_is_reported(error: BaseException, headline: str, tmp_path: Path) -> None:
    def broken_off() -> None:
        with session(tmp_path / "r") as running:
            running.tell("check", "n1", name="gpu.ecc", verdict="pass", reason="measured 0", simulated=False)
            raise error

    with pytest.raises(type(error)):
        broken_off()
    text = (tmp_path / "r" / "report.html").read_text()
    assert headline in text
    assert "the run ended before its time" in text
    assert "gpu.ecc" in text
    suites = ElementTree.parse(tmp_path / "r" / "junit.xml").getroot()
    assert suites.get("errors") == "2"
    assert "n1%3A stopped" in (tmp_path / "r" / "annotations.txt").read_text()


def test_a_bug_in_the_page_takes_neither_report_json_nor_the_closing_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(summary: Summary) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(files, "page", broken)
    with pytest.raises(ZeroDivisionError), session(tmp_path / "r"):
        pass
    assert json.loads((tmp_path / "r" / "report.json").read_text())["complete"] is True
    assert (tmp_path / "r" / "junit.xml").exists()
    assert "exit code" in capsys.readouterr().out


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(JournalLost, match=r"report\.html cannot be written"), session(tmp_path / "r"):
        (tmp_path / "r" / "report.html").mkdir()
    assert (tmp_path / "r" / "report.json").exists()


# Forms in which a program may repeat a secret: plain, in JSON, quoted for a shell, in a URL.
FORMS = ["{}", '{{"password": "{}"}}', "curl https://user:{}@host/", "line\n{}\nline"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", ["Hunter-2a", 'qu"o\\te<d>', "pass word&more", "4711471147"])
def test_no_secret_reaches_any_of_the_files(secret: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = form.format(secret)
    with session(tmp_path / "r", Secret(secret)) as running:
        running.tell("suite", name=said, text=said, floors=[])
        running.tell("check", "n1", name=said, verdict="fail", reason=said, value=said, floor=said, unit="text", source=said, simulated=False, raw=said, step=said,
                     waiver={"who": said, "why": said, "until": said})
        running.tell("check", "n2", name="x", verdict="skipped", reason=said, simulated=False, waiver={"who": said, "why": said})
        running.tell("pair", hosts=["n1", "n2"], rail=said, tool=said, bytes=1, value=None, unit="B/s", round=1, error=said)
        running.tell("sweep", hosts=["n1"], op=said, dtype=said, rows=[{"bytes": 1, "busbw": 1.0}], source=said)
        running.tell("verdict", "n1", verdict="fail", reasons=[said])
        running.tell("warning", text=said)
        running.tell("host.lost", "n2", reason=said, hint=said)
    for name in ("events.jsonl", *FILES):
        text = (tmp_path / "r" / name).read_text()
        assert MASK in text or name == "report.json"
        for leaked in (secret, json.dumps(secret)[1:-1], secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")):
            assert leaked not in text, name
    assert secret not in capsys.readouterr().out


def test_a_run_of_the_past_is_shown_without_its_nodes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The journal alone is enough: no network, no inventory, a year later."""
    for path in folder.iterdir():
        assert path.name == "events.jsonl"
    started = time.monotonic()
    assert run(["report", str(folder), "--format", "html"]) == 0
    assert time.monotonic() - started < 20
    assert "gpu-0000.rack1" in capsys.readouterr().out
