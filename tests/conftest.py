"""The lab for all tests that need real hosts, and the rule that nothing is skipped silently where everything should be there.

Fixtures:
- ``lab`` (session): a lab of three hosts with two disks each, an object store and torch; started when the first test asks for it.
  With several workers each has its own.
- ``bare_lab`` (function): the same lab with every fault lifted and every host put back to its first day (about 2 s).
Set NODECTL_TEST_LAB=DIR to use a lab that is already up; it is then left running.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodectl.lab import faults, hosts, lifecycle, needs
from nodectl.lab.plan import LAB_USER, LabPlan
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState, load
from tests.case_counts import pytest_terminal_summary  # noqa: F401 - pytest calls it
from tests.turns import turn

TEST_LABS = Path(__file__).parent.parent / ".nodectl"
# Where everything should be there, a test that could not run is a failed test.
STRICT = os.environ.get("CI") == "true"


@dataclass
class Lab:
    """The running lab, as a test uses it."""

    state: LabState

    @property
    def dir(self) -> Path:
        return self.state.dir

    @property
    def hosts_yaml(self) -> Path:
        return self.state.hosts_yaml

    @property
    def key(self) -> Path:
        return self.state.key

    @property
    def known_hosts(self) -> Path:
        return self.state.known_hosts

    @property
    def names(self) -> tuple[str, ...]:
        return self.state.names

    def address(self, host: str) -> str:
        return self.state.host(host).address

    def ssh(self, host: str, command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Runs a shell line as the lab's user over real ssh, with the lab's key and known_hosts."""
        options = [f"UserKnownHostsFile={self.known_hosts}", "IdentitiesOnly=yes", "BatchMode=yes", "ConnectTimeout=5"]
        argv = ["ssh", "-F", "none", "-i", str(self.key), *(word for option in options for word in ("-o", option)), f"{LAB_USER}@{self.address(host)}", command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=timeout)

    def inside(self, host: str, *argv: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Runs a command as root in the host, past its sshd."""
        return hosts.inside(self.state, host, argv, timeout)

    def root(self, host: str) -> Path:
        """The host's root folder as this machine sees it (without what the host has mounted)."""
        return hosts.tree(self.state, host)

    def image(self, host: str, disk: int = 0) -> Path:
        """The file behind a disk of the host."""
        return self.dir / "disks" / f"{self.state.host(host).serials[disk]}.img"

    def reset(self, *names: str) -> None:
        """Hosts as on their first day: no faults, fresh tree, empty disks, new host keys. Without names: all."""
        self.state = lifecycle.reset(self.state, names or self.names)

    def fault(self, host: str, name: str, value: str = "") -> None:
        self.state = faults.apply(self.state, host, name, value)

    def lift(self, host: str, name: str) -> None:
        self.state = faults.lift(self.state, host, name)

    def lift_all(self) -> None:
        self.state = faults.lift_all(self.state)


@pytest.fixture(autouse=True)
def blocking_streams() -> None:
    """An ssh that a test starts makes the streams it inherits non-blocking, for us too; ansible-core then refuses to start."""
    for stream in (0, 1, 2):
        os.set_blocking(stream, True)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The session's lab. Tests that change hosts beyond their own files take ``bare_lab``."""
    borrowed = os.environ.get("NODECTL_TEST_LAB")
    if borrowed:
        yield Lab(_running(Path(borrowed)))
        return
    _can_run()
    sweep()
    folder = TEST_LABS / f"test-lab-{os.getpid()}"
    try:
        yield Lab(lifecycle.up(LabPlan(name=f"t{os.getpid()}", dir=folder)))
    finally:
        lifecycle.down(folder)


@pytest.fixture
def bare_lab(lab: Lab) -> Iterator[Lab]:
    """The lab with bare hosts. Faults that the test leaves are lifted after it."""
    lab.lift_all()
    lab.reset()
    try:
        yield lab
    finally:
        lab.lift_all()


def _can_run() -> None:
    """Skips when this machine cannot carry a lab; the reason says what to change."""
    try:
        needs.require(s3=True)
        needs.require_room(LabPlan().hosts)
    except LabProblem as problem:
        pytest.skip(str(problem))


def _running(folder: Path) -> LabState:
    state = load(folder)
    assert state is not None, f"NODECTL_TEST_LAB={folder}: no lab is there"
    return state


def sweep() -> None:
    """Takes down labs of test sessions that were killed before they could do it."""
    for folder in TEST_LABS.glob("test-lab-*"):
        pid = folder.name.rpartition("-")[2]
        if not Path(f"/proc/{pid}").exists():
            lifecycle.down(folder)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """With several workers: a test marked ``alone`` runs while no other does. First of all, so that waiting is not the test's own time."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with turn(Path(item.config.option.basetemp).parent / "turns", alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """A worker that took longer than xdist's 10 s to end after Ctrl-C was killed, and its lab stayed."""
    sweep()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if STRICT and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"CI=true and this test did not run: {reason}"
    return report
