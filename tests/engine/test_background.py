"""async and poll: jobs of their own on the node, their files, their time, and what happens when the node goes away meanwhile."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent import jobs
from nodectl.agent.contract import Failed
from nodectl.agent.processes import started as started_at
from nodectl.agent.runner import run_step
from nodectl.agent.system import System
from nodectl.engine import background
from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.engine.fakes import FakeConnections
from tests.engine.playing import ONE, play

PLAY = "- hosts: all\n  gather_facts: false\n  tasks:\n"


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def started(module: str, args: dict[str, Any], timeout: float = 20) -> str:
    outcome = run_step(System(), Step(1, module, args, timeout=timeout, background=True))
    assert not outcome.failed, outcome.msg
    return str(outcome.values["ansible_job_id"])


def ask(job: str, **more: Any) -> Outcome:
    return run_step(System(), Step(2, "async_status", {"jid": job, **more}))


def ended(job: str) -> Outcome:
    for _ in range(400):
        status = ask(job)
        if status.values.get("finished"):
            return status
        time.sleep(0.02)
    raise AssertionError("the job does not end")


def test_a_job_goes_on_by_itself_and_its_result_is_its_owners_alone(tmp_path: Path) -> None:
    job = started("shell", {"cmd": f"sleep 0.2; echo done; test -e /proc/self/fd/7 && echo open; echo $PPID > {tmp_path}/parent"})
    assert ask(job).values["finished"] is False
    status = ended(job)
    assert (status.values["stdout"], status.values["rc"], status.changed, status.values["started"]) == ("done", 0, True, True)
    path = Path(status.values["results_file"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert int((tmp_path / "parent").read_text()) != os.getpid()
    assert ask(job, mode="cleanup").values["erased"] == str(path)
    assert "could not find job" in ask(job).msg
    assert ask(job, mode="cleanup").failed


def test_arguments_are_written_nowhere(tmp_path: Path) -> None:
    job = started("copy", {"content": "hunter2-secret", "dest": str(tmp_path / "f"), "mode": "0600"})
    home = tmp_path / "home" / ".ansible_async"
    assert not any("hunter2-secret" in path.read_text() for path in home.iterdir())
    assert ended(job).changed
    assert not any("hunter2-secret" in path.read_text() for path in home.iterdir())


def test_a_job_over_its_time_is_gone(tmp_path: Path) -> None:
    job = started("shell", {"cmd": f"echo $$ > {tmp_path}/pid; exec sleep 60"}, timeout=0.3)
    status = ended(job)
    assert status.failed
    assert "did not end within the 0.3 s" in status.msg
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_a_job_that_was_killed_is_no_success(tmp_path: Path) -> None:
    job = started("shell", {"cmd": "sleep 60"}, timeout=1)
    state = jobs._read(System(), str(tmp_path / "home/.ansible_async" / job))
    assert state is not None
    os.kill(state["pid"], 9)
    status = ended(job)
    assert status.failed
    assert "without a result" in status.msg


@pytest.mark.parametrize("job", ["../../etc/passwd", "", ".", "a/b", ".hidden"])
def test_no_other_file_is_read_or_removed(job: str) -> None:
    assert "is not the id of a job" in ask(job).msg
    assert "is not the id of a job" in ask(job, mode="cleanup").msg


@pytest.mark.parametrize("content", ["", "[]", "{", "\x00", '"x"', "1"])
def test_a_file_that_is_no_job_is_told(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "home" / ".ansible_async"
    folder.mkdir(parents=True)
    (folder / "j1.1").write_text(content)
    assert ask("j1.1").failed


def test_files_nobody_asked_about_go_after_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".ansible_async"
    folder.mkdir(parents=True)
    old = time.time() - jobs.KEPT - 60
    for name, content in {"j1.1": '{"outcome": {}}', "j2.2": f'{{"pid": {os.getpid()}, "born": "{started_at(os.getpid())}"}}', "notes": ""}.items():
        (folder / name).write_text(content)
        os.utime(folder / name, (old, old))
    ended(started("ping", {}))
    assert not (folder / "j1.1").exists()
    assert {"j2.2", "notes"} < {path.name for path in folder.iterdir()}


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    step = Step(1, "ping", {}, environment={"ANSIBLE_ASYNC_DIR": str(tmp_path / "file")}, background=True)
    assert run_step(System(step.environment), step).failed


# -- the controller's side


def test_poll_waits_for_the_end_and_leaves_no_file(tmp_path: Path) -> None:
    played = play(tmp_path, PLAY + "    - {name: long, shell: 'sleep 0.1; echo hi', async: 30, poll: 1, register: r}\n    - {debug: {msg: '{{ r.stdout }} {{ r is finished }}'}}\n", inventory=ONE)
    assert played.of("h1") == ["long: changed", "debug: ok"]
    assert played.shown("h1") == [["debug", "hi True"]]
    assert not list((tmp_path / "home/.ansible_async").iterdir())


def test_in_check_mode_nothing_is_started(tmp_path: Path) -> None:
    played = play(tmp_path, PLAY + f"    - {{name: x, shell: 'touch {tmp_path}/x', async: 30, poll: 0}}\n", inventory=ONE, check=True)
    assert played.of("h1") == ["x: skipped"]
    assert not (tmp_path / "x").exists()


def test_what_half_runs_here_cannot_go_to_the_background(tmp_path: Path) -> None:
    played = play(tmp_path, PLAY + "    - {name: x, copy: {content: a, dest: /tmp/never}, async: 3}\n", inventory=ONE)
    assert played.of("h1") == ["x: failed"]


def away(first: int, last: int, kind: type[Exception]) -> FakeConnections:
    """The node cannot be asked for the looks number ``first`` to ``last``."""
    seen = [0]

    def script(_host: str, step: Step) -> Outcome | None:
        if step.module == "async_status":
            seen[0] += 1
            if first <= seen[0] <= last:
                raise Lost("no byte for 20 s") if kind is Lost else Unreachable("refused", "refused")
        return None

    return FakeConnections(script=script)


TASK = "    - {name: long, shell: 'sleep 0.1; echo hi', async: 30, poll: 1}\n"


@pytest.mark.parametrize("kind", [Lost, Unreachable])
def test_a_node_that_comes_back_is_asked_again(tmp_path: Path, kind: type[Exception]) -> None:
    played = play(tmp_path, PLAY + TASK, inventory=ONE, connections=away(1, 2, kind))
    assert played.of("h1") == ["long: changed"]


def test_a_node_that_stays_away_is_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AWAY", 0.05)
    played = play(tmp_path, PLAY + TASK, inventory=ONE, connections=away(1, 999, Unreachable))
    assert played.result.status["h1"] == "unreachable"


def test_a_broken_state_file_raises_nothing_else() -> None:
    with pytest.raises(Failed, match="is not the id"):
        jobs.path_of(System(), "/etc/shadow")
