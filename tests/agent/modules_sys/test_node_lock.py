"""Two runs on one node: only one of them writes, the other waits, and says for whom."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodectl.agent import node_lock
from nodectl.agent.contract import Failed
from nodectl.agent.modules import scratch_disks
from nodectl.agent.processes import Stopper
from nodectl.agent.system import System
from tests.agent.modules_sys.conftest import DiskMaker, Inside

ROOT = Path(__file__).resolve().parents[3]
HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from nodectl.agent import node_lock
from nodectl.agent.system import System
node_lock.FOLDER = sys.argv[2]
with node_lock.alone(System(), "x", 5.0):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(node_lock, "FOLDER", str(tmp_path))
    monkeypatch.setattr(node_lock, "_EVERY", 0.05)
    return tmp_path


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(ROOT), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.parametrize("enter", [node_lock.alone, node_lock.undisturbed])
def test_who_is_inside_is_waited_for_and_named(folder: Path, enter: type) -> None:
    said: list[str] = []
    system = System({}, {}, said.append, Stopper())
    with holder(folder) as process:
        with pytest.raises(Failed, match=rf"\(process {process.pid}\) is at it, still after waiting 0.2 s"), enter(system, "x", 0.2):
            raise AssertionError("two were inside")
        assert len(said) == 1
        assert f"waiting for another run of nodectl (process {process.pid})" in said[0]
        with enter(system, "y", 0.0):  # another lock
            pass
        process.kill()  # whatever ends the holder frees the lock
        with enter(system, "x", 10.0):
            pass


def test_many_may_look_and_leave_no_file(folder: Path) -> None:
    with node_lock.undisturbed(System(), "x", 0.0), node_lock.undisturbed(System(), "x", 0.0):
        assert list(folder.iterdir()) == []
    with node_lock.alone(System(), "x", 0.0):
        pass
    with node_lock.undisturbed(System(), "x", 0.0), node_lock.undisturbed(System(), "x", 0.0):
        assert [path.name for path in folder.iterdir()] == ["nodectl-x.lock"]


def test_a_lock_that_cannot_be_made_stops_who_would_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(node_lock, "FOLDER", str(tmp_path / "none"))
    with pytest.raises(Failed, match="cannot lock"), node_lock.alone(System(), "x", 0.0):
        raise AssertionError("was inside")
    with node_lock.undisturbed(System(), "x", 0.0):
        pass


def test_scratch_disks_waits_for_another_run_that_writes_on_disks(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-lock")
    lock = f"/run/nodectl-{scratch_disks.LOCK}.lock"
    inside.sh(f"mount -t tmpfs tmpfs /run; (flock {lock} sh -c 'sleep 1; mkfs.ext4 -q -L THEIRS {one.path}') >/dev/null 2>&1 & sleep 0.3")
    refused = inside.step("scratch_disks", {"devices": [{"serial": one.serial}], "mount": str(tmp_path / "scratch"), "fstype": "ext4"})
    assert refused["failed"]
    assert "THEIRS" in refused["msg"], refused["msg"]
