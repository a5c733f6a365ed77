"""vars_prompt: asked on a terminal before anything else, answered by -e, and never hanging where nobody can be asked."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodectl.cli.main import run

PLAY = """- hosts: all
  gather_facts: false
  vars_prompt:
    - {name: release, prompt: Which release?, private: false, default: r1}
    - {name: token, prompt: Token}
  tasks:
    - {name: shown, debug: {msg: "{{ release }} {{ token }}"}}
    - {copy: {content: "{{ release }} {{ token }}", dest: DEST}}
- hosts: all
  gather_facts: false
  vars_prompt: [{name: token, prompt: Token}]
  tasks:
    - {assert: {that: token == 'tok-en-123'}}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hosts.yaml").write_text(f"all: {{hosts: {{n1: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}}}}}\n")
    (tmp_path / "play.yml").write_text(PLAY.replace("DEST", str(tmp_path / "out")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_terminal_the_missing_answer_is_a_mistake_with_its_place(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "play.yml", "-i", "hosts.yaml"]) == 1
    said = capsys.readouterr().err
    assert "error[E410]: 'token' has to be asked for" in said
    assert "play.yml:5:8" in said
    assert "release" not in said.partition("E410")[0]
    assert not (place / ".nodectl").exists()


def test_answers_of_the_command_line_and_defaults_are_enough(place: Path) -> None:
    assert run(["run", "play.yml", "-i", "hosts.yaml", "-e", "token=tok-en-123", "--run-dir", "r"]) == 0
    assert (place / "out").read_text() == "r1 tok-en-123"
    assert "tok-en-123" not in (place / "r" / "events.jsonl").read_text()


@pytest.mark.parametrize("option", ["--list-tasks", "--syntax-check", "--list-hosts"])
def test_nobody_is_asked_for_a_listing(option: str, place: Path) -> None:
    assert run(["run", "play.yml", "-i", "hosts.yaml", option]) == 0


def answer_on_a_terminal(place: Path, keys: list[bytes]) -> tuple[int, str]:
    """Types ``keys``, each once a question stands there; the exit code and all that was seen."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "nodectl", "run", "play.yml", "-i", "hosts.yaml", "--run-dir", "r"]
    process = subprocess.Popen(words, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            seen += os.read(ours, 4096)
        except OSError:
            break
        if keys and seen.rstrip().endswith(b":"):
            os.write(ours, keys.pop(0))
            seen += b"\n"
    os.close(ours)
    return process.wait(10), seen.decode()


def test_a_person_is_asked_each_thing_once_and_a_private_answer_is_never_seen(place: Path) -> None:
    code, seen = answer_on_a_terminal(place, [b"{{ r2 }}\n", b"tok-en-123\n"])
    assert code == 0, seen
    assert seen.count("Which release?") == 1
    assert seen.count("Token") == 1
    assert (place / "out").read_text() == "{{ r2 }} tok-en-123"  # what a person types is no template
    assert "tok-en-123" not in seen + (place / "r" / "events.jsonl").read_text()
