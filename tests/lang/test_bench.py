"""The measuring script itself: its playbook is right, and it refuses to give a figure for one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.load import measure, write
from nodectl.cli.listing import tasks_listing
from nodectl.cli.loading import load
from nodectl.diagnostics.model import Collector
from nodectl.engine.options import Options


def test_all_tasks_are_there_and_nothing_is_wrong_with_them(tmp_path: Path) -> None:
    assert write(tmp_path, roles=3, tasks=30) == 30
    found = Collector()
    loaded = load([str(tmp_path / "hosts.yaml")], tmp_path / "site.yml", Options(), found)
    assert not list(found)
    assert tasks_listing(loaded).count("\n") == 30
    assert len(loaded.inventory.names()) == 1000
    assert 0 < measure(tmp_path) < 60


def test_a_wrong_playbook_gives_no_figure(tmp_path: Path) -> None:
    write(tmp_path, roles=1, tasks=5)
    (tmp_path / "roles/r0/tasks/main.yml").write_text("- comand: x\n")
    with pytest.raises(SystemExit, match="unknown module 'comand'"):
        measure(tmp_path)
