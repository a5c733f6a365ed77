"""Faults of a host's disks that this machine applies from outside: full, slow."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from nodectl.lab import cgroups, disks, hosts
from nodectl.lab.fault_kind import FaultKind, require_running
from nodectl.lab.problem import LabProblem
from nodectl.lab.rates import bytes_per_second
from nodectl.lab.state import LabHost, LabState

FILL_FILE = ".nodectl-lab-fill"
FILL_CHUNK = 1 << 20
DEFAULT_FULL_PATH = "/scratch"


def _fill(state: LabState, host: LabHost, value: str) -> None:
    """Fills a file system of the host to the last block."""
    folder = _on_own_disk(state, host, value)
    descriptor = os.open(folder / FILL_FILE, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_EXCL, 0o600)
    try:
        _fill_up(descriptor, folder)
    finally:
        os.close(descriptor)


def _fill_up(descriptor: int, folder: Path) -> None:
    """Reserves what is free in one go, then writes until the file system refuses."""
    free = os.statvfs(folder)
    size = max(0, free.f_bavail * free.f_frsize - FILL_CHUNK)
    try:
        if size:
            os.posix_fallocate(descriptor, 0, size)
        os.lseek(descriptor, 0, os.SEEK_END)
        for chunk in (FILL_CHUNK, 4096):
            _write_until_full(descriptor, chunk)
    except OSError as err:
        if err.errno != errno.ENOSPC:
            raise


def _write_until_full(descriptor: int, chunk: int) -> None:
    block = bytes(chunk)
    try:
        while os.write(descriptor, block):
            os.fsync(descriptor)
    except OSError as err:
        if err.errno != errno.ENOSPC:
            raise


def _on_own_disk(state: LabState, host: LabHost, value: str) -> Path:
    """The folder inside the host, seen from here. Refuses the host's root, which is this machine's own disk."""
    require_running(state, host)
    root = Path(f"/proc/{hosts.leader(state, host.name)}/root")
    folder = root / value.lstrip("/")
    if not value.startswith("/") or ".." in Path(value).parts or not folder.is_dir() or any(_is_link(root, value)):
        raise LabProblem(f"{value} is not a folder on {host.name}: name the mount point of one of its disks, such as {DEFAULT_FULL_PATH}")
    if folder.stat().st_dev == root.stat().st_dev:
        raise LabProblem(f"{value} on {host.name} lies on its root, which is this machine's own disk: mount one of the host's disks there first")
    return folder


def _is_link(root: Path, value: str) -> list[bool]:
    parts = Path(value).parts[1:]
    return [(root / Path(*parts[: depth + 1])).is_symlink() for depth in range(len(parts))]


def _empty(state: LabState, host: LabHost, value: str) -> None:
    if hosts.leader(state, host.name):
        (Path(f"/proc/{hosts.leader(state, host.name)}/root") / value.lstrip("/") / FILL_FILE).unlink(missing_ok=True)


def _slow_disk(state: LabState, host: LabHost, value: str) -> None:
    rate = bytes_per_second(value)
    for device in disks.attached(state, host):
        cgroups.throttle(cgroups.name(state, host.name), Path(device).stat().st_rdev, rate)


def _full_disk_speed(state: LabState, host: LabHost, value: str) -> None:
    for device in disks.attached(state, host):
        cgroups.throttle(cgroups.name(state, host.name), Path(device).stat().st_rdev, 0)


def disk_faults() -> tuple[FaultKind, ...]:
    return (
        FaultKind("disk-full", "the file system at this mount point has no free block", "mount point", _fill, _empty, default=DEFAULT_FULL_PATH),
        FaultKind("disk-slow", "the host's disks read and write only this much with direct I/O", "rate such as 20MB/s", _slow_disk, _full_disk_speed),
    )
