"""What of a lab is on this machine: the tests' own look, which knows nothing of the lab's state file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path


def leftovers(lab_id: str, folder: Path) -> list[str]:
    """Every trace of the lab: namespaces, interfaces, mounts, loop devices, control groups, processes, files."""
    return sorted([*_kernel(lab_id, folder), *_processes(lab_id, folder), *([f"folder {folder}"] if folder.exists() else [])])


def _kernel(lab_id: str, folder: Path) -> list[str]:
    listings = {
        "netns": (["ip", "netns"], lab_id),
        "link": (["ip", "-brief", "link"], lab_id),
        "mount": (["cat", "/proc/self/mountinfo"], str(folder)),
        "loop": (["losetup", "--list", "--noheadings"], str(folder)),
        "nspawn": (["find", "/run/systemd/nspawn", "/var/lib/machines", "/tmp", "-maxdepth", "2", "-name", f"*{lab_id}*"], lab_id),
        "cgroup": (["find", "/sys/fs/cgroup", "-maxdepth", "2", "-name", f"*{lab_id}*"], lab_id),
    }
    found = []
    for what, (argv, sign) in listings.items():
        output = subprocess.run(argv, capture_output=True, text=True, timeout=30).stdout
        found += [f"{what} {line.strip()}" for line in output.splitlines() if sign in line]
    return found


def _processes(lab_id: str, folder: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes() + b"\0" + (path / "environ").read_bytes()
        except OSError:
            continue
        if re.search(rf"NODECTL_LAB_PROCESS={lab_id}/|nodectl-\w+-{lab_id}|{re.escape(str(folder))}/".encode(), words):
            found.append(f"process {path.name} {words[:80]!r}")
    return found
