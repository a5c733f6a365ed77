"""Verification of real hosts with real faults: a slow link, a host that freezes in the middle of a group, ranks that are killed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import nodectl.verify.group.gang as gang
from nodectl.handoff.write import write_handoff
from nodectl.lab.plan import TORCH_PYTHON
from nodectl.transport.channel import Limits, Target
from nodectl.transport.pool import Pool
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, load_suite
from nodectl.verify.trial import Node
from nodectl.wire.event import Event
from tests.conftest import Lab
from tests.verify.fleet import Seen

pytestmark = [pytest.mark.lab, pytest.mark.alone]


@pytest.fixture(scope="module", autouse=True)
def first_day(lab: Lab) -> None:
    """Hosts that are alike: what other tests installed on one of them would be seen, and rightly so."""
    lab.lift_all()
    lab.reset()


class OnLab:
    """Runs the stage on the lab's bare hosts: without disks and mounts, which are not what is tried here."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.seen = Seen()
        self.at: dict[str, Callable[[], None]] = {}
        self.threads: list[threading.Thread] = []

    def nodes(self) -> list[Node]:
        options = {"userknownhostsfile": str(self.lab.known_hosts), "identitiesonly": "yes"}
        variables = {"torch_python": TORCH_PYTHON, "disk_tier": "standard", "base_memlock": 64}
        return [Node(name, Target(name, self.lab.address(name), user="ops", key_file=str(self.lab.key), options=options), variables) for name in self.lab.names]

    def emit(self, event: Event) -> None:
        self.seen(event)
        for text, act in list(self.at.items()):
            if event.kind == "progress" and text in event.data["text"]:
                del self.at[text]
                self.threads.append(threading.Thread(target=act))
                self.threads[-1].start()

    def run(self, suite: Suite) -> dict[str, str]:
        pool = Pool(Limits())
        try:
            return dict(verify(self.nodes(), suite, pool, self.emit))
        finally:
            pool.close()
            for thread in self.threads:
                thread.join(60)

    def reasons(self) -> dict[str, str]:
        return {name: self.seen.reasons(name) for name in self.lab.names}

    def torch_processes(self, host: str) -> str:
        """What still runs torch there, a moment after the end."""
        for _ in range(50):
            found = self.lab.inside(host, "pgrep", "-fa", TORCH_PYTHON).stdout
            if not found:
                return ""
            time.sleep(0.1)
        return found


@pytest.fixture
def stage(lab: Lab) -> Iterator[OnLab]:
    lab.lift_all()
    try:
        yield OnLab(lab)
    finally:
        lab.lift_all()


def test_healthy_hosts_pass_and_train_from_the_handoff_alone(stage: OnLab, tmp_path: Path) -> None:
    assert set(stage.run(load_suite("preflight")).values()) == {"pass"}, stage.reasons()
    handoff = write_handoff(stage.seen.events, tmp_path / "handoff")
    assert (handoff.hosts, handoff.world_size) == (stage.lab.names, len(stage.lab.names))
    script = Path(gang.__file__).parents[1] / "workloads/train_ddp.py"
    before = {name: stage.lab.inside(name, "ls", "-A", "/tmp").stdout for name in stage.lab.names}
    done = subprocess.run([str(tmp_path / "handoff/torchrun.sh"), str(script), "--steps", "3"], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"[{stage.lab.names[0]}] world size {len(stage.lab.names)}, backend gloo" in done.stdout
    assert "weights equal on all ranks: yes" in done.stdout
    assert {name: stage.lab.inside(name, "ls", "-A", "/tmp").stdout for name in stage.lab.names} == before
    assert all(stage.torch_processes(name) == "" for name in stage.lab.names)


def test_a_slow_link_fails_exactly_that_host(stage: OnLab, tmp_path: Path) -> None:
    first, slow, last = stage.lab.names
    stage.lab.fault(slow, "slow-link", "100mbit")
    assert stage.run(load_suite("preflight")) == {first: "pass", slow: "fail", last: "pass"}, stage.reasons()
    assert stage.seen.check(slow, "network.pairs").data["value"] == pytest.approx(100e6 / 8, rel=0.3)
    assert "Mb/s) with" in stage.seen.reasons(slow)
    assert "expected at least" in stage.seen.reasons(slow)
    handoff = write_handoff(stage.seen.events, tmp_path)
    assert (handoff.hosts, handoff.world_size) == ((first, last), 2)


def test_a_host_that_freezes_in_the_group_is_lost_and_the_others_pass(stage: OnLab) -> None:
    first, second, frozen = stage.lab.names
    stage.at["all-reduce over"] = lambda: stage.lab.fault(frozen, "frozen")
    began = time.monotonic()
    verdicts = stage.run(load_suite("quick"))
    assert verdicts == {first: "pass", second: "pass", frozen: "unknown"}, stage.reasons()
    assert [event.host for event in stage.seen.of("host.lost")] == [frozen]
    # Silence of 20 s, the ranks' own timeouts of 40 s at most, and a group of the two that are left.
    assert time.monotonic() - began < 150
    assert all(stage.torch_processes(name) == "" for name in (first, second))


def test_ranks_that_are_killed_fail_their_host_alone(stage: OnLab) -> None:
    first, second, killed = stage.lab.names

    def kill() -> None:
        for _ in range(100):
            if stage.lab.inside(killed, "pkill", "-KILL", "-f", f"^{TORCH_PYTHON}").returncode == 0:
                return
            time.sleep(0.05)

    stage.at["all-reduce over"] = kill
    verdicts = stage.run(load_suite("quick"))
    assert verdicts == {first: "pass", second: "pass", killed: "fail"}, stage.reasons()
    assert "signal 9" in stage.seen.reasons(killed)
