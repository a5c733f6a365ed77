"""`ansible-inventory --list` and nodectl read the same hosts, groups and variables from the same files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.inventory.load import load_inventory
from nodectl.inventory.model import Inventory
from nodectl.lang.document import bare

CASES = Path(__file__).parent / "oracle"
SOURCES = [["groups/hosts.yaml"], ["vars/hosts.yaml"], ["ini/hosts"], ["folder"], ["groups/hosts.yaml", "vars/hosts.yaml"], ["n1,n2,"]]


def theirs(sources: list[str]) -> dict[str, Any]:
    argv = [str(Path(sys.executable).parent / "ansible-inventory"), "--list", "--vars", *(part for source in sources for part in ("-i", source))]
    done = subprocess.run(argv, cwd=CASES, capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(done.stdout))


def ours(sources: list[str], monkeypatch: pytest.MonkeyPatch) -> Inventory:
    monkeypatch.chdir(CASES)
    found = Collector()
    inventory = load_inventory(sources, found)
    assert not found.errors, [f"{one.origin} {one.message}" for one in found]
    return inventory


def members(listed: dict[str, Any], group: str) -> set[str]:
    entry = listed.get(group, {})
    return set(entry.get("hosts", [])).union(*(members(listed, child) for child in entry.get("children", [])))


@pytest.mark.parametrize("sources", SOURCES, ids="+".join)
def test_same_hosts_groups_and_variables(sources: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    listed, inventory = theirs(sources), ours(sources, monkeypatch)
    assert set(inventory.names()) == members(listed, "all")
    for group in inventory.groups:
        assert set(inventory.group_members(group)) == members(listed, group), group
    hostvars = listed["_meta"]["hostvars"]
    for host in inventory.names():
        assert unmarked(bare(inventory.variables(host))) == unmarked(hostvars.get(host, {})), host


def unmarked(values: dict[str, Any]) -> dict[str, Any]:
    """ansible-inventory marks a text with a template and lists the group's priority, which is no variable of a host."""
    texts = json.loads(json.dumps(values), object_hook=lambda item: item.get("__ansible_unsafe", item))
    return {name: value for name, value in texts.items() if name != "ansible_group_priority"}
