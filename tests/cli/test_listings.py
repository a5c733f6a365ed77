"""--list-tasks and its like, and what a check that finds nothing answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodectl.cli.main import run

PLAY = """\
- hosts: gpu
  tags: [play]
  gather_facts: false
  tasks:
    - {name: one, command: echo, tags: [x]}
    - {name: two, command: echo, tags: [y]}
    - {name: three, command: echo}
    - {name: hidden, command: echo, tags: [never, z]}
    - {name: kept, command: echo, tags: [always]}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hosts.yaml").write_text("all: {children: {gpu: {hosts: {n1: {}, n2: {}}}}}\n")
    (tmp_path / "play.yml").write_text(PLAY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# As ansible-playbook --list-tasks of ansible-core 2.19 lists this play.
SELECTED = [
    ([], ["one", "two", "three", "kept"]),
    (["--tags", "x"], ["one", "kept"]),
    (["--tags", "x,y"], ["one", "two", "kept"]),
    (["--tags", "z"], ["hidden", "kept"]),
    (["--tags", "play"], ["one", "two", "three", "hidden", "kept"]),
    (["--skip-tags", "y"], ["one", "three", "kept"]),
    (["--tags", "x", "--skip-tags", "always"], ["one"]),
]


@pytest.mark.parametrize(("option", "names"), SELECTED, ids=" ".join)
@pytest.mark.parametrize("argv", [["run", "play.yml", "-i", "hosts.yaml"], ["bootstrap", "hosts.yaml", "--playbook", "play.yml"]], ids=["run", "bootstrap"])
def test_only_selected_tasks_are_listed(argv: list[str], option: list[str], names: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*argv, "--list-tasks", *option]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("play #1 (gpu)")
    assert [line.split()[0] for line in lines] == names
    assert not (place / ".nodectl").exists()


@pytest.mark.parametrize(("option", "text"), [("--list-hosts", "  hosts (1):\n    n2"), ("--syntax-check", "bootstrap.yml: no mistakes found"), ("--list-tasks", "play #1")])
def test_bootstrap_lists_and_touches_nothing(option: str, text: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bootstrap", "hosts.yaml", "-l", "n2", option]) == 0
    assert text in capsys.readouterr().out
    assert not (place / ".nodectl").exists()


WARNED = PLAY + "    - {command: echo, when: '{{ x }}'}\n"


@pytest.mark.parametrize(("play", "codes"), [(PLAY, []), (WARNED, ["E214"])], ids=["clean", "warned"])
def test_a_check_without_mistakes_answers_in_the_wanted_form(play: str, codes: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "play.yml").write_text(play)
    argv = ["check", "play.yml", "-i", "hosts.yaml", "--format"]
    assert run([*argv, "json"]) == 0
    assert [one["code"] for one in json.loads(capsys.readouterr().out)["diagnostics"]] == codes
    assert run([*argv, "github"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::warning"] * len(codes)
    assert run([*argv, "human"]) == 0
    told = capsys.readouterr()
    assert told.out == "play.yml: no mistakes found\n"
    assert ("E214" in told.err) == bool(codes)
