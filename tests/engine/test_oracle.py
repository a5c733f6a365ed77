"""The same playbooks through real ansible-playbook: same results in the same order on every host, same recap, same exit class.

Ansible's answers are kept in oracle/answers.json, each with a digest of its question, so that a changed case asks again:
`python -m tests.engine.test_oracle` records them, with `--all` every one anew. Every tenth is asked anew in every run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import ansible_forks
from tests.engine.playing import Case, cases, write_tree
from tests.engine.questions import PAIRS, PLACES, WAYS, made_cases, name_of

ORACLE = Path(__file__).parent / "oracle"
RECORDED = ORACLE / "answers.json"
# Cases whose only expectation is what Ansible does, values included.
SAME = Path(__file__).parent / "same"
COMPARED = [*(case for case in cases() if case.data.get("oracle", True)), *cases(SAME), *(Case(name, data) for name, data in made_cases())]
# Of what is recorded: another one asks all questions again.
VERSION = 3
# Asked anew every time: every tenth by name. `record(all_of_them=True)` asks all.
LIVE = tuple(sorted(case.name for case in COMPARED)[::10])
# All cases together take about 90 s on two free cores; a busy machine may need several times that.
DEADLINE = 600

Answer = dict[str, Any]


def digest(case: Case) -> str:
    """Of everything that Ansible sees of a case."""
    question = [VERSION, case.data["playbook"], case.data["inventory"], case.data.get("files", {}), case.arguments]
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:16]


def ask(asked: Sequence[Case], folder: Path) -> dict[str, Answer]:
    """What ansible-playbook does with these cases, in one process and its forks."""
    (folder / "ansible.cfg").write_text("")
    for case in asked:
        write_tree(folder / case.name, {"site.yml": case.data["playbook"], "hosts": case.data["inventory"], **case.data.get("files", {})})
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "ANSIBLE_CALLBACKS_ENABLED": "sequence", "ANSIBLE_FORKS": "2",
        "ANSIBLE_CALLBACK_PLUGINS": str(ORACLE), "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"), "ANSIBLE_ASYNC_DIR": str(folder / "async"),
    }  # fmt: skip
    ansible_forks.ask("playbook", [(str(folder / case.name), case.arguments) for case in asked], environment, DEADLINE)
    silent = [f"{case.name}: {(folder / case.name / 'output.txt').read_text()}" for case in asked if not (folder / case.name / "sequence.jsonl").exists()]
    assert not silent, "ansible-playbook ran nothing: " + "\n".join(silent)
    return {case.name: {"digest": digest(case), **read_answer(folder / case.name)} for case in asked}


def read_answer(folder: Path) -> Answer:
    out = folder / "sequence.jsonl"
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    results: dict[str, list[str]] = {}
    shown: dict[str, list[list[Any]]] = {}
    for line in lines:
        if "task" in line:
            results.setdefault(line["host"], []).append(f"{line['task']}: {line['status']}")
        if "shown" in line:
            shown.setdefault(line["host"], []).append([line["task"], replaced(line["shown"], str(folder))])
    return {"results": results, "shown": shown, "stats": {line["host"]: line["stats"] for line in lines if "stats" in line}, "exit_code": int((folder / "exit_code").read_text())}


def replaced(value: Any, folder: str) -> Any:
    """Without the name of the folder that a case happened to run in."""
    return json.loads(json.dumps(value).replace(folder, "FOLDER"))


@cache
def recorded() -> dict[str, Answer]:
    answers: dict[str, Answer] = json.loads(RECORDED.read_text("utf-8"))
    return answers


def record(all_of_them: bool = False) -> None:
    """Ask for the cases that are new or changed (`--all`: for all)."""
    known = recorded() if RECORDED.exists() and not all_of_them else {}
    kept = {case.name: known[case.name] for case in COMPARED if known.get(case.name, {}).get("digest") == digest(case)}
    with tempfile.TemporaryDirectory() as folder:
        answers = kept | ask([case for case in COMPARED if case.name not in kept], Path(folder))
    RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", "utf-8")


def test_enough_is_compared_and_nothing_is_out_of_date() -> None:
    assert len(COMPARED) >= 150
    assert len(LIVE) >= len(COMPARED) / 10
    assert {name: answer["digest"] for name, answer in recorded().items()} == {case.name: digest(case) for case in COMPARED}


@pytest.mark.servers
def test_some_answers_asked_anew(tmp_path: Path) -> None:
    asked = [case for case in COMPARED if case.name in LIVE]
    assert ask(asked, tmp_path) == {case.name: recorded()[case.name] for case in asked}


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_same_as_ansible(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_ASYNC_DIR", str(tmp_path / "async"))
    answer = recorded()[case.name]
    played = case.play(tmp_path)
    ours = {host: [line.replace(": rescued", ": failed") for line in played.of(host)] for host in played.result.status}
    assert ours == {host: answer["results"].get(host, []) for host in ours}
    assert {host: replaced(played.shown(host), str(tmp_path)) for host in ours} == {host: answer["shown"].get(host, []) for host in ours}
    assert (played.result.exit_code == 0) == (answer["exit_code"] == 0)
    if case.data.get("stats", True):
        counted = ("ok", "changed", "failed", "skipped", "rescued", "ignored")
        theirs = {host: {key: stats[key] for key in counted} for host, stats in answer["stats"].items()}
        assert {host: {key: stats[key] for key in counted} for host, stats in played.stats().items()} == theirs


# `vars` of an import are variables of a task, although the same words under include_role are parameters of the role.
UPSET = {"import_role": {(place, "role_params") for place in ("block_vars", "task_vars", "include_vars", "set_fact")}}


@pytest.mark.parametrize("way", WAYS)
def test_of_two_places_the_later_one_of_the_table_wins(way: str) -> None:
    """The recorded answers themselves: the table of places is Ansible's documented order."""
    (shown,) = (value for task, value in recorded()[f"precedence_{way}"]["shown"]["h1"] if task == "look")
    winners = {pair: shown[name_of(*pair)] for pair in PAIRS}
    assert set(winners.values()) == set(PLACES) - {"role_defaults"}
    assert {pair for pair, winner in winners.items() if winner != pair[1]} == UPSET.get(way, set())


if __name__ == "__main__":
    record("--all" in sys.argv)
