"""A control group of its own for each host. Without it the hosts' systemds would share one tree and wait for each other's processes."""

from __future__ import annotations

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
