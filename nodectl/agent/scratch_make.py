"""The only code of nodectl that destroys: making the scratch filesystem on a disk that every guard has let through.

Nothing here decides. Each step is looked at again right before it is taken, nothing waits for a prompt (stdin is closed, no
program is given a force option), and no error path writes anything.
"""

from __future__ import annotations

import json
import os
import uuid
from typing import Any, Dict, List, Mapping, Optional

from nodectl.agent import blocks, fstab, fstab_file
from nodectl.agent.blocks import Disk
from nodectl.agent.contract import Failed
from nodectl.agent.scratch_guard import Reading
from nodectl.agent.signatures import probe
from nodectl.agent.system import System

RECORD = "/etc/nodectl/scratch.json"
# mkfs discards the whole device first; the slowest seen in the field take about a minute per terabyte.
MKFS_SECONDS = 900.0
MOUNT_SECONDS = 60.0
# How much of both ends is looked at for data under no signature: every common superblock and partition table lies within.
LOOK_BYTES = 1024 * 1024
# With nofail the boot goes on meanwhile, and only units that need the mount wait. A drive appears within 3 s; on an emulated node with a
# twentieth of a core udev needed 68 s, and with 30 s here it came up without its scratch disk and without a failed unit to tell.
DEVICE_TIMEOUT = "x-systemd.device-timeout=120s"


def read_one(system: System, disk: Disk, uses: Mapping[str, Any], swap: Any, look_at_data: bool = True) -> Reading:
    """Everything the guards ask about one disk. Reads only."""
    mine = [disk.number] + [number for _, number in disk.partitions]
    points = {number: sorted(uses[number]) for number in mine if uses.get(number)}
    held = "" if points else blocks.exclusive(disk.path)
    found = probe(system, disk.path)
    data_at = blocks.first_data(disk.path, LOOK_BYTES) if look_at_data and not found and not disk.partitions else -1
    return Reading(disk, points, [number for number in mine if number in swap], held, found, data_at)


def read_again(system: System, disk: Disk, look_at_data: bool) -> Reading:
    """The same disk, found anew by its number; raises Failed when another device answers to it now."""
    now = next((other for other in blocks.discover() if other.number == disk.number), None)
    if now is None or (now.serial, now.wwn, now.size, now.path) != (disk.serial, disk.wwn, disk.size, disk.path):
        raise Failed(f"{disk.identity()} is not there any more, or another disk has taken its place: nothing was written on it")
    return read_one(system, now, blocks.mount_uses(), blocks.swap_uses(), look_at_data)


def load_records(system: System) -> Dict[str, Dict[str, Any]]:
    """uuid → record. A record file that cannot be read as one is a failure: without it nothing can be known to be ours."""
    raw = system.read(RECORD)
    if raw is None:
        return {}
    try:
        devices = json.loads(raw.decode("utf-8"))["devices"]
        return {str(key): dict(value) for key, value in devices.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Failed(f"{RECORD} is damaged: restore it, or move it away (then no scratch filesystem is recognised as ours, and all are refused)") from None


def save_record(system: System, key: str, record: Mapping[str, Any]) -> None:
    records = load_records(system)
    records[key] = dict(record)
    os.makedirs(os.path.dirname(RECORD), mode=0o755, exist_ok=True)
    text = json.dumps({"version": 1, "devices": records}, indent=2, sort_keys=True) + "\n"
    system.write_atomic(RECORD, text.encode("utf-8"), mode=0o644)


def make(system: System, disk: Disk, wish: Mapping[str, Any], wipe: bool, begun: Optional[Mapping[str, Any]]) -> str:
    """Filesystem on ``disk``; returns its UUID, which was recorded before the first byte was written.

    So a run that is cut off in the middle finds its own half-made filesystem again, and no one else's.
    """
    old_uuid = str(begun["uuid"]) if begun else ""
    key = old_uuid or str(uuid.uuid4())
    record = {
        "made": "begun", "serial": disk.serial, "wwn": disk.wwn, "size": disk.size, "fstype": wish["fstype"], "label": wish["label"], "mount": wish["mount"],
        "path": disk.path,
    }
    save_record(system, key, record)
    if wipe or begun:
        clear(system, disk)
    done = system.run(mkfs_command(wish["fstype"], wish["label"], key, disk.path), timeout=MKFS_SECONDS)
    if done.rc != 0:
        raise Failed(f"no {wish['fstype']} could be made on {disk.identity()}: {done.stderr.strip() or done.stdout.strip()}", rc=done.rc, stderr=done.stderr)
    found = probe(system, disk.path)
    if (found.type, found.uuid) != (wish["fstype"], key):
        raise Failed(f"mkfs ended well, but {disk.identity()} now carries {found.sentence() or 'nothing'}")
    save_record(system, key, dict(record, made="done"))
    return key


def mkfs_command(fstype: str, label: str, key: str, path: str) -> List[str]:
    """Without any force option: mkfs itself then refuses what it recognises."""
    if fstype == "xfs":
        return ["mkfs.xfs", "-q", "-L", label, "-m", f"uuid={key}", path]
    # -m 0: no share kept for root on a scratch disk.
    return ["mkfs.ext4", "-q", "-m", "0", "-L", label, "-U", key, path]


def clear(system: System, disk: Disk) -> None:
    """Take signatures off partitions first, then off the disk, then make the kernel forget the partitions."""
    for name, number in disk.partitions:
        node = next((other.path for other in blocks.discover() if other.number == number), "")
        if node:
            _must(system, ["wipefs", "--all", "--quiet", node], f"{name} could not be cleared")
    _must(system, ["wipefs", "--all", "--quiet", disk.path], f"{disk.identity()} could not be cleared")
    for name, _ in disk.partitions:
        digits = name[len(name.rstrip("0123456789")) :]
        _must(system, ["delpart", disk.path, digits], f"the kernel keeps partition {name}")


def _must(system: System, argv: List[str], what: str) -> None:
    done = system.run(argv, timeout=MOUNT_SECONDS)
    if done.rc != 0:
        raise Failed(f"{what}: {done.stderr.strip() or f'exit code {done.rc}'}", rc=done.rc, stderr=done.stderr)


def entry_for(key: str, point: str, fstype: str, opts: str) -> fstab.Entry:
    """By UUID; the boot goes on without the disk. Only ext4 is checked at boot (pass 2); xfs checks itself when mounted."""
    return fstab.Entry(f"UUID={key}", point, fstype, f"{opts},nofail,{DEVICE_TIMEOUT}", "0", "2" if fstype == "ext4" else "0")


def mount(system: System, path: str, entry: fstab.Entry, opts: str) -> None:
    """Mount, prove it, and only then write the line into fstab."""
    os.makedirs(entry.point, mode=0o755, exist_ok=True)
    _must(system, ["mount", "-t", entry.fstype, "-o", opts, path, entry.point], f"{path} could not be mounted on {entry.point}")
    if not any(m.target == os.path.realpath(entry.point) and m.fstype == entry.fstype for m in system.mounts()):
        raise Failed(f"mount ended well, but {entry.point} is not in the mount table")
    silent = system.probe(entry.point, 10.0)
    if silent:
        raise Failed(f"{entry.point} is mounted but does not answer: {silent}")


def persist(system: System, entry: fstab.Entry) -> None:
    """One line in fstab."""
    text = fstab_file.load(system)
    new = fstab.with_entry(text, entry)
    if new != text:
        fstab_file.store(system, new)
