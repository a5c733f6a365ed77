"""Exit codes and texts at the outermost edge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from nodectl.cli.exit_codes import code_of
from nodectl.cli.hide import hidden_argv
from nodectl.cli.main import COMMANDS, cli, run
from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.report.exit_code import ExitCode
from nodectl.wire.origin import Origin


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli, "main", broken)


CODES: list[tuple[BaseException, ExitCode]] = [
    (Mistakes([Diagnostic("x", "wrong")]), ExitCode.INPUT_WRONG),
    (click.UsageError("no such option"), ExitCode.INPUT_WRONG),
    (click.Abort(), ExitCode.INTERRUPTED),
    (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    (ValueError("nobody foresaw this"), ExitCode.BUG),
    (OSError(5, "I/O error"), ExitCode.BUG),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=[type(error).__name__ for error, _ in CODES])
def test_every_exception_has_its_code(error: BaseException, code: ExitCode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    fail_with(monkeypatch, error)
    assert run([]) == code == code_of(error)


def test_a_bug_is_told_in_one_sentence_and_the_rest_is_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    fail_with(monkeypatch, ValueError("nobody foresaw this"))
    assert run(["run", "-e", "password=hunter22"]) == 70
    text = capsys.readouterr().err
    assert "nodectl has a bug: ValueError: nobody foresaw this" in text
    assert "Traceback" not in text
    [log] = (tmp_path / ".nodectl").glob("crash-*.txt")
    assert str(log.relative_to(tmp_path)) in text
    content = log.read_text()
    assert "Traceback" in content
    assert "password=********" in content
    assert "hunter22" not in content
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_crash_log_finds_a_place_where_the_folder_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".nodectl").write_text("a file stands where the folder should be")
    fail_with(monkeypatch, ValueError("x"))
    assert run([]) == 70
    path = next(word for word in capsys.readouterr().err.split() if word.endswith(".txt"))
    assert Path(path).exists()
    Path(path).unlink()


WRONG = [
    (["nonsense"], "nonsense"),
    (["run"], "Missing argument"),
    (["run", "x.yml", "-i", "h", "--nonsense"], "--nonsense"),
    (["report", "/no/such/folder"], "does not exist"),
    (["bootstrap"], "Missing argument"),
    (["inventory", "-i", "n1,", "--list", "--graph"], "exclude each other"),
    (["doc", "comand"], "did you mean 'command'?"),
]


@pytest.mark.parametrize(("argv", "text"), WRONG, ids=[" ".join(argv) for argv, _ in WRONG])
def test_a_wrong_command_line_is_input_and_not_a_failed_task(argv: Sequence[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["--version"], [], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_is_there_for_everything(argv: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == (0 if argv else 1)
    out = capsys.readouterr()
    assert "nodectl" in out.out + out.err


@pytest.mark.parametrize("form", ["human", "json", "github"])
def test_mistakes_in_every_format(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {n1: {}}}\n")
    (tmp_path / "play.yml").write_text("- hosts: gpus\n  tasks:\n    - comand: x\n")
    assert run(["check", str(tmp_path / "play.yml"), "-i", str(tmp_path / "hosts.yaml"), "--format", form]) == 1
    out = capsys.readouterr()
    text = out.err if form == "human" else out.out
    if form == "json":
        json.loads(text)
    assert "gpus" in text
    assert "comand" in text
    if form == "human":
        assert f"{tmp_path}/play.yml:1:" in text
        assert "no node was touched" in text


HIDDEN = [
    (["run", "-e", "a=b"], ["run", "-e", "a=********"]),
    (["-e", "@file.yml"], ["-e", "@file.yml"]),
    (["-e", '{"a": "b"}'], ["-e", "********"]),
    (["-ea=b"], ["-ea=********"]),
    (["--extra-vars=a=b c=d"], ["--extra-vars=a=********"]),
    (["--extra-vars", "just words"], ["--extra-vars", "********"]),
    (["-i", "a=b"], ["-i", "a=b"]),
]


@pytest.mark.parametrize(("argv", "shown"), HIDDEN)
def test_values_of_extra_vars_are_not_written_down(argv: list[str], shown: list[str]) -> None:
    assert hidden_argv(argv) == shown


def test_importing_the_command_line_loads_no_heavy_library() -> None:
    code = "import sys; import nodectl.cli.main; print([m for m in ('torch', 'paramiko', 'jinja2', 'fabric') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_as_interrupted_with_a_whole_journal(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(f"all: {{hosts: {{here: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}}}}}\n")
    (tmp_path / "play.yml").write_text("- hosts: all\n  gather_facts: false\n  tasks:\n    - command: sleep 30\n")
    argv = [sys.executable, "-c", "from nodectl.cli.main import main; main()", "run", "play.yml", "-i", "hosts.yaml", "--run-dir", "r"]
    process = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    journal = tmp_path / "r" / "events.jsonl"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not (journal.exists() and b"task.start" in journal.read_bytes()):
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, (out, err)
    assert b"interrupted" in err
    last = json.loads(journal.read_text().splitlines()[-1])
    assert (last["kind"], last["exit_code"]) == ("run.end", 130)
    assert json.loads((tmp_path / "r" / "report.json").read_text())["exit_code"] == 130


def test_origin_of_a_mistake_is_shown_as_editors_want_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yml").write_text("a: b\n")
    fail_with(monkeypatch, Mistakes([Diagnostic("x", "wrong", Origin(str(tmp_path / "x.yml"), 1, 4))]))
    run([])
    assert f"{tmp_path}/x.yml:1:4" in capsys.readouterr().err
