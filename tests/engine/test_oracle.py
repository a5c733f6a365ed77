"""The same playbooks through real ansible-playbook: same results in the same order on every host, same recap, same exit class."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.engine.playing import INVENTORY, Case, cases, write_tree

COMPARED = [case for case in cases() if case.data.get("oracle", True)]
# All cases together take about 12 s on two free cores; a busy machine may need several times that.
DEADLINE = 240
ORACLE = Path(__file__).parent / "oracle"


class Answer(NamedTuple):
    results: dict[str, list[str]]
    stats: dict[str, dict[str, int]]
    exit_code: int
    text: str


def prepare(case: Case, folder: Path) -> None:
    write_tree(folder, {"site.yml": case.data["playbook"], "hosts": case.data.get("inventory", INVENTORY), **case.data.get("files", {})})


def read_answer(folder: Path) -> Answer:
    """What ansible-playbook did with the case in ``folder``."""
    out = folder / "sequence.jsonl"
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.read_text("utf-8").splitlines()] if out.exists() else []
    results: dict[str, list[str]] = {}
    for line in lines:
        if "task" in line:
            results.setdefault(line["host"], []).append(f"{line['task']}: {line['status']}")
    stats = {line["host"]: line["stats"] for line in lines if "stats" in line}
    return Answer(results, stats, int((folder / "exit_code").read_text()), (folder / "output.txt").read_text("utf-8"))


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """All cases in one process of ansible and its forks."""
    home = tmp_path_factory.mktemp("ansible")
    (home / "ansible.cfg").write_text("")
    folders = {case.name: tmp_path_factory.mktemp(case.name) for case in COMPARED}
    for case in COMPARED:
        prepare(case, folders[case.name])
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", "ANSIBLE_CALLBACKS_ENABLED": "sequence", "ANSIBLE_FORKS": "2",
        "ANSIBLE_CALLBACK_PLUGINS": str(ORACLE), "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_CONFIG": str(home / "ansible.cfg"),
    }  # fmt: skip
    asked = json.dumps([[str(folders[case.name]), case.arguments] for case in COMPARED])
    subprocess.run([sys.executable, str(ORACLE / "drive.py")], env=environment, input=asked, text=True, timeout=DEADLINE, check=True)
    return {name: read_answer(folder) for name, folder in folders.items()}


def test_enough_is_compared() -> None:
    assert len(COMPARED) >= 12


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_same_as_ansible(case: Case, answers: dict[str, Answer], tmp_path: Path) -> None:
    answer = answers[case.name]
    played = case.play(tmp_path)
    ours = {host: [line.replace(": rescued", ": failed") for line in played.of(host)] for host in played.result.status}
    theirs = {host: answer.results.get(host, []) for host in ours}
    assert ours == theirs, answer.text
    assert (played.result.exit_code == 0) == (answer.exit_code == 0), answer.text
    if case.data.get("stats", True):
        counted = ("ok", "changed", "failed", "skipped", "rescued", "ignored")
        assert {h: {k: s[k] for k in counted} for h, s in played.stats().items()} == {h: {k: s[k] for k in counted} for h, s in answer.stats.items()}
