"""scratch_disks: local disks made into scratch space, chosen by identity, with every guard passed before the first byte is written.

Layouts: `auto` is `single` for one disk and `each` for several. `single` takes exactly one disk. `each` makes one filesystem per
disk: the first on `mount`, the others on `mount` with 2, 3 … behind it (/scratch, /scratch2, /scratch3), in the order of the
selection; a disk that is ours already keeps its place. `raid0` stripes them with mdadm, and is refused where the kernel has no md.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from nodectl.agent import blocks, fstab, node_lock, scratch_make
from nodectl.agent.blocks import Disk, human
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.scratch_guard import Reading, Standing, refusals, stand
from nodectl.agent.scratch_select import NAMING, check_selector, path_warnings, say, select
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
            "str", "single: one disk; each: one filesystem per disk; auto: the fitting one of these; raid0: striped", default="auto",
            choices=("auto", "single", "each", "raid0"),
        ),
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
        "devices": "per disk: path, serial, size, kind, uuid, mount, place (ours, free), found (what it carried)",
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
    resolved = _resolve(args)
    chosen, problems = select(args["devices"], disks, resolved)
    wipe, wrong = _wipe_set(args["wipe"], chosen, resolved)
    uses, swap = blocks.mount_uses(), blocks.swap_uses()
    readings, unreadable = _readings(system, chosen, uses, swap)
    here = {m.target: m.device for m in system.mounts()}
    return {
        "chosen": chosen, "problems": problems + wrong + unreadable, "wipe": wipe, "readings": readings, "resolved": resolved,
        "records": scratch_make.load_records(system), "fstab": (system.read(fstab.PATH) or b"").decode("utf-8", "surrogateescape"),
        "here": here, "md": os.path.exists("/proc/mdstat") and system.which("mdadm") is not None,
        "roots": {point: _root_facts(system, point, point in here) for point in _points(args["mount"], len(chosen))},
    }


def _readings(system: System, chosen: Sequence[Disk], uses: Mapping[str, Set[str]], swap: Set[str]) -> Tuple[List[Reading], List[str]]:
    """A disk that cannot be read does not hide what is wrong with the others."""
    readings, problems = [], []
    for disk in chosen:
        try:
            readings.append(scratch_make.read_one(system, disk, uses, swap))
        except (Failed, OSError) as error:
            problems.append(f"{disk.identity()} cannot be examined: {error}")
    return readings, problems


def _resolve(args: Args) -> Dict[str, str]:
    """Paths as written → the device number they lead to now, links followed."""
    found = {}
    for selector in list(args["devices"]) + list(args["wipe"]):
        path = str(selector.get("path", "")) if isinstance(selector, Mapping) else ""
        try:
            info = os.stat(path) if path else None
        except OSError:
            continue
        if info is not None and stat.S_ISBLK(info.st_mode):
            found[path] = blocks.number_of(info.st_rdev)
    return found


def _wipe_set(selectors: Sequence[Any], chosen: Sequence[Disk], resolved: Mapping[str, str]) -> Tuple[Set[str], List[str]]:
    """Device numbers that may be wiped. Each entry must name one disk of the selection: a stale opt-in is an error, not a no-op."""
    wipe: Set[str] = set()
    problems = []
    for selector in selectors:
        wrong = check_selector(selector, NAMING)
        found, _ = ([], []) if wrong else select([selector], chosen, resolved)
        if wrong or len(found) != 1:
            problems.append(f"wipe: {wrong or say(selector) + ' does not name one disk of the selection'}")
        wipe |= {disk.number for disk in found}
    return wipe, problems


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
    standings = _stand_all(args, state)
    problems = _problems(args, state, standings)
    if problems:
        raise Failed(
            "scratch_disks refuses, and nothing was written on any disk of this node:\n" + "\n".join(f"  - {p}" for p in problems),
            refused=problems, devices=[_shown(s, "") for s in standings],
        )
    plan = _assign(args, state, standings)
    change = Change(data={"plan": plan})
    for standing, point in plan:
        change.actions += _actions(args, state, standing, point)
    change.before = "".join(f"{s.disk.identity()}: {s.found or 'empty'}\n" for s, _ in plan)
    change.after = change.before if not change else "".join(f"{s.disk.identity()}: {args['fstype']} on {point}\n" for s, point in plan)
    return change


def _wish(args: Args) -> Dict[str, Any]:
    return {"fstype": args["fstype"], "label": args["label"], "min_size": parse_size(args["min_size"]) if args["min_size"] else 0}


def _stand_all(args: Args, state: State) -> List[Standing]:
    return [stand(reading, state["records"], _wish(args), state["wipe"]) for reading in state["readings"]]


def _problems(args: Args, state: State, standings: Sequence[Standing]) -> List[str]:
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
    if args["layout"] == "raid0":
        problems.append(_no_raid(state))
    longest = 12 if args["fstype"] == "xfs" else 16
    if len(args["label"]) + (1 if len(chosen) > 1 else 0) > longest:
        problems.append(f"label {args['label']!r} is too long for {args['fstype']} (at most {longest} characters with the number)")
    if not args["mode"].isdigit():
        problems.append(f"mode {args['mode']!r} must be octal, such as '0755'")
    if not os.path.isabs(args["mount"]) or os.path.normpath(args["mount"]) == "/":
        problems.append(f"mount {args['mount']!r} must be an absolute path other than /")
    return problems + refusals(standings) + (_busy_points(args, state, standings) if args["devices"] else [])


def _no_raid(state: State) -> str:
    if not state["md"]:
        return "layout raid0 needs the kernel's md driver and mdadm, and this node lacks them (no /proc/mdstat or no mdadm); choose layout each"
    return "layout raid0 is not built yet in this version of nodectl; choose layout each"


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
        out.append(f"make {args['fstype']} with label {_label(args, point)} on {disk.identity()}")
    mounted = standing.place == "ours" and state["here"].get(point) == disk.number
    if not mounted:
        out.append(f"mount {disk.identity()} on {point}")
    if standing.place == "free" or not _in_fstab(args, state, standing, point):
        out.append(f"write the line for {point} into {fstab.PATH}")
    if not mounted or _root_differs(args, state["roots"].get(point, {})):
        out.append(f"set owner and mode of {point}")
    return out


def _in_fstab(args: Args, state: State, standing: Standing, point: str) -> bool:
    entry = scratch_make.entry_for((standing.record or {}).get("uuid", ""), point, args["fstype"], args["mount_opts"])
    return fstab.find(state["fstab"], point) == [entry]


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
    """Each disk in turn: looked at again, made, mounted, written into fstab."""
    try:
        uid, gid = _ids(args)
    except KeyError as unknown:
        raise Failed(f"owner or group of {args['mount']}: this node does not know {unknown}; nothing was written on any disk") from None
    if any(standing.place == "free" for standing, _ in change.data["plan"]) and system.which(f"mkfs.{args['fstype']}") is None:
        package = {"xfs": "xfsprogs", "ext4": "e2fsprogs"}[args["fstype"]]
        raise Failed(f"mkfs.{args['fstype']} is not installed (package {package}); nothing was written on any disk")
    for standing, point in change.data["plan"]:
        if not _actions(args, state, standing, point):
            continue
        key = (standing.record or {}).get("uuid", "")
        if standing.place == "free":
            key = _make(system, args, state, standing, point)
        entry = scratch_make.entry_for(key, point, args["fstype"], args["mount_opts"])
        if standing.place == "free" or state["here"].get(point) != standing.disk.number:
            scratch_make.mount(system, standing.disk.path, entry, args["mount_opts"])
        scratch_make.persist(system, entry)
        os.chown(point, -1 if uid is None else uid, -1 if gid is None else gid)
        os.chmod(point, int(args["mode"], 8))


def _make(system: System, args: Args, state: State, standing: Standing, point: str) -> str:
    """Guards once more on this very disk, then the filesystem."""
    again = stand(scratch_make.read_again(system, standing.disk, True), scratch_make.load_records(system), _wish(args), state["wipe"])
    if again.place != "free" or again.reasons or again.found != standing.found:
        raise Failed(
            f"{standing.disk.identity()} changed while this step ran: it carried {standing.found or 'nothing'}, now "
            f"{again.found or 'nothing'} ({'; '.join(again.reasons) or again.place}); nothing was written on it",
        )
    system.progress(f"make {args['fstype']} on {standing.disk.identity()}")
    wish = {"fstype": args["fstype"], "label": _label(args, point), "mount": point}
    return scratch_make.make(system, again.disk, wish, wipe=bool(again.found), begun=again.record)


def values(args: Args, state: State, change: Change) -> Args:
    plan: List[Tuple[Standing, str]] = change.data["plan"]
    now = {standing.disk.number: standing.record for standing in _stand_all(args, state)}
    return {
        "devices": [_shown(standing._replace(record=now.get(standing.disk.number)), point) for standing, point in plan],
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
