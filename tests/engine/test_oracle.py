"""The same playbooks through real ansible-playbook: same results in the same order on every host, same recap, same exit class."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.engine.playing import INVENTORY, Case, cases, write_tree
from tests.engine.test_cases import listed

COMPARED = [case for case in cases() if case.data.get("oracle", True)]
# ansible-playbook takes 2 to 5 s per case on a busy machine.
DEADLINE = 90


class Answer(NamedTuple):
    results: dict[str, list[str]]
    stats: dict[str, dict[str, int]]
    exit_code: int
    text: str


def ask(case: Case, folder: Path) -> Answer:
    """What ansible-playbook does with the case."""
    write_tree(folder, {"site.yml": case.data["playbook"], "hosts": case.data.get("inventory", INVENTORY), **case.data.get("files", {})})
    out = folder / "sequence.jsonl"
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "NODECTL_ORACLE_OUT": str(out), "ANSIBLE_CALLBACKS_ENABLED": "sequence",
        "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "oracle"), "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_CONFIG": os.devnull, "ANSIBLE_FORKS": "2",
    }  # fmt: skip
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts", "site.yml", *case.arguments]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False)
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.read_text("utf-8").splitlines()] if out.exists() else []
    results: dict[str, list[str]] = {}
    for line in lines:
        if "task" in line:
            results.setdefault(line["host"], []).append(f"{line['task']}: {line['status']}")
    return Answer(results, {line["host"]: line["stats"] for line in lines if "stats" in line}, done.returncode, done.stdout + done.stderr)


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """All cases at once, two processes at a time."""
    folders = {case.name: tmp_path_factory.mktemp(case.name) for case in COMPARED}
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda case: ask(case, folders[case.name]), COMPARED)
        return dict(zip(folders, found, strict=True))


def test_enough_is_compared() -> None:
    assert len(COMPARED) >= 12


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_same_as_ansible(case: Case, answers: dict[str, Answer], tmp_path: Path) -> None:
    answer = answers[case.name]
    played = case.play(tmp_path)
    ours = {host: [line.replace(": rescued", ": failed") for line in listed(played, host)] for host in played.result.status}
    theirs = {host: answer.results.get(host, []) for host in ours}
    assert ours == theirs, answer.text
    assert (played.result.exit_code == 0) == (answer.exit_code == 0), answer.text
    if case.data.get("stats", True):
        counted = ("ok", "changed", "failed", "skipped", "rescued", "ignored")
        assert {h: {k: s[k] for k in counted} for h, s in played.stats().items()} == {h: {k: s[k] for k in counted} for h, s in answer.stats.items()}
