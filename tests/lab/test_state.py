from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from nodectl.lab.problem import LabProblem
from nodectl.lab.state import STATE_FILE, Fault, LabHost, LabState, Resource, load, locked


def state_in(folder: Path) -> LabState:
    return LabState("a1b2c3", "dev", folder, net=4, hosts=(LabHost("n1", "10.77.4.11", ("LAB4N1D1",)), LabHost("n2", "10.77.4.12")))


def test_what_was_saved_is_what_is_loaded(tmp_path: Path) -> None:
    state = state_in(tmp_path)
    state.notes.append("a note")
    state.faults.append(Fault("n1", "slow-link", "100mbit"))
    state.claim("netns", "nodectl-dev-a1b2c3-n1")
    state.claim("loop", "/x.img")
    assert load(tmp_path) == state


def test_a_claim_is_on_disk_before_the_thing_is_made(tmp_path: Path) -> None:
    state = state_in(tmp_path)
    state.claim("netns", "one")
    assert json.loads((tmp_path / STATE_FILE).read_text())["resources"] == [{"kind": "netns", "key": "one"}]


def test_a_second_claim_changes_nothing_and_a_dropped_one_is_gone(tmp_path: Path) -> None:
    state = state_in(tmp_path)
    for _ in range(2):
        state.claim("file", "/a")
    state.claim("file", "/b")
    assert state.resources == [Resource("file", "/a"), Resource("file", "/b")]
    state.drop(Resource("file", "/a"))
    assert load(tmp_path) == state
    assert state.resources == [Resource("file", "/b")]


def test_no_lab_is_none_even_where_the_folder_is_a_file(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    assert load(tmp_path / "nowhere") is None
    (tmp_path / "file").write_text("x")
    assert load(tmp_path / "file") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"hosts": [], "faults": [], "resources": [], "colour": "red"}', '{"hosts": [{}]}'])
def test_a_state_that_cannot_be_read_is_said_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / STATE_FILE).write_text(text)
    with pytest.raises(LabProblem) as problem:
        load(tmp_path)
    assert str(tmp_path / STATE_FILE) in str(problem.value)


def test_the_secret_keys_are_not_in_the_state(tmp_path: Path) -> None:
    state_in(tmp_path).save()
    assert "key" not in json.loads((tmp_path / STATE_FILE).read_text())


def test_a_host_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    state = state_in(tmp_path)
    assert state.host("n2").address == "10.77.4.12"
    with pytest.raises(LabProblem, match=r"'n9' is not in lab 'dev': it has n1, n2"):
        state.host("n9")


def test_a_folder_that_is_held_is_waited_for_and_then_named(tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    try:
        with pytest.raises(LabProblem, match="taking down: another process"), locked(tmp_path, "taking down", wait_s=0.2):
            pass
    finally:
        os.close(other)
    with locked(tmp_path, "taking down", wait_s=0.2):
        assert os.listdir(tmp_path) == []  # no lock file
