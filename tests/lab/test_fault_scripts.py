"""Faults that are shell, as data: every file of them is whole, and the helpers that they call give back what was there."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodectl.lab import hosts
from nodectl.lab.fault_scripts import FOLDER, PRELUDE, STAND_INS, script_fault, script_faults
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState

FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_a_fault_whose_shell_can_be_read(path: Path) -> None:
    kind = script_fault(path.stem, path.read_text("utf-8"))
    assert kind.name == path.stem
    assert kind.about
    assert kind.in_tree
    assert bool(kind.value) == bool(kind.default)
    data = tomllib.loads(path.read_text("utf-8"))
    for script in (data["apply"], data.get("lift", "")):
        assert subprocess.run(["sh", "-n"], input=PRELUDE + script, capture_output=True, text=True).stderr == ""
    for file in data.get("file", []):
        assert (STAND_INS / file["source"]).is_file()
        compile((STAND_INS / file["source"]).read_text("utf-8"), file["source"], "exec")
    if "pattern" in data:
        assert re.fullmatch(data["pattern"], data["default"])


def test_there_are_many() -> None:
    assert len(script_faults()) >= 20
    assert {path.stem for path in FILES} == {kind.name for kind in script_faults()}


@pytest.mark.parametrize(("text", "said"), [('about = "x"', "expected about and apply"), ('about = "x"\napply = ""\nliftt = ""', "liftt"), ("", "expected about and apply")])
def test_a_file_that_is_no_fault_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        script_fault("bad", text)


class Inside:
    """Stands in for a host: keeps what would be run there."""

    def __init__(self, code: int = 0) -> None:
        self.asked: list[tuple[list[str], str]] = []
        self.code = code

    def __call__(self, state: LabState, host: str, argv: Sequence[str], timeout: float = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        self.asked.append((list(argv), stdin))
        return subprocess.CompletedProcess(list(argv), self.code, "", "it says why")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabState:
    monkeypatch.setattr(hosts, "leader", lambda state, host: 4711)
    return LabState("id", "dev", tmp_path, phase="up", net=4, hosts=(LabHost("n1", "10.77.4.11"), LabHost("n2", "10.77.4.12")))


def test_the_value_is_an_argument_and_never_a_part_of_the_shell(state: LabState, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Inside()
    monkeypatch.setattr(hosts, "inside", inside)
    kind = script_fault("odd", 'about = "x"\nvalue = "anything"\ndefault = "y"\napply = "echo \\"$1\\""')
    kind.apply(state, state.hosts[1], "$(reboot); `reboot`")
    argv, _ = inside.asked[0]
    assert argv[-2:] == ["odd", "$(reboot); `reboot`"]
    assert "reboot" not in argv[-3]
    assert {"FAULT=odd", "HOST=n2", "ADDRESS=10.77.4.12", "PEER=10.77.4.11", "CONTROLLER=10.77.4.1"} <= set(argv)


def test_a_value_of_another_form_touches_nothing(state: LabState, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Inside()
    monkeypatch.setattr(hosts, "inside", inside)
    kind = script_fault("odd", "about = \"x\"\nvalue = \"a count\"\ndefault = \"1\"\npattern = '\\d+'\napply = \"true\"")
    with pytest.raises(LabProblem, match="'many' is not a count"):
        kind.apply(state, state.hosts[0], "many")
    assert inside.asked == []


def test_what_the_host_says_is_said(state: LabState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "inside", Inside(code=1))
    with pytest.raises(LabProblem, match="fault 'odd' on n1: it says why"):
        script_fault("odd", 'about = "x"\napply = "false"').apply(state, state.hosts[0], "")


def test_a_host_that_is_off_is_said_to_be(state: LabState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "leader", lambda state, host: 0)
    for act in (script_fault("odd", 'about = "x"\napply = "true"').apply, script_fault("odd", 'about = "x"\napply = "true"').lift):
        with pytest.raises(LabProblem, match="n1 is off"):
            act(state, state.hosts[0], "")


# -- the helpers themselves, in a folder of their own instead of a host


def shell(keep: Path, script: str, stdin: str = "") -> str:
    text = PRELUDE.replace("/var/lib/nodectl-lab/$FAULT", str(keep)) + script
    done = subprocess.run(["sh", "-euc", text], input=stdin, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_swapped_file_comes_back_with_its_mode(tmp_path: Path) -> None:
    keep, path = tmp_path / "lab/keep", tmp_path / "etc/hosts"
    path.parent.mkdir()
    path.write_text("before\n")
    path.chmod(0o640)
    shell(keep, f"swap {path}", "after\n")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("after\n", 0o640)
    shell(keep, "give_back")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("before\n", 0o640)
    assert not keep.parent.exists()


def test_a_file_that_was_not_there_is_gone_again(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    shell(keep, f"swap {tmp_path}/one", "x")
    shell(keep, f"shadow {tmp_path}/deep/two 755", "#!/bin/sh\n")
    assert (tmp_path / "one").read_text() == "x"
    assert (tmp_path / "deep/two").stat().st_mode & 0o777 == 0o755
    shell(keep, "give_back")
    assert not (tmp_path / "one").exists()
    assert not (tmp_path / "deep/two").exists()


def test_giving_back_what_was_never_taken_is_nothing(tmp_path: Path) -> None:
    assert shell(tmp_path / "none", "give_back; echo still here") == "still here\n"


@pytest.mark.parametrize(("path", "unit"), [("/ckpt", "ckpt"), ("/data/", "data"), ("/mnt/my data", "mnt-my-data")])
def test_the_unit_of_a_mount_is_named_as_the_role_names_it(tmp_path: Path, path: str, unit: str) -> None:
    assert shell(tmp_path, f"unit_of '{path}'") == f"nodectl-cache-{unit}.service\n"
