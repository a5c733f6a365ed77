"""`ansible-inventory --list` and nodectl read the same hosts, groups and variables from the same files.

Ansible's answers are kept in answers.json, each with a digest of its question: `python -m tests.inventory.test_oracle` records
them, with `--all` every one anew. Every tenth is asked anew in every run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodectl.diagnostics.model import Collector
from nodectl.inventory.load import load_inventory
from nodectl.inventory.model import Inventory
from nodectl.lang.document import bare
from tests import ansible_forks

HERE = Path(__file__).parent
RECORDED = HERE / "answers.json"
# All cases together take 40 s on two free cores; a busy machine may need several times that.
DEADLINE = 300
# What differs on purpose, with the reason: (case, host) -> names.
LEFT_OUT = {"ansible_group_priority"}


@dataclass(frozen=True)
class Case:
    name: str
    sources: list[str]
    files: dict[str, str]

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.sources, self.files], sort_keys=True).encode()).hexdigest()[:16]

    def write(self, folder: Path) -> None:
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


def cases() -> list[Case]:
    read = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted((HERE / "same").glob("*.yml"))}
    return [Case(name, data["sources"], data["files"]) for name, data in read.items()]


CASES = cases()
# Asked anew in every run: every tenth.
LIVE = tuple(case.name for case in CASES[::10])


def ask(asked: Sequence[Case], folder: Path) -> dict[str, Any]:
    (folder / "ansible.cfg").write_text("")
    for case in asked:
        case.write(folder / case.name)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": str(folder / "ansible.cfg")}
    ansible_forks.ask("inventory", [(str(folder / case.name), case.sources) for case in asked], environment, DEADLINE)
    return {case.name: {"digest": case.digest, "listed": json.loads((folder / case.name / "listed.json").read_text("utf-8"))} for case in asked}


@cache
def recorded() -> dict[str, Any]:
    return dict(json.loads(RECORDED.read_text("utf-8")))


def record(all_of_them: bool = False) -> None:
    """Ask for the cases that are new or changed (`--all`: for all)."""
    known = recorded() if RECORDED.exists() and not all_of_them else {}
    kept = {case.name: known[case.name] for case in CASES if known.get(case.name, {}).get("digest") == case.digest}
    with tempfile.TemporaryDirectory() as folder:
        answers = kept | ask([case for case in CASES if case.name not in kept], Path(folder))
    RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", "utf-8")


def test_nothing_recorded_is_out_of_date() -> None:
    assert len(CASES) >= 80
    assert {name: answer["digest"] for name, answer in recorded().items()} == {case.name: case.digest for case in CASES}


@pytest.mark.servers
def test_some_answers_asked_anew(tmp_path: Path) -> None:
    asked = [case for case in CASES if case.name in LIVE]
    assert ask(asked, tmp_path) == {case.name: recorded()[case.name] for case in asked}


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def both(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], Inventory]:
    """What Ansible listed, and what nodectl reads."""
    case = request.param
    case.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = Collector()
    inventory = load_inventory(case.sources, found)
    assert not found.errors, [f"{one.origin} {one.message}" for one in found]
    return recorded()[case.name]["listed"], inventory


def members(listed: Mapping[str, Any], group: str) -> set[str]:
    entry = listed.get(group, {})
    return set(entry.get("hosts", [])).union(*(members(listed, child) for child in entry.get("children", [])))


def test_the_same_hosts_in_the_same_groups(both: tuple[dict[str, Any], Inventory]) -> None:
    listed, inventory = both
    assert set(inventory.names()) == members(listed, "all")
    told = set(listed) - {"_meta"}
    assert told <= set(inventory.groups)
    assert {group: set(inventory.group_members(group)) for group in inventory.groups} == {group: members(listed, group) for group in inventory.groups}


def test_the_same_variables(both: tuple[dict[str, Any], Inventory]) -> None:
    listed, inventory = both
    hostvars = listed["_meta"]["hostvars"]
    ours = {host: unmarked(bare(inventory.variables(host))) for host in inventory.names()}
    assert ours == {host: unmarked(hostvars.get(host, {})) for host in inventory.names()}


def unmarked(values: dict[str, Any]) -> dict[str, Any]:
    """ansible-inventory marks a text with a template and lists the group's priority, which is no variable of a host."""
    texts = json.loads(json.dumps(values), object_hook=lambda item: item.get("__ansible_unsafe", item))
    return {name: value for name, value in texts.items() if name not in LEFT_OUT}


if __name__ == "__main__":
    record("--all" in sys.argv)
