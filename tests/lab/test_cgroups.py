from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nodectl.lab import cgroups
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState


@pytest.fixture
def legacy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Looks like a version 1 tree with three hierarchies, one of which we want."""
    for part in ("systemd", "blkio", "memory"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "cgroup.procs").touch()
    monkeypatch.setattr(cgroups, "MOUNT", tmp_path)
    return tmp_path


@pytest.fixture
def one_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    (tmp_path / "cgroup.procs").touch()
    monkeypatch.setattr(cgroups, "MOUNT", tmp_path)
    return tmp_path


def test_a_limit_on_us_stays_on_the_hosts(legacy: Path) -> None:
    assert cgroups.make("lab/n1") == [legacy / "systemd/lab/n1", legacy / "blkio/lab/n1"]
    assert not (legacy / "memory/lab").exists()


def test_one_tree_has_one_group(one_tree: Path) -> None:
    assert cgroups.make("lab/n1") == [one_tree / "lab/n1"]


def test_the_process_enters_every_group_before_it_becomes_the_command(legacy: Path) -> None:
    folders = cgroups.make("lab/n1")
    done = subprocess.run([*cgroups.entering(folders), "echo", "a  b", "$HOME"], capture_output=True, text=True, check=True)
    assert done.stdout == "a  b $HOME\n"
    assert [(folder / "cgroup.procs").read_text() for folder in folders] == ["0\n", "0\n"]


def test_a_group_that_cannot_be_entered_ends_the_command(tmp_path: Path) -> None:
    done = subprocess.run([*cgroups.entering([tmp_path / "nowhere"]), "echo", "ran"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""


def test_groups_go_with_what_the_host_made_in_them_and_the_labs_folder_goes_last(legacy: Path) -> None:
    for host in ("n1", "n2"):
        cgroups.make(f"lab/{host}")
    (legacy / "systemd/lab/n1/payload/system.slice").mkdir(parents=True)
    cgroups.remove("lab/n1")
    assert [path.name for path in (legacy / "systemd/lab").iterdir()] == ["n2"]
    cgroups.remove("lab/n2")
    cgroups.remove("lab/n2")
    assert not (legacy / "systemd/lab").exists()
    assert not (legacy / "blkio/lab").exists()


def test_a_group_that_stays_busy_is_named(legacy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cgroups.make("lab/n1")
    monkeypatch.setattr(cgroups, "_removed", lambda folder: False)
    monkeypatch.setattr(cgroups, "until", lambda condition, seconds: condition())
    with pytest.raises(LabProblem, match="a process is still in it"):
        cgroups.remove("lab/n1")


@pytest.mark.parametrize(("rate", "line"), [(20_000_000, "7:3 20000000"), (0, "7:3 0")])
def test_version_1_throttles_reads_and_writes(legacy: Path, rate: int, line: str) -> None:
    cgroups.make("lab/n1")
    files = [legacy / f"blkio/lab/n1/blkio.throttle.{way}_bps_device" for way in ("read", "write")]
    for file in files:
        file.touch()
    cgroups.throttle("lab/n1", os.makedev(7, 3), rate)
    assert [file.read_text() for file in files] == [line, line]


@pytest.mark.parametrize(("rate", "line"), [(20_000_000, "7:3 rbps=20000000 wbps=20000000"), (0, "7:3 rbps=max wbps=max")])
def test_version_2_throttles_with_one_line_and_hands_the_controller_down(one_tree: Path, rate: int, line: str) -> None:
    cgroups.make("lab/n1")
    (one_tree / "lab/n1/io.max").touch()
    cgroups.throttle("lab/n1", os.makedev(7, 3), rate)
    assert (one_tree / "lab/n1/io.max").read_text() == line
    assert [(folder / "cgroup.subtree_control").read_text() for folder in (one_tree, one_tree / "lab")] == ["+io", "+io"]
    assert not (one_tree / "lab/n1/cgroup.subtree_control").exists()


def test_a_kernel_without_the_throttle_is_told_apart(legacy: Path) -> None:
    cgroups.make("lab/n1")
    with pytest.raises(LabProblem, match="CONFIG_BLK_DEV_THROTTLING"):
        cgroups.throttle("lab/n1", os.makedev(7, 3), 1)


def test_the_group_carries_the_labs_name(tmp_path: Path) -> None:
    assert cgroups.name(LabState("abc", "dev", tmp_path), "n1") == "nodectl-dev-abc/n1"
