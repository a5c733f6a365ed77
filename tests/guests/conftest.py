"""Two qemu guests for all tests that need a kernel, disks or an HCA of their own. NODECTL_TEST_GUESTS=DIR borrows a lab that is up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodectl.lab import guests as lab_guests
from nodectl.lab import lifecycle, needs
from nodectl.lab.guest_qemu import COMMAND_LINE, FABRIC
from nodectl.lab.guests import LOADER_ENTRY
from nodectl.lab.plan import LAB_USER, LabPlan
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState
from tests.conftest import TEST_LABS, _running, sweep
from tests.lab.leftovers import leftovers

ROOT = Path(__file__).parents[2]
# One question to an emulated guest takes seconds, and the machine may have other work.
PATIENCE_S = 280.0
# What a boot must not undo, and what it brings: two arguments of the kernel, one of them in place of another value; pages; a module that nothing else loads.
ROLES = f"""\
- hosts: guests
  become: true
  gather_facts: true
  vars:
    base_kernel_arguments: [iommu=pt, loglevel=5]
    base_hugepages: 24
    infiniband_rxe: {FABRIC}
    infiniband_modules: [ib_uverbs, rdma_ucm, ib_umad, ib_ipoib]
  roles: [base, infiniband]
"""
# The lab's own link would hide the role's, and its guests have no boot loader whose entry a role could write.
BARE = f"systemctl disable --quiet lab-rxe.service; rdma link delete rxe0; mkdir -p $(dirname {LOADER_ENTRY}); echo options {COMMAND_LINE} > {LOADER_ENTRY}"


@dataclass
class Guests:
    """The running guests g1 and g2, each with four NVMe disks and soft-RoCE on a fabric of its own."""

    state: LabState
    runs: Path

    def inside(self, guest: str, line: str, timeout: float = 120.0) -> str:
        """A shell line as root on the guest's serial line."""
        return lab_guests.inside(self.state, guest, line, timeout)

    def ssh(self, guest: str, command: str) -> str:
        options = [f"UserKnownHostsFile={self.state.known_hosts}", "IdentitiesOnly=yes", "BatchMode=yes", "ConnectTimeout=30"]
        words = [word for option in options for word in ("-o", option)]
        argv = ["ssh", "-F", "none", "-i", str(self.state.key), *words, f"{LAB_USER}@{self.state.guest(guest).address}", command]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def cable(self, guest: str, plugged: bool) -> None:
        lab_guests.set_port(self.state, self.state.guest(guest), plugged)

    def nodectl(self, command: str, *words: str, expect: int) -> str:
        """Runs nodectl on the lab's inventory and gives back what it printed."""
        argv = [sys.executable, "-m", "nodectl", command, *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)
        assert done.returncode == expect, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def words(self, playbook: Path, limit: str = "guests", **extra: object) -> list[str]:
        """nodectl's words for a playbook, with a folder of its own for the run's journal."""
        run = tempfile.mkdtemp(dir=self.runs)
        return ["run", str(playbook), "-i", str(self.state.hosts_yaml), "-l", limit, "--run-dir", run, "-e", json.dumps(extra)]

    def play(self, playbook: Path, limit: str = "guests", expect: int = 0, **extra: object) -> str:
        return self.nodectl(*self.words(playbook, limit, **extra), expect=expect)

    def verify(self, run: Path, suite: Path, *words: str, expect: int) -> Run:
        self.nodectl("verify", str(self.state.hosts_yaml), "-l", "guests", "--suite", str(suite), "--run-dir", str(run), *words, expect=expect)
        return Run([json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()])


@dataclass
class Run:
    """The journal of one run."""

    events: Sequence[dict[str, Any]]

    def of(self, kind: str, host: str = "") -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind and (not host or event["host"] == host)]

    def check(self, host: str, name: str) -> dict[str, Any]:
        return next(event for event in self.of("check", host) if event["name"] == name)

    def verdicts(self) -> dict[str, str]:
        return {event["host"]: event["verdict"] for event in self.of("verdict")}


@pytest.fixture(scope="session")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    runs = tmp_path_factory.mktemp("runs")
    borrowed = os.environ.get("NODECTL_TEST_GUESTS")
    if borrowed:
        yield Guests(_running(Path(borrowed)), runs)
        return
    try:
        needs.require(s3=False, guests=2)
        needs.require_memory(2)
    except LabProblem as problem:
        pytest.skip(str(problem))
    sweep()
    folder = TEST_LABS / f"test-lab-guests-{os.getpid()}"
    try:
        state = lifecycle.up(LabPlan(name=f"g{os.getpid()}", dir=folder, hosts=0, guests=2, disks=4, s3=False, torch="none"))
        yield Guests(state, runs)
    finally:
        lifecycle.down(folder)
    assert leftovers(state.id, folder.absolute()) == []


@dataclass
class Provisioned:
    guests: Guests
    playbook: Path
    said: str


@pytest.fixture(scope="session")
def provisioned(guests: Guests) -> Provisioned:
    """Both guests with the roles base and infiniband, whose soft-RoCE takes the place of the lab's."""
    for name in ("g1", "g2"):
        guests.inside(name, BARE)
    playbook = guests.runs / "roles.yml"
    playbook.write_text(ROLES)
    return Provisioned(guests, playbook, guests.play(playbook))
