"""The only code of nodectl that destroys: making the scratch filesystem on a disk that every guard has let through.

Nothing here decides. Each step is looked at again right before it is taken, nothing waits for a prompt (stdin is closed, no
program is given a force option), and no error path writes anything.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from nodectl.agent import blocks, fstab, fstab_file, md
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


def resolve(selectors: Sequence[Any]) -> Dict[str, str]:
    """Paths as written → the device number they lead to now, links followed."""
    found = {}
    for selector in selectors:
        path = str(selector.get("path", "")) if isinstance(selector, Mapping) else ""
        try:
            info = os.stat(path) if path else None
        except OSError:
            continue
        if info is not None and stat.S_ISBLK(info.st_mode):
            found[path] = blocks.number_of(info.st_rdev)
    return found


class Users(NamedTuple):
    """Who uses what on this node: mount points, swap space and workers on the bare device per device number; arrays that nobody uses."""

    mounts: Mapping[str, Set[str]]
    swap: Set[str]
    openers: Mapping[str, Sequence[str]]
    idle: Mapping[str, Tuple[str, ...]]


def read_users(disks: Sequence[Disk], chosen: Sequence[Disk]) -> Users:
    """Reads only. Processes are asked about only for disks that nobody is seen to use yet: that reads all of /proc."""
    uses, swap = blocks.mount_uses(), blocks.swap_uses()
    arrays = [disk for disk in disks if disk.kind == "md" and not disk.parent]
    unseen = [disk for disk in [*chosen, *arrays] if not any(uses.get(number) for number in _numbers(disk))]
    openers = blocks.openers({number for disk in unseen for number in _numbers(disk)})
    by_name = {disk.name: disk for disk in disks}
    idle = {}
    for disk in arrays:
        busy = disk not in unseen or disk.holders or any(number in swap or number in openers for number in _numbers(disk))
        if not busy and not (disk.size and blocks.exclusive(disk.path)):
            idle[disk.name] = tuple(_whole(by_name, name) for name in disk.slaves)
    return Users(uses, swap, openers, idle)


def _numbers(disk: Disk) -> List[str]:
    return [disk.number] + [number for _, number in disk.partitions]


def _whole(by_name: Mapping[str, Disk], name: str) -> str:
    """The number of the disk that a member of an array lies on; "" for one that has no node."""
    disk = by_name.get(name)
    if disk is not None and disk.parent:
        disk = by_name.get(disk.parent)
    return disk.number if disk is not None else ""


def read_one(system: System, disk: Disk, users: Users) -> Reading:
    """Everything the guards ask about one disk. Reads only."""
    mine = _numbers(disk)
    points = {number: sorted(users.mounts[number]) for number in mine if users.mounts.get(number)}
    held = "" if points else blocks.exclusive(disk.path)
    found = probe(system, disk.path)
    data_at = blocks.first_data(disk.path, LOOK_BYTES) if not found and not disk.partitions else -1
    openers = [who for number in mine for who in users.openers.get(number, ())]
    idle = {name: users.idle[name] for name in disk.holders if name in users.idle}
    return Reading(disk, points, [number for number in mine if number in users.swap], held, found, data_at, openers, idle)


def read_again(system: System, disks: Sequence[Disk]) -> List[Reading]:
    """The same disks, found anew by their numbers; raises Failed when another device answers to one of them now."""
    there = {disk.number: disk for disk in blocks.discover()}
    for disk in disks:
        now = there.get(disk.number)
        if now is None or (now.serial, now.wwn, now.size, now.path) != (disk.serial, disk.wwn, disk.size, disk.path):
            raise Failed(f"{disk.identity()} is not there any more, or another disk has taken its place: nothing was written on it")
    again = [there[disk.number] for disk in disks]
    users = read_users(list(there.values()), again)
    return [read_one(system, disk, users) for disk in again]


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


def save_record(system: System, key: str, record: Mapping[str, Any], drop: Sequence[str] = ()) -> None:
    records = load_records(system)
    records[key] = dict(record)
    os.makedirs(os.path.dirname(RECORD), mode=0o755, exist_ok=True)
    text = json.dumps({"version": 1, "devices": {one: records[one] for one in records if one not in drop}}, indent=2, sort_keys=True) + "\n"
    system.write_atomic(RECORD, text.encode("utf-8"), mode=0o644)


def superseded(records: Mapping[str, Mapping[str, Any]], key: str) -> List[str]:
    """Records of what lay on the disks of the finished record ``key`` before it was made."""
    mine = records.get(key, {})
    disks = set(str(mine.get("serial", "")).split("+")) - {""}
    return [one for one, record in records.items() if one != key and mine.get("made") == "done" and disks & set(str(record.get("serial", "")).split("+"))]


def make(system: System, readings: Sequence[Reading], wish: Mapping[str, Any], begun: Optional[Mapping[str, Any]]) -> Tuple[str, Disk]:
    """Filesystem on one disk, or on an array of several; returns its UUID, which was recorded before the first byte was written, and its device.

    So a run that is cut off in the middle finds its own half-made filesystem again, and no one else's. ``wish`` holds fstype, label, mount,
    serial, and for an array name and chunk (bytes).
    """
    disks = [reading.disk for reading in readings]
    key = str(begun["uuid"]) if begun else str(uuid.uuid4())
    record = {
        "made": "begun", "serial": wish["serial"], "wwn": disks[0].wwn, "size": disks[0].size, "path": disks[0].path,
        "fstype": wish["fstype"], "label": wish["label"], "mount": wish["mount"],
    }
    if wish.get("chunk"):
        record.update(array=str(uuid.uuid4()), name=wish["name"], chunk=wish["chunk"], members=[disk.serial for disk in disks], wwn="", path="")
    save_record(system, key, record)
    clear_all(system, readings, begun is not None)
    target = _build(system, disks, record) if wish.get("chunk") else disks[0]
    md.must(system, mkfs_command(record, len(disks), key, target.path), f"no {wish['fstype']} could be made on {target.identity()}", MKFS_SECONDS)
    found = probe(system, target.path)
    if (found.type, found.uuid) != (wish["fstype"], key):
        raise Failed(f"mkfs ended well, but {target.identity()} now carries {found.sentence() or 'nothing'}")
    save_record(system, key, dict(record, made="done"))
    return key, target


def clear_all(system: System, readings: Sequence[Reading], begun: bool = False) -> None:
    """What the guards have just let through goes: arrays that hold these disks and that nobody uses, then what the disks carry."""
    stop = {name for reading in readings for name in reading.disk.holders}
    for disk in blocks.discover():
        if disk.name in stop:
            md.stop(system, disk.path)
    for reading in readings:
        if reading.found or reading.disk.partitions or begun:
            clear(system, reading.disk)


def clear_stale(system: System, array: Disk) -> None:
    """What an older array had at the same places shines through a new one; none of its disks had anything to keep, so it goes."""
    if probe(system, array.path):
        clear(system, array)


def _build(system: System, disks: Sequence[Disk], record: Mapping[str, Any]) -> Disk:
    array = md.create(system, md.Array(record["name"], record["array"], "raid0", record["chunk"], tuple(disks)))
    clear_stale(system, array)
    return array


def mkfs_command(record: Mapping[str, Any], disks: int, key: str, path: str) -> List[str]:
    """Without any force option: mkfs itself then refuses what it recognises."""
    chunk = int(record.get("chunk", 0))
    if record["fstype"] == "xfs":
        # The log keeps pieces of 32 KiB: with the data's unit each small synced write would be padded to a whole chunk.
        wide = ["-d", f"su={chunk},sw={disks}", "-l", "su=32k"] if chunk else []
        return ["mkfs.xfs", "-q", "-L", record["label"], "-m", f"uuid={key}", *wide, path]
    # In blocks of 4 KiB; -b says so, for on a small disk mkfs would choose 1 KiB.
    wide = ["-b", "4096", "-E", f"stride={chunk // 4096},stripe_width={chunk * disks // 4096}"] if chunk else []
    # -m 0: no share kept for root on a scratch disk.
    return ["mkfs.ext4", "-q", "-m", "0", "-L", record["label"], "-U", key, *wide, path]


def clear(system: System, disk: Disk) -> None:
    """Take signatures off partitions first, then off the disk, then make the kernel forget the partitions."""
    for name, number in disk.partitions:
        node = next((other.path for other in blocks.discover() if other.number == number), "")
        if node:
            md.must(system, ["wipefs", "--all", "--quiet", node], f"{name} could not be cleared")
    md.must(system, ["wipefs", "--all", "--quiet", disk.path], f"{disk.identity()} could not be cleared")
    for name, _ in disk.partitions:
        digits = name[len(name.rstrip("0123456789")) :]
        md.must(system, ["delpart", disk.path, digits], f"the kernel keeps partition {name}")


def entry_for(key: str, point: str, fstype: str, opts: str) -> fstab.Entry:
    """By UUID; the boot goes on without the disk. Only ext4 is checked at boot (pass 2); xfs checks itself when mounted."""
    return fstab.Entry(f"UUID={key}", point, fstype, f"{opts},nofail,{DEVICE_TIMEOUT}", "0", "2" if fstype == "ext4" else "0")


def mount(system: System, path: str, entry: fstab.Entry, opts: str) -> None:
    """Mount, prove it, and only then write the line into fstab."""
    os.makedirs(entry.point, mode=0o755, exist_ok=True)
    md.must(system, ["mount", "-t", entry.fstype, "-o", opts, path, entry.point], f"{path} could not be mounted on {entry.point}", MOUNT_SECONDS)
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
