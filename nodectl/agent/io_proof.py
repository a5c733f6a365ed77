"""Did the bytes that were measured really go to the disk? The kernel's own counters of the device, where there is one; else what can be said."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional

from nodectl.agent.measured_folder import NO_DISK, mount_of
from nodectl.agent.system import Mount, System

# A sector of /sys/block/*/stat, whatever the disk's own size is (Documentation/block/stat.rst).
SECTOR = 512
# Of the bytes that a program moved: requests that began before a reading of the counters and ended after it are a small part.
ENOUGH = 0.9


class Counters(NamedTuple):
    """What a device moved since boot, in bytes. ``busy`` is the time in which it had something to do, in seconds."""

    device: str
    read: int
    written: int
    busy: float


class Proof(NamedTuple):
    """``kind`` is device, memory, direct, store, or "" for none; ``text`` says what was seen."""

    kind: str
    text: str


def counters(table: List[Mount], path: str) -> Optional[Counters]:
    """Of the device below ``path``; None for a filesystem without one (FUSE, NFS)."""
    live = mount_of(table, path)
    if live is None:
        return None
    folder = f"/sys/dev/block/{live.device}"
    if not os.path.isdir(folder) and live.source.startswith("/dev/"):  # btrfs: the mount's number is not the disk's
        try:
            number = os.stat(live.source).st_rdev
        except OSError:
            return None
        folder = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
    return read_counters(os.path.realpath(folder))


def read_counters(folder: str) -> Optional[Counters]:
    try:
        with open(os.path.join(folder, "stat"), "rb") as file:
            fields = [int(word) for word in file.read().split()]
        return Counters(os.path.basename(folder), fields[2] * SECTOR, fields[6] * SECTOR, fields[9] / 1000.0)
    except (OSError, ValueError, IndexError):
        return None


def proof(writes: bool, moved: int, before: Optional[Counters], after: Optional[Counters], said: Dict[str, Any]) -> Proof:
    """``said``: direct (the filesystem took O_DIRECT), direct_reason, fstype, size, memory (bytes)."""
    if before is not None and after is not None:
        reached = after.written - before.written if writes else after.read - before.read
        text = f"{reached} of {moved} bytes went through {after.device} by the kernel's counters"
        return Proof("device", text) if reached >= ENOUGH * moved else Proof("", f"only {text}: the rest came from a cache")
    if said["fstype"] in NO_DISK:  # newer kernels let memory take O_DIRECT
        return Proof("", f"{said['fstype']} is no disk")
    if said["memory"] and said["size"] > said["memory"]:
        return Proof("memory", f"the file has {said['size']} bytes, the memory {said['memory']}")
    if str(said["fstype"]).startswith("fuse"):
        return Proof("", f"{said['fstype']} may answer from a cache of its own")
    if said["direct"]:
        return Proof("direct", f"{said['fstype']} took O_DIRECT; it has no device here whose counters could be compared")
    return Proof("", f"the page cache was not bypassed: {said['direct_reason']}")


def memory(system: System) -> int:
    """Bytes of memory of the node; 0 when it is not told."""
    for line in (system.read("/proc/meminfo") or b"").decode().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0
