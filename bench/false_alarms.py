"""Does verification cry wolf? `python -m bench.false_alarms [--lab DIR] [--quick 24] [--preflight 6] [--write]`.

Verifies healthy lab hosts again and again, as a person does, and counts what is no pass. Without --lab it starts a lab of four hosts, prepares
them, and takes it down again. Exit status 1 where anything cried, or where a run of `quick` took longer than its minute.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lab_group import lab_at
from bench.marked import written
from nodectl.lab import lifecycle
from nodectl.lab.plan import LabPlan
from nodectl.shipped import shipped

HOSTS = 4
# What issue 3 promises for `verify --suite quick` on four lab hosts.
QUICK_S = 60.0
# A suite that hangs is a finding too: three times what preflight takes on a busy machine.
BOUND_S = 900.0
BEGIN, END = "<!-- bench/false_alarms.py -->\n", "<!-- end of bench/false_alarms.py -->\n"
PAGE = Path(__file__).parents[1] / "docs" / "faults.md"


@dataclass(frozen=True)
class Clean:
    """One run over healthy hosts. ``alarms`` are sentences, "" of them where every check of every host passed."""

    suite: str
    seconds: float
    code: int
    checks: int
    alarms: tuple[str, ...]


def alarms(report: dict[str, Any], code: int) -> tuple[str, ...]:
    """Every check that is no pass, every host that is not handed off, and an exit status that is not 0."""
    found = []
    for host, said in report.get("hosts", {}).items():
        found += [f"{host} {check['name']}: {check['verdict']}: {check['reason']}" for check in said["checks"] if check["verdict"] != "pass"]
        if said["verdict"] != "pass" and not found:
            found.append(f"{host}: verdict {said['verdict']}, status {said['status']}")
    if not report.get("hosts"):
        found.append("the run left no report")
    return tuple(found or ([f"exit status {code}"] if code else []))


def verify(inventory: Path, suite: str, folder: Path) -> Clean:
    argv = [sys.executable, "-m", "nodectl", "verify", str(inventory), "--suite", suite, "--run-dir", str(folder)]
    began = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, timeout=BOUND_S, env={**os.environ, "NO_COLOR": "1"})
    seconds = time.monotonic() - began
    path = folder / "report.json"
    report = json.loads(path.read_text()) if path.exists() else {}
    checks = sum(len(host["checks"]) for host in report.get("hosts", {}).values())
    return Clean(suite, seconds, done.returncode, checks, alarms(report, done.returncode))


@contextmanager
def prepared(folder: Path | None) -> Iterator[Path]:
    """The inventory of a lab whose hosts are prepared; one of our own where none is given."""
    if folder is not None:
        yield lab_at(folder).hosts_yaml
        return
    with tempfile.TemporaryDirectory(prefix="nodectl-false-alarms-") as space:
        own = Path(space) / "lab"
        try:
            state = lifecycle.up(LabPlan(name="clean", dir=own, hosts=HOSTS), print)
            playbook = shipped("playbooks") / "bootstrap.yml"
            argv = [sys.executable, "-m", "nodectl", "run", str(playbook), "-i", str(state.hosts_yaml), "--run-dir", f"{space}/prepare"]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, timeout=BOUND_S)
            yield state.hosts_yaml
        finally:
            lifecycle.down(own)


def table(runs: list[Clean]) -> list[str]:
    lines = ["| suite | runs | checks judged | false alarms | seconds: least | median | most |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for suite in dict.fromkeys(run.suite for run in runs):
        mine = sorted((run for run in runs if run.suite == suite), key=lambda run: run.seconds)
        cried = sum(bool(run.alarms) for run in mine)
        times = [f"{mine[place].seconds:.1f}" for place in (0, len(mine) // 2, -1)]
        lines.append(f"| {suite} | {len(mine)} | {sum(run.checks for run in mine)} | {cried} | {' | '.join(times)} |")
    return lines


def show(run: Clean, number: int) -> None:
    print(f"{number:3}  {run.suite:10} {run.seconds:6.1f} s  {run.checks:4} checks  exit {run.code}  {'all pass' if not run.alarms else ''}", flush=True)
    for alarm in run.alarms:
        print(f"     FALSE ALARM {alarm}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", type=Path, help="folder of a lab that is up, its hosts prepared")
    parser.add_argument("--quick", type=int, default=24, help="runs of suite quick")
    parser.add_argument("--preflight", type=int, default=6, help="runs of suite preflight")
    parser.add_argument("--write", action="store_true", help="put the table into docs/faults.md")
    given = parser.parse_args()
    runs: list[Clean] = []
    with prepared(given.lab) as inventory, tempfile.TemporaryDirectory(prefix="nodectl-false-alarms-") as folder:
        for number, suite in enumerate(["quick"] * given.quick + ["preflight"] * given.preflight, 1):
            runs.append(verify(inventory, suite, Path(folder) / str(number)))
            show(runs[-1], number)
    print("\n" + "\n".join(table(runs)))
    said = Counter(alarm.split(":")[0].split()[-1] for run in runs for alarm in run.alarms)
    print("what cried:", dict(said) or "nothing")
    if given.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), BEGIN, END, "\n".join(table(runs)) + "\n"), "utf-8")
    late = [run for run in runs if run.suite == "quick" and run.seconds > QUICK_S]
    return 1 if late or any(run.alarms for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
