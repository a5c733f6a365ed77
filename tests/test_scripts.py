"""The scripts behind make: what they say on a machine that lacks something, and that they start nothing then."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(path for path in (ROOT / ".ci").iterdir() if path.is_file())


def stand_in(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def prepare(folder: Path, *packages: str) -> subprocess.CompletedProcess[str]:
    """`.ci/prepare` with the programs in ``folder`` before the machine's own."""
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "POLICY_RC_D": str(folder / "policy-rc.d")}
    return subprocess.run([str(ROOT / ".ci" / "prepare"), *packages], capture_output=True, text=True, env=env, timeout=30)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """root, with the package `present` installed and an apt-get that writes down how it was called."""
    stand_in(tmp_path, "id", "echo 0")
    stand_in(tmp_path, "dpkg-query", 'for last; do :; done; [ "$last" = present ] && echo installed')
    # policy-rc.d is what keeps a package's service from starting: it has to be there while apt-get runs.
    stand_in(tmp_path, "apt-get", f'{tmp_path}/policy-rc.d; echo "$? $DEBIAN_FRONTEND: $*" >> {tmp_path}/calls')
    return tmp_path


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse_and_may_be_run(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert subprocess.run(["sh", "-n", str(script)], capture_output=True, text=True).stderr == ""


def devices_are_there() -> bool:
    return Path("/dev/fuse").exists() and Path("/dev/loop-control").exists()


@pytest.mark.skipif(not devices_are_there(), reason="no /dev/fuse or /dev/loop-control here")
def test_nothing_is_installed_when_everything_is_there(programs: Path) -> None:
    done = prepare(programs, "present")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (programs / "calls").exists()


@pytest.mark.skipif(not devices_are_there(), reason="no /dev/fuse or /dev/loop-control here")
def test_missing_packages_are_installed_without_a_question(programs: Path) -> None:
    done = prepare(programs, "present", "absent", "another")
    assert done.returncode == 0
    assert done.stdout == "installing Debian packages: absent another\n"
    assert (programs / "calls").read_text().splitlines() == ["101 noninteractive: update", "101 noninteractive: install -y --no-install-recommends absent another"]
    assert not (programs / "policy-rc.d").exists()


@pytest.mark.skipif(not devices_are_there(), reason="no /dev/fuse or /dev/loop-control here")
def test_what_apt_says_is_shown_when_it_fails(programs: Path) -> None:
    stand_in(programs, "apt-get", "echo 'E: Unable to locate package absent'; exit 100")
    done = prepare(programs, "absent")
    assert done.returncode == 1
    assert "E: Unable to locate package absent" in done.stderr
    assert "apt-get install -y --no-install-recommends absent" in done.stderr


def test_without_root_everything_is_said_at_once_and_nothing_done(programs: Path) -> None:
    stand_in(programs, "id", "echo 1000")
    stand_in(programs, "python3", "exit 1")
    done = prepare(programs, "absent")
    assert done.returncode == 1
    assert "needs root" in done.stderr
    assert "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends absent" in done.stderr
    assert "Python 3.11" in done.stderr
    assert not (programs / "calls").exists()


def test_the_folder_of_a_running_lab_is_not_removed_under_it(tmp_path: Path) -> None:
    """A lab that an interrupted test has left, and no nodectl to stop it: said, and nothing touched."""
    left = tmp_path / ".nodectl" / "test-lab-1"
    left.mkdir(parents=True)
    (left / "lab.json").write_text("{}")
    done = subprocess.run([str(ROOT / ".ci" / "clean"), ".venv/bin", ".nodectl/lab"], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert ".nodectl/test-lab-1" in done.stderr
    assert (left / "lab.json").exists()


def test_labs_are_stopped_before_their_folders_go(tmp_path: Path) -> None:
    for name in ("lab", "test-lab-1"):
        (tmp_path / ".nodectl" / name).mkdir(parents=True)
        (tmp_path / ".nodectl" / name / "lab.json").write_text("{}")
    (tmp_path / "nodectl").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "bin").mkdir()
    stand_in(tmp_path / "bin", "nodectl", f'echo "$*" >> {tmp_path}/calls')
    env = {**os.environ, "NODECTL_LAB_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([str(ROOT / ".ci" / "clean"), "bin", ".nodectl/lab"], cwd=tmp_path, capture_output=True, text=True, timeout=30, env=env)
    assert done.returncode == 0, done.stderr
    assert {"lab down --dir .nodectl/lab", "lab down --dir .nodectl/test-lab-1"} == set((tmp_path / "calls").read_text().splitlines())
    assert not (tmp_path / ".nodectl").exists()


def clean_with_a_cache(tmp_path: Path, forget: str) -> subprocess.CompletedProcess[str]:
    """`.ci/clean` in a folder whose nodectl forgets base images by the lines ``forget``; the cache holds one."""
    (tmp_path / "cache" / "bookworm-1").mkdir(parents=True)
    (tmp_path / "nodectl" / "lab").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / ".venv").mkdir()
    # Whole packages, or a python that has nodectl installed would take that one.
    for package in ("nodectl", "nodectl/lab"):
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "nodectl" / "lab" / "problem.py").write_text("class LabProblem(Exception):\n    pass\n")
    (tmp_path / "nodectl" / "lab" / "base.py").write_text(f"import os\nfrom nodectl.lab.problem import LabProblem\ndef forget():\n    {forget}\n")
    env = {**os.environ, "NODECTL_LAB_CACHE": str(tmp_path / "cache")}
    return subprocess.run([str(ROOT / ".ci" / "clean"), ".venv/bin", ".nodectl/lab"], cwd=tmp_path, capture_output=True, text=True, timeout=30, env=env)


def test_a_base_image_in_use_stays_and_the_rest_goes(tmp_path: Path) -> None:
    done = clean_with_a_cache(tmp_path, 'raise LabProblem("it is the base of a lab that is up")')
    assert (done.returncode, done.stderr) == (0, "the base image of the labs stays: it is the base of a lab that is up\n")
    assert (tmp_path / "cache" / "bookworm-1").exists()
    assert not (tmp_path / ".venv").exists()


def test_a_base_image_that_nobody_uses_goes(tmp_path: Path) -> None:
    done = clean_with_a_cache(tmp_path, 'os.rmdir(os.environ["NODECTL_LAB_CACHE"] + "/bookworm-1")')
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "cache").exists()


def test_the_words_of_the_script_are_those_of_the_lab(tmp_path: Path) -> None:
    """The real forget(), as the script calls it: on a cache that holds one base, and this checkout's own code."""
    (tmp_path / "cache" / "bookworm-1" / "root").mkdir(parents=True)
    (tmp_path / "nodectl").symlink_to(ROOT / "nodectl")
    (tmp_path / "tests").mkdir()
    env = {**os.environ, "NODECTL_LAB_CACHE": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([str(ROOT / ".ci" / "clean"), "none", "none"], cwd=tmp_path, capture_output=True, text=True, timeout=30, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "cache").exists()


def test_every_target_that_help_names_exists() -> None:
    text = (ROOT / "Makefile").read_text()
    named = {line.split()[2] for line in text.splitlines() if line.startswith('\t@echo "make ')}
    targets = {line.partition(":")[0] for line in text.splitlines() if ":" in line and not line.startswith(("\t", "#", "."))}
    assert named <= targets
