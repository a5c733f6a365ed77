"""probe_shared_mount on a folder of this machine: what it writes, sees, removes and refuses."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.contract import Failed
from nodectl.agent.probes import probe_shared_mount
from nodectl.agent.probes.probe_shared_mount import PREFIX
from nodectl.agent.system import System
from tests.agent.modules_sys.scripted import filled


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(probe_shared_mount, "UPLOADED", 0.0)

    def ask(check: bool = False, **args: Any) -> list[str]:
        outcome = probe_shared_mount.act(System(), filled(probe_shared_mount.SPEC, path=str(tmp_path), **args), check)
        missing: list[str] = outcome.values["missing"]
        return missing

    return ask


def test_what_one_writes_another_sees_and_it_is_removed(probe: Any, tmp_path: Path) -> None:
    name = f"{PREFIX}a-0"
    assert probe(write=name) == []
    assert (tmp_path / name).read_text() == name
    assert probe(look=[name, f"{PREFIX}a-1"], within=0.0) == [f"{PREFIX}a-1"]
    assert probe(remove=name) == []
    assert probe(remove=name) == []
    assert list(tmp_path.iterdir()) == []


def test_another_content_is_not_what_was_written(probe: Any, tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}a").write_text("")
    assert probe(look=[f"{PREFIX}a"], within=0.0) == [f"{PREFIX}a"]


def test_a_name_that_comes_late_is_seen(probe: Any, tmp_path: Path) -> None:
    """It appears while the probe looks."""
    name = f"{PREFIX}late"
    child = os.fork()
    if not child:
        time.sleep(0.7)
        (tmp_path / name).write_text(name)
        os._exit(0)
    try:
        assert probe(look=[name], within=10.0) == []
    finally:
        os.waitpid(child, 0)


def test_what_a_killed_run_left_is_removed_and_nothing_else(probe: Any, tmp_path: Path) -> None:
    for name, age in ((f"{PREFIX}old", 7200), (f"{PREFIX}young", 60), ("train.bin", 7200)):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    probe(write=f"{PREFIX}new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{PREFIX}new", f"{PREFIX}young", "train.bin"]


@pytest.mark.parametrize("args", [{"write": "train.bin"}, {"remove": "train.bin"}, {"remove": f"{PREFIX}x/../train.bin"}, {"look": ["/etc/passwd"]}])
def test_names_of_others_are_refused(probe: Any, tmp_path: Path, args: dict[str, Any]) -> None:
    (tmp_path / "train.bin").write_text("x")
    with pytest.raises(Failed, match=r"is no name of this probe's files"):
        probe(**args)
    assert (tmp_path / "train.bin").read_text() == "x"


def test_check_mode_writes_and_removes_nothing(probe: Any, tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}a").write_text("x")
    probe(check=True, write=f"{PREFIX}b", remove=f"{PREFIX}a")
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}a"]


def test_a_name_that_is_taken_and_a_folder_that_is_not_there_fail(probe: Any, tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}a").write_text("somebody's")
    with pytest.raises(Failed, match="FileExistsError"):
        probe(write=f"{PREFIX}a")
    assert (tmp_path / f"{PREFIX}a").read_text() == "somebody's"
    tmp_path.joinpath(f"{PREFIX}a").unlink()
    tmp_path.rmdir()
    with pytest.raises(Failed, match="FileNotFoundError"):
        probe(write=f"{PREFIX}a")
    tmp_path.mkdir()
