from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodectl.lab import machine
from nodectl.lab.problem import LabProblem


@pytest.fixture
def mark() -> Iterator[str]:
    name = f"test-{os.getpid()}-{time.monotonic_ns()}/x"
    yield name
    machine.kill_all(lambda: machine.marked(name), name)


def started(mark: str, tmp_path: Path, *argv: str) -> list[int]:
    machine.start(mark, argv, tmp_path / "log")
    assert machine.until(lambda: len(machine.marked(mark)) > 0, 5)
    return machine.marked(mark)


def test_a_tool_that_fails_is_quoted() -> None:
    with pytest.raises(LabProblem) as problem:
        machine.run(["sh", "-c", "echo out; echo it broke >&2; exit 3"])
    assert "sh ended with 3 and said: it broke" in str(problem.value)
    assert "command: sh -c" in str(problem.value)


def test_a_tool_that_hangs_is_ended_and_named() -> None:
    began = time.monotonic()
    with pytest.raises(LabProblem, match="sleep did not end within 0 s"):
        machine.run(["sleep", "60"], timeout=0.2)
    assert time.monotonic() - began < 5


def test_a_tool_that_is_not_there_is_named() -> None:
    with pytest.raises(LabProblem, match="no-such-tool is not installed"):
        machine.attempt(["no-such-tool"])


def test_a_tool_gets_its_input_and_environment() -> None:
    assert machine.run(["sh", "-c", 'cat; echo "$GIVEN"'], stdin="in\n", env={"GIVEN": "there"}) == "in\nthere\n"


def test_a_started_process_is_found_by_its_mark_alone_and_outlives_the_call(mark: str, tmp_path: Path) -> None:
    (pid,) = started(mark, tmp_path, "sleep", "60")
    assert os.getsid(pid) != os.getsid(0)
    assert machine.marked(mark + "y") == []
    assert machine.marked(mark[:-1]) == []


def test_output_goes_to_the_log(mark: str, tmp_path: Path) -> None:
    machine.start(mark, ["sh", "-c", "echo told; echo wrong >&2"], tmp_path / "log")
    assert machine.until(lambda: "told\nwrong\n" in (tmp_path / "log").read_text(), 5)


@pytest.mark.parametrize("script", ["sleep 60", "trap '' TERM; echo deaf; sleep 60 & wait; sleep 60"])
def test_a_process_is_stopped_even_when_deaf(mark: str, tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "TERM_S", 0.3)
    started(mark, tmp_path, "sh", "-c", script)
    machine.stop(mark)
    assert machine.marked(mark) == []


def test_a_frozen_process_is_stopped_too(mark: str, tmp_path: Path) -> None:
    (pid,) = started(mark, tmp_path, "sleep", "60")
    os.kill(pid, signal.SIGSTOP)
    machine.stop(mark)
    assert machine.marked(mark) == []


def test_stopping_nothing_is_no_trouble(mark: str) -> None:
    machine.stop(mark)


def test_what_stays_after_being_killed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "GONE_S", 0.2)
    monkeypatch.setattr(machine, "send", lambda pid, number: None)
    with pytest.raises(LabProblem, match=r"host n1 is still there .*\[4242\]"):
        machine.kill_all(lambda: [4242], "host n1")


def test_a_signal_to_a_process_that_is_gone_is_no_trouble() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    machine.send(gone.pid, signal.SIGTERM)


def test_a_tree_goes_and_a_missing_one_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("x")
    machine.remove_tree(tmp_path / "a")
    machine.remove_tree(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_tree_with_a_mount_in_it_is_left_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/precious").write_text("x")
    monkeypatch.setattr(machine, "mount_points", lambda below: [str(below / "mounted")])
    with pytest.raises(LabProblem, match=r"data/mounted is mounted there"):
        machine.remove_tree(tmp_path / "data")
    assert (tmp_path / "data/precious").exists()


def test_mount_points_are_those_below_and_not_their_neighbours() -> None:
    assert "/proc" in machine.mount_points(Path("/proc"))
    assert "/proc" not in machine.mount_points(Path("/pro"))
    assert machine.mount_points(Path("/nowhere")) == []
    assert machine.mount_points(Path("/"))[0] == "/"
