"""One stage of the bootstrap on one lab host, run as a person runs it, with variables of the test's own."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nodectl.lab.plan import LAB_USER
from nodectl.shipped import shipped
from nodectl.transport.channel import BecomeTarget, Limits, Target
from nodectl.transport.pool import Pool
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.conftest import Lab

ROOT = Path(__file__).resolve().parents[2]
# As playbooks/bootstrap.yml has them; a test holds that.
STAGES = ("facts", "base", "gpu", "fabric", "storage", "cache", "hardening", "torch", "reboot")
# The longest stage here takes 20 s on two busy cores; six times that is a hang.
BOUND = 120.0


@dataclass(frozen=True)
class Played:
    """A finished run: exit code, what a person saw, report.json and events.jsonl, and how long it took in seconds."""

    code: int
    out: str
    report: dict[str, Any]
    events: list[dict[str, Any]]
    seconds: float

    def of(self, host: str) -> dict[str, Any]:
        found: dict[str, Any] = self.report["hosts"][host]
        return found

    def stats(self, host: str) -> dict[str, int]:
        found: dict[str, int] = self.of(host)["stats"]
        return found

    @property
    def changed(self) -> set[tuple[str, str]]:
        """(host, place of the task) of every change."""
        return {(event["host"], str(event["origin"])) for event in self.events if event["kind"] == "task.end" and event["status"] == "changed"}

    @property
    def reason(self) -> str:
        """Why the hosts that failed did."""
        return "\n".join(host["reason"] for host in self.report.get("hosts", {}).values() if host["reason"])


class Trial(NamedTuple):
    """The first run of a stage: foretold, real, and once more."""

    check: Played
    real: Played
    again: Played
    before: str  # the host's settings before the real run


class Stages:
    """``stages("hardening", hardening_revert_after=5)`` runs playbooks/hardening.yml on the host; ``words`` are further options."""

    def __init__(self, lab: Lab, host: str, folder: Path) -> None:
        self.lab = lab
        self.host = host
        self.folder = folder
        self._count = itertools.count(1)
        self._pool = Pool(Limits())

    def __call__(self, stage: str, *words: str, hosts: str = "", inventory: Path | None = None, **variables: Any) -> Played:
        argv, run = self._argv(stage, words, hosts, inventory, variables)
        return self._run(argv, run)

    def verify(self, suite: str, **variables: Any) -> Played:
        """`nodectl verify` of the host with a suite of the test's own, as text."""
        run = self.folder / f"run{next(self._count)}"
        path = run.with_suffix(".toml")
        path.write_text(suite)
        argv = [sys.executable, "-m", "nodectl", "verify", str(self.lab.hosts_yaml), "-l", self.host, "--suite", str(path), "--run-dir", str(run)]
        return self._run([*argv, "-e", json.dumps(variables)], run)

    def _run(self, argv: list[str], run: Path) -> Played:
        start = time.monotonic()
        done = subprocess.run(argv, capture_output=True, text=True, timeout=BOUND, env=_environment(), cwd=self.folder)
        return _played(done.returncode, done.stdout + done.stderr, run, time.monotonic() - start)

    def rehearsed(self, stage: str, **variables: Any) -> tuple[Played, Played]:
        """Check mode, then the real run."""
        return self(stage, "--check", **variables), self(stage, **variables)

    def killed(self, stage: str, moment: Callable[[], bool], **variables: Any) -> None:
        """Kill the controller without warning as soon as ``moment()`` is true; fails when the run ends before."""
        argv, _ = self._argv(stage, (), "", None, variables)
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment(), cwd=self.folder) as process:
            end = time.monotonic() + BOUND
            while not moment():
                assert process.poll() is None, process.communicate()[0]
                assert time.monotonic() < end, "the moment never came"
            process.send_signal(signal.SIGKILL)

    def do(self, module: str, check: bool = False, **args: Any) -> Outcome:
        """One module as root through an agent that stays: a tenth of a second, where a whole run takes one."""
        options = {"userknownhostsfile": str(self.lab.known_hosts)}
        address = self.lab.address(self.host)
        target = Target(self.host, address, user=LAB_USER, key_file=str(self.lab.key), options=options, python="/usr/bin/python3")
        return self._pool.channel(target, BecomeTarget()).submit(Step(next(self._count), module, args, check, True)).result(BOUND)

    def close(self) -> None:
        """Let go of the agent, also before the host loses power; the next step starts another."""
        self._pool.close()
        self._pool = Pool(Limits())

    def inside(self, *argv: str) -> str:
        """What a command prints as root in the host; fails the test where the command fails."""
        done = self.lab.inside(self.host, *argv)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def shell(self, line: str) -> str:
        return self.inside("sh", "-c", line)

    def as_user(self, line: str) -> str:
        """What a shell line prints for the lab's user over a login of its own."""
        done = self.lab.ssh(self.host, line)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def tree(self, *folders: str) -> str:
        """Names, modes, owners and contents of everything below the folders, as text that can be compared."""
        places = " ".join(folders)
        return self.shell(f"find {places} -printf '%p %y %m %U %G %l\\n' | sort; find {places} -type f -exec sha256sum {{}} + | sort")

    def settings(self) -> str:
        """All that settings are made of, as text that can be compared; without what changes by itself or by any package."""
        kept = [line for line in self.tree("/etc", "/usr/share/pam-configs").splitlines() if not re.search(r" ?/etc/(ld\.so\.cache|passwd-|shadow-|subuid-|subgid-|group-?|gshadow-?)( |$)", line)]
        return "\n".join([*kept, self.inside("sshd", "-T"), self.shell("find /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf -type f -perm -200 | sort | xargs grep -H . 2>/dev/null || true")])

    def _argv(self, stage: str, words: tuple[str, ...], hosts: str, inventory: Path | None, variables: dict[str, Any]) -> tuple[list[str], Path]:
        run = self.folder / f"run{next(self._count)}"
        playbook = shipped("playbooks") / f"{stage}.yml"
        argv = [sys.executable, "-m", "nodectl", "run", str(playbook), "-i", str(inventory or self.lab.hosts_yaml), "-l", hosts or self.host]
        return [*argv, "--run-dir", str(run), "-e", json.dumps(variables), *words], run


def until(what: Callable[[], bool], seconds: float, why: str) -> None:
    """Wait until ``what()`` is true, or fail the test with ``why``."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds:g} s: {why}"
        time.sleep(0.2)


def _environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "250", "PYTHONPATH": str(ROOT)}


def _played(code: int, out: str, run: Path, seconds: float) -> Played:
    report, journal = run / "report.json", run / "events.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    return Played(code, out, json.loads(report.read_text()) if report.exists() else {}, events, seconds)
