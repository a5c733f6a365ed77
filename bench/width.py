"""Does preparing a node take longer among many? `python -m bench.width [--widths 4,8,12] [--write]`.

For each width: a fresh lab of that many hosts, all of them prepared side by side by the shipped playbooks, as `nodectl bootstrap` does before it
verifies. Lab hosts share this machine's cores, so what is compared is time per node: it must not grow with the number of nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.marked import written
from nodectl.lab import lifecycle
from nodectl.lab.plan import LabPlan
from nodectl.shipped import shipped

# The most that the widest may need per node, of the narrowest: beyond it something grows with the fleet.
MOST = 1.25
BOUND_S = 1500.0
BEGIN, END = "<!-- bench/width.py -->\n", "<!-- end of bench/width.py -->\n"
PAGE = Path(__file__).parents[1] / "docs" / "faults.md"


@dataclass(frozen=True)
class Width:
    """``seconds`` until all ``hosts`` are prepared; ``again`` for the second run, which changes nothing; ``cpu`` of the controller in the first."""

    hosts: int
    seconds: float
    again: float
    cpu: float

    @property
    def per_node(self) -> float:
        return self.seconds / self.hosts


def prepare(inventory: Path, folder: Path, hosts: int, changes: bool) -> tuple[float, float]:
    """(seconds, the controller's CPU seconds). Raises SystemExit where a host was not prepared, or one changed that was."""
    playbook = shipped("playbooks") / "bootstrap.yml"
    argv = [sys.executable, "-m", "nodectl", "run", str(playbook), "-i", str(inventory), "--run-dir", str(folder), "--forks", str(hosts)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, timeout=BOUND_S, env={**os.environ, "NO_COLOR": "1"})
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{hosts} hosts were not prepared (exit status {done.returncode}):\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    changed = {name: host["stats"]["changed"] for name, host in json.loads((folder / "report.json").read_text())["hosts"].items()}
    if len(changed) != hosts or any(bool(count) != changes for count in changed.values()):
        raise SystemExit(f"expected {'changes on' if changes else 'no change on any of'} {hosts} hosts, found {changed}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(hosts: int) -> Width:
    with tempfile.TemporaryDirectory(prefix="nodectl-width-") as space:
        folder = Path(space) / "lab"
        try:
            state = lifecycle.up(LabPlan(name=f"w{hosts}", dir=folder, hosts=hosts))
            seconds, cpu = prepare(state.hosts_yaml, Path(space) / "first", hosts, changes=True)
            again, _ = prepare(state.hosts_yaml, Path(space) / "second", hosts, changes=False)
        finally:
            lifecycle.down(folder)
    return Width(hosts, seconds, again, cpu)


def table(found: list[Width]) -> list[str]:
    lines = [
        "| hosts side by side | all prepared after | per node | controller's CPU per node | once more, nothing to change | per node |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        figures = (f"{one.seconds:.1f} s", f"{one.per_node:.2f} s", f"{one.cpu / one.hosts:.2f} s", f"{one.again:.1f} s", f"{one.again / one.hosts:.2f} s")
        lines.append(f"| {one.hosts} | {' | '.join(figures)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", default="4,8,12", help="numbers of hosts, with commas between")
    parser.add_argument("--write", action="store_true", help="put the table into docs/faults.md")
    given = parser.parse_args()
    found = []
    for hosts in map(int, given.widths.split(",")):
        found.append(measure(hosts))
        print(f"{hosts} hosts: {found[-1].seconds:.1f} s, {found[-1].per_node:.2f} s per node", flush=True)
    print("\n" + "\n".join(table(found)))
    if given.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), BEGIN, END, "\n".join(table(found)) + "\n"), "utf-8")
    return 0 if found[-1].per_node <= MOST * found[0].per_node else 1


if __name__ == "__main__":
    sys.exit(main())
