"""The command line as a person starts it, and what it leaves behind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import Lab

# A whole bootstrap of three lab hosts takes about a minute on two cores; five times that is a hang.
BOUND = 300.0


@dataclass
class Run:
    """One finished run: exit code, what a person saw, and the run's folder."""

    code: int
    out: str
    seconds: float
    folder: Path
    report: dict[str, Any] = field(default_factory=dict)

    def host(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.report["hosts"][name]
        return found

    def changed(self) -> dict[str, int]:
        return {name: host["stats"]["changed"] for name, host in self.report["hosts"].items()}

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def handoff(self, name: str) -> str:
        return (self.folder / "handoff" / name).read_text()


def environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}


def argv(folder: Path, words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "nodectl", *words, "--run-dir", str(folder)]


def nodectl(folder: Path, *words: str) -> Run:
    """Run it to its end."""
    start = time.monotonic()
    done = subprocess.run(argv(folder, words), capture_output=True, text=True, timeout=BOUND, env=environment())
    return _finished(done.returncode, done.stdout + done.stderr, time.monotonic() - start, folder)


def nodectl_until(folder: Path, moment: Callable[[dict[str, Any]], bool], then: Callable[[], None], *words: str) -> Run:
    """Run it, and do ``then`` as soon as the journal holds an event for which ``moment`` is true."""
    start = time.monotonic()
    with subprocess.Popen(argv(folder, words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()) as process:
        _await(folder / "events.jsonl", moment, process)
        then()
        out, _ = process.communicate(timeout=BOUND)
    return _finished(process.returncode, out, time.monotonic() - start, folder)


def _await(journal: Path, moment: Callable[[dict[str, Any]], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + BOUND
    while time.monotonic() < end:
        lines = journal.read_text().splitlines() if journal.exists() else []
        if any(moment(json.loads(line)) for line in lines if line.endswith("}")):
            return
        assert process.poll() is None, "the run ended before the moment came"
        time.sleep(0.05)
    raise AssertionError("the moment never came")


def _finished(code: int, out: str, seconds: float, folder: Path) -> Run:
    report = folder / "report.json"
    return Run(code, out, seconds, folder, json.loads(report.read_text()) if report.exists() else {})


def etc_of(lab: Lab, host: str) -> str:
    """One hash over names, modes, owners, link targets and contents of /etc."""
    script = "find /etc -printf '%p %y %m %U %G %l\\n' | sort; find /etc -type f -exec sha256sum {} + | sort"
    done = lab.inside(host, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    return hashlib.sha256(done.stdout.encode()).hexdigest()


def image_hash(path: Path) -> str:
    """sha256 over the written parts of a sparse image and their places: holes are zeros and take no time."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        at = 0
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            until = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            file.seek(at)
            data = file.read(until - at)
            if data.strip(b"\0"):
                digest.update(at.to_bytes(8, "big") + data)
            at = until
    return digest.hexdigest()
