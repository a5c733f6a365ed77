"""A control group of its own for each host. Without it the hosts' systemds would share one tree and wait for each other's processes."""

from __future__ import annotations

import os
from pathlib import Path

from nodectl.lab.machine import until
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState

MOUNT = Path("/sys/fs/cgroup")
# Version 1 hierarchies a host is put into: systemd's own, the unified one beside it, and blkio for slow disks. Not memory
# and the others: a limit that was set on us holds for the hosts too.
LEGACY = ("systemd", "unified", "blkio")


def unified() -> bool:
    """Whether this machine has one cgroup tree (version 2)."""
    return (MOUNT / "cgroup.controllers").exists()


def name(state: LabState, host: str) -> str:
    """The group's path below each hierarchy."""
    return f"{state.prefix}/{host}"


def _hierarchies() -> list[Path]:
    if unified():
        return [MOUNT]
    return [MOUNT / part for part in LEGACY if (MOUNT / part / "cgroup.procs").exists()]


def make(group: str) -> list[Path]:
    """The group in every hierarchy that this machine has."""
    folders = [base / group for base in _hierarchies()]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def entering(folders: list[Path]) -> list[str]:
    """Words that put the process into the groups before it becomes the command after them."""
    script = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1/cgroup.procs" || exit 1; shift; n=$((n-1)); done; exec "$@"'
    return ["sh", "-c", script, "sh", str(len(folders)), *map(str, folders)]


def throttle(group: str, device: int, rate: int) -> None:
    """Limits direct reads and writes of the group on one block device (as in st_rdev) to ``rate`` bytes per second; 0 = no limit.

    Raises LabProblem where the kernel has no such throttle.
    """
    number = f"{os.major(device)}:{os.minor(device)}"
    if unified():
        _enable_io(MOUNT / group)
        limit = str(rate) if rate else "max"
        settings = {MOUNT / group / "io.max": f"{number} rbps={limit} wbps={limit}"}
    else:
        settings = {MOUNT / "blkio" / group / f"blkio.throttle.{way}_bps_device": f"{number} {rate}" for way in ("read", "write")}
    for path, text in settings.items():
        if not path.exists():
            raise LabProblem(f"this kernel cannot slow disks down ({path} is missing): it needs CONFIG_BLK_DEV_THROTTLING")
        path.write_text(text)


def _enable_io(folder: Path) -> None:
    """Version 2 has a group's io controls only when all groups above it hand the controller down."""
    for above in reversed([parent for parent in folder.parents if parent.is_relative_to(MOUNT)]):
        (above / "cgroup.subtree_control").write_text("+io")


def remove(group: str) -> None:
    """Removes the group, what the host made in it, and the lab's folder above when it was the last. The host must be off."""
    for base in _hierarchies():
        folder = base / group
        # The kernel frees a group a moment after its last process.
        if not until(lambda folder=folder: _removed(folder), 10.0):  # type: ignore[misc]
            raise LabProblem(f"control group {folder} cannot be removed: a process is still in it (see {folder}/cgroup.procs)")
        if folder.parent.exists() and not any(entry.is_dir() for entry in folder.parent.iterdir()):
            folder.parent.rmdir()


def _removed(folder: Path) -> bool:
    if not folder.exists():
        return True
    try:
        for child in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            child.rmdir()
        folder.rmdir()
    except OSError:  # busy for a moment more
        return False
    return True
