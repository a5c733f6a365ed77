"""scratch_disks: local disks made into scratch space, chosen by identity, with every guard passed before the first byte is written.

Layouts: `single` takes exactly one disk. `each` makes one filesystem per disk: the first on `mount`, the others on `mount` with 2, 3 …
behind it (/scratch, /scratch2, /scratch3), in the order of the selection; a disk that is ours already keeps its place. `raid0` stripes
them with md, and is refused where the kernel has none. `auto` keeps what was made on these disks; new ones it stripes where there is md
and all have one size, else it is `single` or `each`, and says why.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from nodectl.agent import blocks, fstab, md, md_conf, node_lock, scratch_array, scratch_make
from nodectl.agent.blocks import Disk, human
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.scratch_array import LEVEL, Stood
from nodectl.agent.scratch_guard import Reading, Standing, refusals, stand
from nodectl.agent.scratch_select import path_warnings, select, wiped
from nodectl.agent.signatures import Found, probe
from nodectl.agent.sizes import parse_size
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

LOCK = "scratch_disks"
# Two runs on one node: the later one waits as long as making the filesystem of one disk may take.
LOCK_SECONDS = scratch_make.MKFS_SECONDS

SPEC = Spec(
    summary="Make scratch filesystems on local disks named by identity, and mount them; refuse any disk that is used or carries something else.",
    params={
        "devices": Param("list", "disks, each as {serial} | {wwn} | {by_id} | {model, size} | {path}", required=True),
        "count": Param("int", "how many disks there must be; any other number is refused"),
        "min_size": Param("str", "smallest size that is taken, such as 500GB"),
        "layout": Param(
            "str", "single: one disk; each: one filesystem per disk; raid0: striped; auto: what was made on these disks, else raid0 where it can be had",
            default="auto", choices=("auto", "single", "each", "raid0"),
        ),
        "chunk": Param("str", "piece of a stripe on one disk (raid0)", default="512KiB"),
        "fstype": Param("str", "filesystem", default="xfs", choices=("xfs", "ext4")),
        "label": Param("str", "filesystem label (further disks get a number behind it)", default="scratch"),
        "mount": Param("path", "mount point (further disks get a number behind it)", default="/scratch"),
        "mount_opts": Param("str", "mount options; nofail and a device timeout are added in fstab", default="defaults,noatime"),
        "wipe": Param("list", "disks whose content may be lost, each as {serial} | {wwn} | {by_id} | {path}", default=[]),
        "owner": Param("str", "owner of the mounted root folder"),
        "group": Param("str", "group of the mounted root folder"),
        "mode": Param("mode", "mode of the mounted root folder", default="0755"),
    },
    returns={
        "devices": "per filesystem: path, serial (of a striped set: all, joined by +), size, kind, uuid, mount, place (ours, free), found (what it carried)",
        "layout": "what auto came to", "why": "the reasons for layout, chunk and stripes", "packages": "what the node lacks for it: package names",
        "plan": "what is done, in sentences that name each disk's serial",
        "mounts": "the mount points, first to last",
        "warnings": "names that can move between boots",
    },
    example="- scratch_disks:\n    devices: [{serial: S4YPNX0R400123}, {serial: S4YPNX0R400124}]\n    count: 2\n    layout: each\n    mount: /scratch\n",
)


def read(system: System, args: Args) -> State:
    """All disks of the node; everything the guards ask about the selected ones; records, fstab, and the mount roots.

    While another run writes on them there is nothing to be read that would still be true afterwards, so its end is waited for.
    """
    with node_lock.undisturbed(system, LOCK, LOCK_SECONDS):
        return _read(system, args)


def _read(system: System, args: Args) -> State:
    disks = blocks.discover()
    resolved = scratch_make.resolve([*args["devices"], *args["wipe"]])
    chosen, problems = select(args["devices"], disks, resolved)
    wipe, wrong = wiped(args["wipe"], chosen, resolved)
    records = scratch_make.load_records(system)
    no_md = md.without_kernel(system) if len(chosen) > 1 or args["layout"] == LEVEL else ""
    layout, why = scratch_array.choose(args["layout"], chosen, records, no_md)
    users = scratch_make.read_users(disks, chosen)
    readings, unreadable = _readings(system, chosen, users)
    names = sorted(disk.name for disk in chosen)
    arrays = [disk for disk in disks if layout == LEVEL and disk.kind == "md" and not disk.parent and sorted(disk.slaves) == names]
    array, unknown = _readings(system, arrays, users)
    here = {m.target: m.device for m in system.mounts()}
    return {
        "chosen": chosen, "problems": problems + wrong + unreadable + unknown, "wipe": wipe, "readings": readings, "resolved": resolved,
        "layout": layout, "why": why, "no_md": no_md, "array": array[0] if array else None, "records": records,
        "fstab": (system.read(fstab.PATH) or b"").decode("utf-8", "surrogateescape"), "conf": md.conf(system), "ramdisk": md.initramfs_tool(system),
        "here": here, "lacks": _lacks(system, args["fstype"], layout, no_md),
        "roots": {point: _root_facts(system, point, point in here) for point in _points(args["mount"], 1 if layout == LEVEL else len(chosen))},
    }


def _lacks(system: System, fstype: str, layout: str, no_md: str) -> Dict[str, str]:
    """Program → package, of what making it needs and this node has not."""
    needs = {f"mkfs.{fstype}": {"xfs": "xfsprogs", "ext4": "e2fsprogs"}[fstype]}
    if layout == LEVEL and not no_md:
        needs["mdadm"] = "mdadm"
    return {program: package for program, package in needs.items() if system.which(program) is None}


def _readings(system: System, chosen: Sequence[Disk], users: scratch_make.Users) -> Tuple[List[Reading], List[str]]:
    """A disk that cannot be read does not hide what is wrong with the others. An array that does not run has nothing to be read."""
    readings, problems = [], []
    for disk in chosen:
        try:
            readings.append(scratch_make.read_one(system, disk, users) if disk.size else Reading(disk, {}, (), "", Found("", "", "", "", ())))
        except (Failed, OSError) as error:
            problems.append(f"{disk.identity()} cannot be examined: {error}")
    return readings, problems


def _root_facts(system: System, point: str, mounted: bool) -> Dict[str, Any]:
    """The folder at a mount point; entries are counted only while nothing is mounted there (they would be hidden)."""
    info = system.stat(point, follow=True)
    if info is None:
        return {"exists": False}
    if not stat.S_ISDIR(info.st_mode):
        return {"exists": True, "folder": False, "entries": 0}
    entries = 0 if mounted else len(os.listdir(point))
    return {"exists": True, "folder": True, "entries": entries, "uid": info.st_uid, "gid": info.st_gid, "mode": stat.S_IMODE(info.st_mode)}


def _points(mount: str, count: int) -> List[str]:
    base = os.path.normpath(mount)
    return [base if i == 0 else f"{base}{i + 1}" for i in range(max(count, 1))]


def diff(args: Args, state: State) -> Change:
    """What would be done. Raises Failed with every reason of every disk when one of them must not be touched."""
    stood = _stand(args, state)
    problems = _problems(args, state, stood)
    if problems:
        raise Failed(
            "scratch_disks refuses, and nothing was written on any disk of this node:\n" + "\n".join(f"  - {p}" for p in problems),
            refused=problems, devices=[_shown(s, "") for s in stood.targets],
        )
    plan = _assign(args, state, stood.targets)
    change = Change(data={"plan": plan})
    for standing, point in plan:
        change.actions += _actions(args, state, standing, point)
    change.before = "".join(f"{s.disk.identity()}: {s.found or 'empty'}\n" for s, _ in plan)
    change.after = change.before if not change else "".join(f"{s.disk.identity()}: {args['fstype']} on {point}\n" for s, point in plan)
    return change


def _wish(args: Args) -> Dict[str, Any]:
    return {"fstype": args["fstype"], "label": args["label"], "min_size": parse_size(args["min_size"]) if args["min_size"] else 0}


def _stand(args: Args, state: State) -> Stood:
    if state["layout"] == LEVEL and state["chosen"]:
        return scratch_array.stand_set(state["readings"], state["array"], state["records"], _wish(args), state["wipe"])
    standings = [stand(reading, state["records"], _wish(args), state["wipe"]) for reading in state["readings"]]
    return Stood(standings, [standing for standing in standings if standing.reasons])


def _problems(args: Args, state: State, stood: Stood) -> List[str]:
    """Everything that stops the whole node, most general first."""
    chosen: List[Disk] = state["chosen"]
    problems = list(state["problems"])
    if not args["devices"]:
        problems.append("the selection is empty: `devices` names no disk; a node without scratch disks should not run this step")
    if args["count"] is not None and len(chosen) != args["count"]:
        problems.append(f"{args['count']} disks are expected (count), {len(chosen)} are found: {', '.join(d.identity() for d in chosen) or 'none'}")
    if args["min_size"] and parse_size(args["min_size"]) is None:
        problems.append(f"min_size {args['min_size']!r} is no size; write for example 500GB")
    if args["layout"] == "single" and len(chosen) > 1:
        problems.append(f"layout single takes exactly one disk, and {len(chosen)} are selected; choose layout each (or raid0)")
    if state["layout"] == LEVEL:
        problems += scratch_array.problems(chosen, state["no_md"], parse_size(args["chunk"]))
        if not md_conf.NAME.fullmatch(args["label"]):
            problems.append(f"label {args['label']!r} is the array's name too, and must be of letters, digits, dot, dash and underscore")
    longest = 12 if args["fstype"] == "xfs" else 16
    if len(args["label"]) + (1 if len(stood.targets) > 1 else 0) > longest:
        problems.append(f"label {args['label']!r} is too long for {args['fstype']} (at most {longest} characters with the number)")
    if not args["mode"].isdigit():
        problems.append(f"mode {args['mode']!r} must be octal, such as '0755'")
    if not os.path.isabs(args["mount"]) or os.path.normpath(args["mount"]) == "/":
        problems.append(f"mount {args['mount']!r} must be an absolute path other than /")
    refused = [standing for standing in stood.targets if standing.reasons and standing not in stood.refused]
    return problems + refusals([*stood.refused, *refused]) + (_busy_points(args, state, stood.targets) if args["devices"] else [])


def _busy_points(args: Args, state: State, standings: Sequence[Standing]) -> List[str]:
    """Mount points that are taken by something else, are no folder, or hold files that a mount would hide."""
    problems = []
    by_number = {s.disk.number: s for s in standings}
    for standing, point in _assign(args, state, standings):
        facts = state["roots"].get(point, {"exists": False})
        device = state["here"].get(point)
        if device is not None and device != standing.disk.number:
            other = by_number.get(device)
            problems.append(f"{point} is a mount point of {other.disk.identity() if other else 'another filesystem'} already")
        elif facts["exists"] and not facts["folder"]:
            problems.append(f"{point} is not a folder")
        elif device is None and facts["exists"] and facts["entries"]:
            problems.append(f"{point} holds {facts['entries']} entries and nothing is mounted there: a mount would hide them; move them away first")
    return problems


def _assign(args: Args, state: State, standings: Sequence[Standing]) -> List[Tuple[Standing, str]]:
    """Disk → mount point. What was recorded stays; new disks take the free places in the order of the selection."""
    points = _points(args["mount"], len(standings))
    kept = {s.disk.number: s.record["mount"] for s in standings if s.record and s.record.get("mount") in points}
    free = [point for point in points if point not in kept.values()]
    plan = [(s, kept[s.disk.number] if s.disk.number in kept else free.pop(0)) for s in standings]
    return sorted(plan, key=lambda pair: points.index(pair[1]))


def _actions(args: Args, state: State, standing: Standing, point: str) -> List[str]:
    disk, out = standing.disk, []
    if standing.place == "free":
        if standing.found:
            out.append(f"clear {disk.identity()}, which carries {standing.found}")
        if state["layout"] == LEVEL:
            out.append(f"stripe {' '.join(disk.serial for disk in state['chosen'])} (raid0, chunk {args['chunk']})")
        out.append(f"make {args['fstype']} with label {_label(args, point)} on {disk.identity()}")
    elif disk.kind == "md" and not disk.number:
        out.append(f"assemble {disk.identity()}")
    mounted = standing.place == "ours" and state["here"].get(point) == disk.number
    if not mounted:
        out.append(f"mount {disk.identity()} on {point}")
    if standing.place == "free" or not _in_fstab(args, state, standing, point):
        out.append(f"write the line for {point} into {fstab.PATH}")
    if (standing.place == "free" and state["layout"] == LEVEL) or _boot_differs(state, standing):
        out.append(f"write {md.conf_path()}" + (f", then {state['ramdisk']}" if state["ramdisk"] else ""))
    if not mounted or _root_differs(args, state["roots"].get(point, {})):
        out.append(f"set owner and mode of {point}")
    return out


def _in_fstab(args: Args, state: State, standing: Standing, point: str) -> bool:
    entry = scratch_make.entry_for((standing.record or {}).get("uuid", ""), point, args["fstype"], args["mount_opts"])
    return fstab.find(state["fstab"], point) == [entry]


def _boot_differs(state: State, standing: Standing) -> bool:
    """Whether the boot knows another array than the one that was made, or none, or its ramdisk has not been told."""
    record = standing.record or {}
    if standing.place != "ours":
        return False
    told = record.get("boot") or not record.get("array") or not state["ramdisk"]
    return _wanted_conf(state["conf"], state["records"], record) != state["conf"] or not told


def _wanted_conf(text: str, records: Mapping[str, Mapping[str, Any]], record: Mapping[str, Any]) -> str:
    gone = {str(records[key].get("array", "")) for key in scratch_make.superseded(records, str(record["uuid"]))} - {""}
    name = md.path_of(str(record.get("name", "")))
    return md_conf.with_array(text, name, str(record.get("array", "")), gone) if record.get("array") or gone else text


def _label(args: Args, point: str) -> str:
    return str(args["label"]) + point[len(os.path.normpath(args["mount"])) :]


def _ids(args: Args) -> Tuple[Optional[int], Optional[int]]:
    """(uid, gid) of owner and group; raises KeyError for names that the node does not know."""
    owner, group = args["owner"], args["group"]
    uid = None if owner is None else int(owner) if owner.isdigit() else pwd.getpwnam(owner).pw_uid
    gid = None if group is None else int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
    return uid, gid


def _root_differs(args: Args, facts: Mapping[str, Any]) -> bool:
    """True where the mounted root folder is not as wished; a user who does not exist yet counts as different."""
    try:
        uid, gid = _ids(args)
    except KeyError:
        return True
    wanted = ((uid, facts.get("uid")), (gid, facts.get("gid")), (int(args["mode"], 8), facts.get("mode")))
    return any(wish is not None and wish != have for wish, have in wanted)


def write(system: System, args: Args, state: State, change: Change) -> None:
    """Alone on this node, and from a new reading: another run may have been here since the first."""
    with node_lock.alone(system, LOCK, LOCK_SECONDS):
        state = _read(system, args)
        _write(system, args, state, diff(args, state))


def _write(system: System, args: Args, state: State, change: Change) -> None:
    """Each filesystem in turn: its disks looked at again, made, mounted, written into fstab, told to the boot."""
    try:
        uid, gid = _ids(args)
    except KeyError as unknown:
        raise Failed(f"owner or group of {args['mount']}: this node does not know {unknown}; nothing was written on any disk") from None
    plan: List[Tuple[Standing, str]] = change.data["plan"]
    for program, package in state["lacks"].items():
        if any(_needs(program, standing) for standing, _ in plan):
            raise Failed(f"{program} is not installed (package {package}); nothing was written on any disk")
    for standing, point in plan:
        if not _actions(args, state, standing, point):
            continue
        key, path = _there(system, args, state, standing, point)
        entry = scratch_make.entry_for(key, point, args["fstype"], args["mount_opts"])
        if standing.place == "free" or not standing.disk.number or state["here"].get(point) != standing.disk.number:
            scratch_make.mount(system, path, entry, args["mount_opts"])
        scratch_make.persist(system, entry)
        _tell_boot(system, key)
        os.chown(point, -1 if uid is None else uid, -1 if gid is None else gid)
        os.chmod(point, int(args["mode"], 8))


def _needs(program: str, standing: Standing) -> bool:
    """mkfs only makes; mdadm also assembles."""
    return standing.place == "free" or (program == "mdadm" and not standing.disk.number)


def _there(system: System, args: Args, state: State, standing: Standing, point: str) -> Tuple[str, str]:
    """(UUID, device) of the filesystem, which is made, or whose array is assembled, where it is not there."""
    if standing.place == "free":
        return _make(system, args, state, standing, point)
    key = str((standing.record or {})["uuid"])
    if standing.disk.number:
        return key, standing.disk.path
    disk = md.assemble(system, str((standing.record or {})["name"]), str((standing.record or {})["array"]), state["chosen"])
    found = probe(system, disk.path)
    if found.uuid != key:
        what = found.sentence() or "nothing"
        raise Failed(f"{standing.disk.identity()} was assembled, and carries {what} instead of filesystem {key}; nothing was written on it")
    return key, disk.path


def _make(system: System, args: Args, state: State, standing: Standing, point: str) -> Tuple[str, str]:
    """Guards once more on these very disks, then the filesystem."""
    striped = state["layout"] == LEVEL
    disks = state["chosen"] if striped else [standing.disk]
    now = dict(state, readings=scratch_make.read_again(system, disks), records=scratch_make.load_records(system))
    stood = _stand(args, now)
    again = stood.targets[0]
    if stood.refused or again.place != "free" or again.reasons or again.found != standing.found:
        said = "; ".join(reason for one in [again, *stood.refused] for reason in one.reasons)
        raise Failed(
            f"{standing.disk.identity()} changed while this step ran: it carried {standing.found or 'nothing'}, now "
            f"{again.found or 'nothing'} ({said or again.place}); nothing was written on it",
        )
    system.progress(f"make {args['fstype']} on {standing.disk.identity()}")
    wish: Dict[str, Any] = {"fstype": args["fstype"], "label": _label(args, point), "mount": point, "serial": again.disk.serial}
    if striped:
        wish.update(name=args["label"], chunk=parse_size(args["chunk"]))
    key, target = scratch_make.make(system, now["readings"], wish, again.record)
    return key, target.path


def _tell_boot(system: System, key: str) -> None:
    """mdadm.conf first, then the ramdisk that carries a copy of it; only then is the record of what lay there before dropped."""
    records = scratch_make.load_records(system)
    record = records[key]
    text = md.conf(system)
    new = _wanted_conf(text, records, dict(record, uuid=key))
    if new != text:
        md.write_conf(system, new)
    drop = scratch_make.superseded(records, key)
    if new != text or (record.get("array") and not record.get("boot")):
        md.renew_initramfs(system)
        record = dict(record, boot=md.initramfs_tool(system))
    if drop or record != records[key]:
        scratch_make.save_record(system, key, record, drop)


def values(args: Args, state: State, change: Change) -> Args:
    plan: List[Tuple[Standing, str]] = change.data["plan"]
    now = {standing.disk.serial or standing.disk.number: standing for standing in _stand(args, state).targets}
    shown = [(now.get(standing.disk.serial or standing.disk.number, standing), standing, point) for standing, point in plan]
    why = [f"{state['layout']}: {state['why']}"]
    if state["layout"] == LEVEL:
        why += scratch_array.explain(parse_size(args["chunk"]) or 0, len(state["chosen"]), args["fstype"])
    return {
        "devices": [_shown(there._replace(place=was.place, found=was.found), point) for there, was, point in shown],
        "layout": state["layout"], "why": why, "packages": sorted(set(state["lacks"].values())) if change else [],
        "plan": list(change.actions),
        "mounts": [point for _, point in plan],
        "warnings": path_warnings(args["devices"], state["chosen"], state["resolved"]),
    }


def _shown(standing: Standing, point: str) -> Dict[str, Any]:
    disk = standing.disk
    return {
        "path": disk.path, "serial": disk.serial, "wwn": disk.wwn, "model": disk.model, "size": disk.size, "size_text": human(disk.size), "kind": disk.kind,
        "uuid": (standing.record or {}).get("uuid", ""), "mount": point, "place": standing.place, "found": standing.found,
    }
