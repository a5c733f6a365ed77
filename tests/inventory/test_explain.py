"""Where a variable comes from: every place that gives it, strongest first, with its position; secrets masked."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.cli.main import run
from nodectl.diagnostics.model import Collector
from nodectl.inventory.load import add_playbook_folder, load_inventory

FILES = {
    "hosts.yaml": "all:\n  vars: {v: all, token: hunter2-long}\ngpu:\n  vars: {v: gpu}\n  hosts: {n1: {v: own}, n2: {}}\n",
    "group_vars/all.yml": "v: all file\n",
    "group_vars/gpu/a.yml": "v: first\n",
    "group_vars/gpu/b.yml": "\nv: second\n",
    "host_vars/n1.yml": "other: 1\nv: mine\n",
    "book/group_vars/gpu.yml": "v: beside the playbook\n",
}
TABLE = [
    ("n1", ["mine@host_vars/n1.yml:2:1", "own@hosts.yaml:5:16", "second@group_vars/gpu/b.yml:2:1", "all file@group_vars/all.yml:1:1", "gpu@hosts.yaml:4:10", "all@hosts.yaml:2:10"]),
    ("n2", ["second@group_vars/gpu/b.yml:2:1", "all file@group_vars/all.yml:1:1", "gpu@hosts.yaml:4:10", "all@hosts.yaml:2:10"]),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("host", "places"), TABLE)
def test_every_place_strongest_first_and_the_first_is_what_holds(host: str, places: list[str], place: Path) -> None:
    inventory = load_inventory(["hosts.yaml"], Collector())
    said = inventory.explain(host, "v")[::-1]
    assert [f"{one.value}@{one.origin}" for one in said] == places
    assert inventory.variables(host)["v"] == said[0].value


def test_a_playbooks_folder_counts_for_its_plays(place: Path) -> None:
    inventory = load_inventory(["hosts.yaml"], Collector())
    add_playbook_folder(inventory, place / "book", Collector())
    assert [one.value for one in inventory.explain("n2", "v", place / "book")][-1] == "beside the playbook"


def test_as_a_person_sees_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "-i", "hosts.yaml", "--host", "n2", "--explain", "v"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'v of n2: "second"'
    assert lines[1] == "  holds: group_vars/gpu (group_vars/gpu/b.yml:2:1)"
    assert lines[-1] == '  overridden: group all (hosts.yaml:2:10), would be "all"'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--host", "n1", "--explain", "toke"], "did you mean 'token'"),
        (["--explain", "v"], "wants a --host"),
        (["--host", "nobody", "--explain", "v"], "nobody"),
    ],
)
def test_what_cannot_be_explained(words: list[str], told: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "-i", "hosts.yaml", *words]) == 1
    assert told in capsys.readouterr().err


def test_a_secret_stays_one(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "-i", "hosts.yaml", "--host", "n1", "--explain", "token"]) == 0
    said = capsys.readouterr()
    assert "hunter2" not in said.out + said.err
    assert "hosts.yaml:2:18" in said.out
