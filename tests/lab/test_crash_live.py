"""Whatever ends a start, nothing of the lab is left: failure, interrupt, or kill -9 followed by `down` from another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodectl.lab import faults, hosts, lifecycle
from nodectl.lab.plan import LabPlan
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState, load
from tests.conftest import Lab
from tests.lab.leftovers import leftovers

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab")]  # the session's lab stands beside, and has built the base

START = """
import sys
from pathlib import Path
from nodectl.lab.lifecycle import up
from nodectl.lab.plan import LabPlan
up(LabPlan("crash", Path(sys.argv[1]), hosts=2, disks=1, torch="none"), lambda text: print(text, flush=True))
print("up", flush=True)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    root = str(Path(__file__).parent.parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.Popen([sys.executable, "-c", START, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return
    raise AssertionError(f"the start ended before it said {line!r}: {process.stderr.read() if process.stderr else ''}")


def known(folder: Path) -> LabState:
    state = load(folder)
    assert state is not None
    return state


def test_up_and_down_leave_nothing_and_touch_no_other_lab(tmp_path: Path, lab: Lab) -> None:
    folder = tmp_path / "new/lab"
    state = lifecycle.up(LabPlan("small", folder, hosts=1, disks=1, torch="none"))
    assert leftovers(state.id, folder)  # the look for leftovers does see a lab
    assert state.net != lab.state.net
    assert lifecycle.down(folder) is True
    assert leftovers(state.id, folder) == []
    assert not (tmp_path / "new").exists()
    assert lifecycle.down(folder) is False
    assert lab.ssh("n1", "true").returncode == 0


@pytest.mark.parametrize("moment", ["starting n1", "starting n2", "up"])
def test_after_kill_9_down_from_another_process_leaves_nothing(tmp_path: Path, moment: str) -> None:
    folder = tmp_path / "lab"
    process = start(folder)
    wait_for(process, moment)
    state = known(folder)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert lifecycle.down(folder) is True
    assert leftovers(state.id, folder) == []


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.45, 0.8])
def test_an_interrupt_takes_away_what_was_started(tmp_path: Path, delay: float) -> None:
    folder = tmp_path / "lab"
    process = start(folder)
    assert process.stdout is not None
    wait_for(process, "starting n1")
    state = known(folder)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    if "up" not in output.splitlines():
        assert "KeyboardInterrupt" in errors
        assert process.returncode != 0
        assert leftovers(state.id, folder) == []
    lifecycle.down(folder)
    assert leftovers(state.id, folder) == []


def test_a_failure_in_the_middle_takes_away_what_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lab"
    seen: list[LabState] = []

    def fails(state: LabState, host: object) -> str:
        seen.append(state)
        raise LabProblem("it did not boot")

    monkeypatch.setattr(hosts, "await_boot", fails)
    with pytest.raises(LabProblem, match="it did not boot"):
        lifecycle.up(LabPlan("small", folder, hosts=1, disks=1, s3=False, torch="none"))
    assert leftovers(seen[0].id, folder) == []


def test_a_host_that_does_not_boot_is_named_with_its_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    personalise = hosts._personalise

    def without_init(state: LabState, host: object, root: Path) -> None:
        personalise(state, host, root)  # type: ignore[arg-type]
        for name in ("usr/lib/systemd/systemd", "usr/sbin/init"):
            (root / name).unlink()

    monkeypatch.setattr(hosts, "_personalise", without_init)
    monkeypatch.setattr(hosts, "START_TIMEOUT_S", 3.0)
    with pytest.raises(LabProblem, match=r"(?s)host n1 did not (start|come up).*console"):
        lifecycle.up(LabPlan("small", tmp_path / "lab", hosts=1, disks=0, s3=False, torch="none"))
    assert not (tmp_path / "lab").exists()


def test_a_start_after_a_crash_cleans_up_by_itself(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    process = start(folder)
    wait_for(process, "starting n2")
    crashed = known(folder)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    try:
        state = lifecycle.up(LabPlan("again", folder, hosts=1, disks=1, s3=False, torch="none"))
        assert state.id != crashed.id
        assert leftovers(crashed.id, tmp_path / "elsewhere") == []
    finally:
        lifecycle.down(folder)
    assert leftovers(state.id, folder) == []


def test_down_works_with_faults_applied_and_hosts_busy(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    state = lifecycle.up(LabPlan("small", folder, hosts=3, disks=1, torch="none"))
    hosts.inside(state, "n1", ["sh", "-ec", "mkfs.xfs -q /dev/nvme0n1; mkdir /s; mount /dev/nvme0n1 /s; cd /s; setsid sh -c 'exec sleep 300' >x 2>&1 &"])
    faults.apply(state, "n1", "frozen")
    faults.apply(state, "n2", "down")
    faults.apply(state, "n3", "slow-link", "1mbit")
    faults.apply(state, "", "store-frozen")
    began = time.monotonic()
    assert lifecycle.down(folder) is True
    assert time.monotonic() - began < 30
    assert leftovers(state.id, folder) == []


def test_two_labs_of_one_name_stand_side_by_side(tmp_path: Path) -> None:
    states = [lifecycle.up(LabPlan("same", tmp_path / name, hosts=1, disks=1, s3=False, torch="none")) for name in ("a", "b")]
    try:
        assert len({state.net for state in states}) == 2
        lifecycle.down(tmp_path / "a")
        assert lifecycle.status(tmp_path / "b").hosts[0].ssh
    finally:
        for name in ("a", "b"):
            lifecycle.down(tmp_path / name)
    assert [found for state in states for found in leftovers(state.id, state.dir)] == []
