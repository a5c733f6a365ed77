"""A control group of its own for each host. Without it the hosts' systemds would share one tree and wait for each other's processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nodectl.lab.machine import until
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState

MOUNT = Path("/sys/fs/cgroup")
# Version 1 hierarchies a host is put into: systemd's own, the unified one beside it, and blkio for slow disks. Not memory
# and the others: a limit that was set on us holds for the hosts too.
LEGACY = ("systemd", "unified", "blkio")
# The kernel's own period. Shorter ones cost more, longer ones let a rank run unhindered for a whole all-reduce.
PERIOD_US = 100_000


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
        _enable(MOUNT / group, "io")
        limit = str(rate) if rate else "max"
        settings = {MOUNT / group / "io.max": f"{number} rbps={limit} wbps={limit}"}
    else:
        settings = {MOUNT / "blkio" / group / f"blkio.throttle.{way}_bps_device": f"{number} {rate}" for way in ("read", "write")}
    for path, text in settings.items():
        if not path.exists():
            raise LabProblem(f"this kernel cannot slow disks down ({path} is missing): it needs CONFIG_BLK_DEV_THROTTLING")
        path.write_text(text)


def _processor() -> Path:
    """Entered only while a host is starved: until then a limit of the processor that was set on us holds for the hosts too."""
    return MOUNT / "cpu"


def starve(group: str, percent: int, pids: Sequence[int]) -> None:
    """Lets ``pids``, and what they start, have ``percent`` of one core together; 0 = all of it again.

    Raises LabProblem where the kernel has no such limit.
    """
    if unified():
        _enable(MOUNT / group, "cpu")
        _write_limit(MOUNT / group / "cpu.max", f"{percent * PERIOD_US // 100 if percent else 'max'} {PERIOD_US}")
        return
    folder = _processor() / group
    if not percent:
        _let_go(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    _write_limit(folder / "cpu.cfs_period_us", str(PERIOD_US))
    _write_limit(folder / "cpu.cfs_quota_us", str(percent * PERIOD_US // 100))
    for pid in pids:
        _enter(folder, pid)


def _write_limit(path: Path, text: str) -> None:
    if not path.exists():
        raise LabProblem(f"this kernel cannot hold a host's processor time back ({path} is missing): it needs CONFIG_CFS_BANDWIDTH")
    path.write_text(text)


def _enter(folder: Path, pid: int) -> None:
    # A process that ended while we looked needs no limit.
    with suppress(ProcessLookupError):
        (folder / "cgroup.procs").write_text(str(pid))


def _let_go(folder: Path) -> None:
    """Back to the root of the hierarchy, again and again: what is started meanwhile is in the group too."""

    def empty() -> bool:
        for pid in (folder / "cgroup.procs").read_text().split():
            _enter(_processor(), int(pid))
        return not (folder / "cgroup.procs").read_text()

    if folder.exists() and until(empty, 10.0):
        _remove_from(_processor(), folder)


def _enable(folder: Path, controller: str) -> None:
    """Version 2 has a group's controls only when all groups above it hand the controller down."""
    for above in reversed([parent for parent in folder.parents if parent.is_relative_to(MOUNT)]):
        (above / "cgroup.subtree_control").write_text(f"+{controller}")


def remove(group: str) -> None:
    """Removes the group, what the host made in it, and the lab's folder above when it was the last. The host must be off."""
    for base in [*_hierarchies(), *([] if unified() else [_processor()])]:
        _remove_from(base, base / group)


def _remove_from(base: Path, folder: Path) -> None:
    # The kernel frees a group a moment after its last process.
    if not until(lambda: _removed(folder), 10.0):
        raise LabProblem(f"control group {folder} cannot be removed: a process is still in it (see {folder}/cgroup.procs)")
    above = folder.parent
    if above != base and above.exists() and not any(entry.is_dir() for entry in above.iterdir()):
        above.rmdir()


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
