"""What copying costs: `python -m bench.copying --lab DIR [--bytes N] [--files N] [--ansible-files N]`.

One large file: the most memory that the controller and the agent ever held, and the checksums of both ends. A folder of many small files: the time
that nodectl takes, and the time of ansible-playbook (pipelining on, its fastest way) for some of them, per file. Ansible takes one exchange per
file, so that its time grows with their number; all of them would take an hour.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import yaml

from bench.lab_group import lab_at
from nodectl.lab import hosts
from nodectl.lab.state import LabState

# What either side may hold (bytes), and what part of Ansible's time a folder may take.
MOST_MEMORY = 100 * 1000 * 1000
SHARE = 0.1
LARGE, MANY, SOME = 2 * 1000 * 1000 * 1000, 10_000, 200
SMALL = 1000
PIECE = 1 << 20
# Of the process that the command's parent is: the agent.
ASK_PEAK = "grep VmHWM /proc/$PPID/status"
THERE = "/var/tmp/bench-copying"
PIPELINED = {"ANSIBLE_PIPELINING": "True", "ANSIBLE_NOCOLOR": "1"}


class Ran(NamedTuple):
    """``memory`` is the most that the process itself held, in bytes."""

    seconds: float
    memory: int


def played(argv: list[str], folder: Path, tasks: list[dict[str, object]], **environment: str) -> Ran:
    """Raises SystemExit with what was said where it fails."""
    (folder / "site.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "become": True, "tasks": tasks}]))
    began = time.monotonic()
    with open(folder / "said", "wb") as said:
        process = subprocess.Popen(argv, cwd=folder, env={**os.environ, **environment}, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((folder / "said").read_text(errors="replace")[-2000:])
    return Ran(time.monotonic() - began, usage.ru_maxrss * 1024)


def nodectl(state: LabState, host: str) -> list[str]:
    return [sys.executable, "-m", "nodectl", "run", "site.yml", "-i", str(state.hosts_yaml), "-l", host]


def ansible(state: LabState, host: str) -> list[str]:
    return [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(state.hosts_yaml), "-l", host, "site.yml"]


def on(state: LabState, host: str, line: str) -> str:
    done = hosts.inside(state, host, ("sh", "-c", line), 300)
    if done.returncode:
        raise SystemExit(f"{line}: {done.stderr}")
    return done.stdout


def large(state: LabState, host: str, folder: Path, size: int) -> bool:
    path, digest, piece = folder / "large", hashlib.sha256(), os.urandom(PIECE)
    with open(path, "wb") as file:
        for start in range(0, size, PIECE):
            part = start.to_bytes(8, "big") + piece[8 : size - start]  # no two pieces are the same
            file.write(part)
            digest.update(part)
    tasks: list[dict[str, object]] = [{"copy": {"src": str(path), "dest": f"{THERE}/large"}}, {"shell": f"{ASK_PEAK} > {THERE}/peak"}]
    ran = played(nodectl(state, host), folder, tasks)
    agent = int(on(state, host, f"cat {THERE}/peak").split()[1]) * 1024
    same = on(state, host, f"sha256sum {THERE}/large").split()[0] == digest.hexdigest()
    path.unlink()
    sums = "equal" if same else "DIFFER"
    print(f"{size / 1e9:g} GB in {ran.seconds:.1f} s: controller {ran.memory / 1e6:.0f} MB, agent {agent / 1e6:.0f} MB, checksums {sums}")
    return same and max(ran.memory, agent) < MOST_MEMORY


def many(state: LabState, host: str, folder: Path, files: int, some: int) -> bool:
    for name, count in (("many", files), ("some", some)):
        (folder / name).mkdir()
        for number in range(count):
            (folder / name / f"{number:05}").write_bytes(os.urandom(SMALL))
    ours = played(nodectl(state, host), folder, [{"copy": {"src": f"{folder}/many/", "dest": f"{THERE}/many/"}}])
    again = played(nodectl(state, host), folder, [{"copy": {"src": f"{folder}/many/", "dest": f"{THERE}/many/"}}])
    theirs = played(ansible(state, host), folder, [{"copy": {"src": f"{folder}/some/", "dest": f"{THERE}/some/"}}], **PIPELINED)
    came = int(on(state, host, f"ls {THERE}/many | wc -l"))
    expected = theirs.seconds * files / some
    print(f"{files} files: nodectl {ours.seconds:.1f} s ({came} came), again {again.seconds:.1f} s")
    print(f"Ansible {theirs.seconds:.1f} s for {some}, so {expected:.0f} s for all")
    return came == files and ours.seconds < SHARE * expected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lab", type=Path, required=True)
    for name, default in (("bytes", LARGE), ("files", MANY), ("ansible-files", SOME)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    state = lab_at(given.lab)
    host = state.hosts[0].name
    on(state, host, f"mkdir -p {THERE}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            held = large(state, host, Path(folder), given.bytes)
            quick = many(state, host, Path(folder), given.files, given.ansible_files)
    finally:
        on(state, host, f"rm -rf {THERE}")
    return 0 if held and quick else 1


if __name__ == "__main__":
    raise SystemExit(main())
