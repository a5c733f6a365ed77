"""Every reason why a disk must not be written on. Pure functions of what was read; they decide nothing but yes or no.

A disk stands in one of three places:
    ours    it carries the filesystem that this node's record says we made on it: it is kept, never made anew
    free    it carries nothing, or what it carries may go because the disk is named under `wipe`
    refused anything else, with the reason
"""

from __future__ import annotations

import os
from typing import AbstractSet, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from nodectl.agent.blocks import Disk
from nodectl.agent.scratch_select import numbers
from nodectl.agent.signatures import Found


class Reading(NamedTuple):
    """What was read about one selected disk. ``points`` are mount points per device number, of every namespace seen.

    ``data_at`` is the offset of data under no known signature, -1 = none. ``held`` says who holds the device, "" = nobody.
    ``openers`` work on the bare device. ``idle`` are arrays on it that nobody uses: name → the numbers of all their disks.
    """

    disk: Disk
    points: Mapping[str, Sequence[str]]
    swap: Sequence[str]
    held: str
    found: Found
    data_at: int = -1
    openers: Sequence[str] = ()
    idle: Mapping[str, Sequence[str]] = {}


class Standing(NamedTuple):
    disk: Disk
    place: str
    found: str
    reasons: Tuple[str, ...]
    record: Optional[Dict[str, Any]] = None


def record_of(records: Mapping[str, Mapping[str, Any]], found: Found) -> Optional[Dict[str, Any]]:
    """The record of the filesystem that ``found`` is, or None."""
    record = records.get(found.uuid) if found.uuid else None
    return dict(record, uuid=found.uuid) if record is not None else None


def unfinished(records: Mapping[str, Mapping[str, Any]], reading: Reading) -> Optional[Dict[str, Any]]:
    """The record of a filesystem that a broken-off run was making on this very disk after it had proven it empty.

    Its half-made filesystem has no signature yet, or the recorded UUID: anything else was put there by somebody since.
    """
    disk, found = reading.disk, reading.found
    for uuid, record in records.items():
        same = record.get("made") == "begun" and record.get("serial") == disk.serial and record.get("size") == disk.size and disk.serial
        if same and not disk.partitions and (not found or (found.uuid == uuid and not found.table and not found.others)):
            return dict(record, uuid=uuid)
    return None


def stoppable(reading: Reading, may_go: AbstractSet[str]) -> List[str]:
    """Arrays on the disk that may be stopped: nobody uses them, and the content of each of their disks may go."""
    return [name for name in reading.disk.holders if name in reading.idle and set(reading.idle[name]) <= may_go]


def in_use(reading: Reading, may_go: AbstractSet[str] = frozenset()) -> List[str]:
    """Reasons that no opt-in overrides: somebody uses the disk, or it cannot be what was meant."""
    disk = reading.disk
    reasons = []
    if disk.parent:
        reasons.append(f"it is a partition of {disk.parent}: name the whole disk")
    if disk.kind == "memory":
        reasons.append("it is memory, not a disk")
    names = numbers(disk)
    for number in sorted(reading.points):
        for point in sorted(reading.points[number]):
            what = "it" if number == disk.number else f"its partition {names.get(number, number)}"
            reasons.append(f"{what} is mounted on {point}" + (" (this system runs from it)" if point in ("/", "/boot", "/boot/efi", "/usr", "/var") else ""))
    reasons += [f"{'it' if number == disk.number else 'its partition ' + names.get(number, number)} is swap space in use" for number in sorted(reading.swap)]
    stop = stoppable(reading, may_go)
    kept = [name for name in disk.holders if name not in stop]
    if kept:
        reasons.append(f"{', '.join(kept)} is built on it (array, volume or mapping)" + _all_of(reading, kept))
    reasons += reading.openers
    if disk.slaves:
        reasons.append(f"it is itself built of {', '.join(disk.slaves)}")
    if disk.read_only:
        reasons.append("it is read-only")
    if reading.held and not reading.points and not disk.holders and not reading.swap:
        reasons.append(reading.held)
    return reasons


def _all_of(reading: Reading, holders: Sequence[str]) -> str:
    idle = [name for name in holders if name in reading.idle]
    return f"; nobody uses {', '.join(idle)}: with all of its disks under `wipe` it would be stopped" if idle else ""


def content(reading: Reading) -> str:
    """What stands on the disk, in words; "" = nothing."""
    disk, found = reading.disk, reading.found
    parts = [found.sentence()] if found else []
    if disk.partitions:
        parts.append(f"partitions {', '.join(name for name, _ in disk.partitions)}")
    if not parts and reading.data_at >= 0:
        parts.append(f"data without a known signature (first at byte {reading.data_at})")
    return " and ".join(parts)


def stand(reading: Reading, records: Mapping[str, Mapping[str, Any]], wish: Mapping[str, Any], wipe: AbstractSet[str]) -> Standing:
    """Where the disk stands. ``wish`` holds fstype, label, min_size, mount_of (uuid → mount point); ``wipe`` device numbers."""
    disk = reading.disk
    what = content(reading)
    record = record_of(records, reading.found)
    if record is not None and record.get("made") == "done":
        return Standing(disk, "ours", what, tuple(_ours(reading, record, wish)), record)
    reasons = in_use(reading, wipe)
    if wish["min_size"] and disk.size < wish["min_size"]:
        reasons.append(f"it has {disk.size} bytes, less than min_size {wish['min_size']}")
    begun = unfinished(records, reading)
    if what and begun is None and disk.number not in wipe:
        reasons.append(f"it carries {what}")
    return Standing(disk, "refused" if reasons else "free", what, tuple(reasons), begun)


def _ours(reading: Reading, record: Mapping[str, Any], wish: Mapping[str, Any]) -> List[str]:
    """What is wrong with a disk whose filesystem is recorded as ours."""
    disk, found = reading.disk, reading.found
    reasons = []
    if record.get("serial") != disk.serial:
        reasons.append(f"its filesystem {found.uuid} was made on serial {record.get('serial') or 'none'}: this is a copy or the disks were swapped")
    if found.type != wish["fstype"]:
        reasons.append(f"it carries our {found.type}, but {wish['fstype']} is asked for")
    if not found.label.startswith(wish["label"]) or found.others or found.table:
        reasons.append(f"it carries {found.sentence()}, which is not what was made there (label {record.get('label')})")
    if disk.partitions or disk.holders or reading.swap:
        reasons += [reason for reason in in_use(reading) if "mounted" not in reason] or [f"it has partitions {disk.partitions}"]
    if disk.read_only:
        reasons.append("it is read-only")
    wanted = os.path.normpath(str(record.get("mount", "")))
    elsewhere = sorted({os.path.normpath(p) for points in reading.points.values() for p in points} - {wanted})
    if elsewhere and wanted not in {os.path.normpath(p) for points in reading.points.values() for p in points}:
        reasons.append(f"it is ours, but mounted on {', '.join(elsewhere)} instead of {wanted}")
    return reasons


def advice(standing: Standing) -> str:
    """What to do about a refusal."""
    if standing.found and all(reason.startswith("it carries") or "under `wipe` it would" in reason for reason in standing.reasons):
        name = f"serial: {standing.disk.serial}" if standing.disk.serial else f"path: {standing.disk.path}"
        may_go = f"name it for this host under `wipe: [{{{name}}}]` (the role's scratch_wipe)"
        return f"take it out of `devices` (the role's scratch_devices), or, if what it carries may be lost, {may_go}"
    return "take it out of `devices` (the role's scratch_devices), or free it first; wipe does not override this"


def refusals(standings: Sequence[Standing]) -> List[str]:
    return [f"{s.disk.identity()}: {'; '.join(s.reasons)}. What to do: {advice(s)}." for s in standings if s.reasons]
