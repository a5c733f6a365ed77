"""Several disks as one: which layout, with which chunk, and where a set of disks stands that is to be one striped array. Pure.

The set is shown, recorded and guarded as one disk whose serial is made of its members' serials: the same set in another order is the same.
"""

from __future__ import annotations

from typing import AbstractSet, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from nodectl.agent import md, md_conf
from nodectl.agent.blocks import Disk, human
from nodectl.agent.scratch_guard import Reading, Standing, content, in_use, stand

MEMBER = "linux_raid_member"
LEVEL = "raid0"
Records = Mapping[str, Mapping[str, Any]]


class Stood(NamedTuple):
    """What filesystems are made on (one per mount point), and the disks below them that must not be touched."""

    targets: List[Standing]
    refused: List[Standing]


def set_serial(disks: Sequence[Disk]) -> str:
    """ "" when a member has none: then nobody could tell the set again."""
    serials = sorted(disk.serial for disk in disks)
    return "+".join(serials) if all(serials) else ""


def records_of_set(records: Records, disks: Sequence[Disk]) -> Dict[str, Dict[str, Any]]:
    """Bare array UUID → record, of the arrays that were made of exactly these disks."""
    serial = set_serial(disks)
    return {
        md_conf.bare(str(record["array"])): dict(record, uuid=uuid) for uuid, record in records.items()
        if serial and record.get("array") and record.get("serial") == serial
    }


def choose(wished: str, disks: Sequence[Disk], records: Records, no_md: str) -> Tuple[str, str]:
    """(layout, why). What was made on these disks stays, also when it has to be made again; new disks are striped where they can be."""
    if wished != "auto":
        return wished, "as wished"
    if len(disks) < 2:
        return "single", "one disk"
    if records_of_set(records, disks):
        return LEVEL, "these disks were striped already"
    if any(record.get("serial") == disk.serial and record.get("made") == "done" for record in records.values() for disk in disks if disk.serial):
        return "each", "these disks were made one by one already"
    if no_md:
        return "each", f"not striped: {no_md}"
    sizes = sorted({disk.size for disk in disks})
    if len(sizes) > 1:
        return "each", f"not striped: the disks differ in size ({', '.join(map(human, sizes))}), and a stripe would leave the rest of the larger ones"
    if not set_serial(disks):
        return "each", "not striped: a disk without a serial could not be told again in the set"
    return LEVEL, f"{len(disks)} disks of the same size: one large file is read and written on all of them at once"


def problems(disks: Sequence[Disk], no_md: str, chunk: Optional[int]) -> List[str]:
    """Why these disks cannot be one array, whatever they carry."""
    out = [f"layout raid0 cannot be had here: {no_md}; choose layout each"] if no_md else []
    if len(disks) < 2:
        out.append(f"layout raid0 takes at least two disks, and {len(disks)} is selected; choose layout single")
    if len({disk.size for disk in disks}) > 1:
        out.append(f"layout raid0 takes disks of one size ({', '.join(disk.identity() for disk in disks)}); choose layout each")
    if disks and not set_serial(disks):
        out.append("layout raid0 takes disks with serials: without them nobody could tell the set again; choose layout each")
    if chunk is None or chunk < 4096 or chunk & (chunk - 1):
        out.append("chunk must be a power of two of at least 4KiB, such as 512KiB")
    return out


def explain(chunk: int, count: int, fstype: str) -> List[str]:
    """The numbers of a striped set, each with its reason."""
    wide = "su=chunk, sw=disks" if fstype == "xfs" else "stride=chunk, stripe_width=chunk x disks, in blocks of 4 KiB"
    return [
        f"chunk {chunk // 1024} KiB: a request of {chunk * count // 1024} KiB reaches all {count} disks, each with a piece long enough for its full speed",
        f"{fstype} knows the stripes ({wide}): files begin where a stripe does, and a write of whole stripes reads nothing before",
    ]


def as_disk(disks: Sequence[Disk], name: str, built: Optional[Disk]) -> Disk:
    """The set as one disk; ``built`` is the array where it is there, running or not."""
    size = sum(disk.size for disk in disks)
    runs = built if built is not None and built.size else Disk(md.path_of(name), "", "", "md", "", "", "", size, False, (), (), (), (), "")
    return runs._replace(name=built.name if built else "", serial=set_serial(disks), wwn="", model=f"raid0 of {len(disks)}", by_id=(), slaves=())


def stand_set(
    readings: Sequence[Reading], array: Optional[Reading], records: Records, wish: Mapping[str, Any], wipe: AbstractSet[str],
) -> Stood:
    """Where the set stands. ``array`` is what was read about the array of exactly these disks, None where there is none.

    ours: all members carry the array that was recorded, with its filesystem or not yet assembled. free: it may be made, because no member
    carries anything, or only what we made there for this very set (a member that came back empty takes the stripes of the others with it).
    """
    disks = [reading.disk for reading in readings]
    mine = records_of_set(records, disks)
    carried = {reading.disk.number: array_of(reading) for reading in readings}
    whole = as_disk(disks, wish["label"], array.disk if array else None)
    uuids = set(carried.values())
    record = mine.get(uuids.pop()) if len(uuids) == 1 else None
    if record is not None and record.get("made") == "done":
        found = _intact(readings, array, whole, record, wish, wipe)
        if found is not None:
            return found
    may_go = set(wipe) | {number for number, uuid in carried.items() if uuid in mine}
    if any(one.get("made") == "begun" for one in mine.values()):
        # A run that was cut off had cleared this disk, or was writing inside the array on it: what has no signature is its own.
        may_go |= {reading.disk.number for reading in readings if not reading.found}
    members = [stand(reading, {}, wish, may_go) for reading in readings]
    parts = [f"{member.disk.path}: {member.found}" for member in members if member.found]
    return Stood([Standing(whole, "free", "; ".join(parts), (), None)], [member for member in members if member.reasons])


def array_of(reading: Reading) -> str:
    """The bare UUID of the array that the disk is a member of, and nothing else; "" = of none."""
    found = reading.found
    return md_conf.bare(found.uuid) if found.type == MEMBER and not found.others and not found.table else ""


def _intact(
    readings: Sequence[Reading], array: Optional[Reading], whole: Disk, record: Dict[str, Any], wish: Mapping[str, Any], wipe: AbstractSet[str],
) -> Optional[Stood]:
    """All members carry the array of ``record``. None where nothing of it is left inside, and it may be made anew."""
    refused = []
    numbers = {reading.disk.number for reading in readings}
    for reading in readings:
        others = tuple(name for name in reading.disk.holders if name != whole.name)
        clean = reading._replace(disk=reading.disk._replace(holders=others), held="" if reading.disk.holders else reading.held)
        reasons = in_use(clean, numbers)
        if reasons:
            refused.append(Standing(reading.disk, "ours", content(reading), tuple(reasons), record))
    if array is None or not array.disk.size:
        return Stood([Standing(whole, "ours", "", (), record)], refused)
    inside = array._replace(disk=whole)
    if inside.found.uuid == record["uuid"]:
        target = stand(inside, {record["uuid"]: record}, wish, frozenset())
        return Stood([target], refused)
    if not content(inside) or numbers <= wipe:
        return None
    reason = f"it is our array, but it carries {content(inside)} instead of the filesystem that was made there"
    return Stood([Standing(whole, "ours", content(inside), (reason,), record)], refused)
