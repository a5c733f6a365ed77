"""md_array: one md array of disks named by identity, with every guard passed before the first byte is written.

An array is the wished one when all its members carry one array UUID, and its name, level and number of disks are as wished: it is assembled
where it does not run, and never made anew. Half an array (a run that was cut off) is refused like anything else that a disk carries.
"""

from __future__ import annotations

import uuid
from typing import Any, Dict, Sequence

from nodectl.agent import blocks, md, md_conf, node_lock, scratch_make
from nodectl.agent.blocks import Disk
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.scratch_array import array_of
from nodectl.agent.scratch_guard import refusals, stand
from nodectl.agent.scratch_select import path_warnings, select, wiped
from nodectl.agent.sizes import parse_size
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

# As scratch_disks: the two must never be at one disk at the same time.
LOCK, LOCK_SECONDS = "scratch_disks", scratch_make.MKFS_SECONDS
# Fewest disks that mdadm takes, and whether the level has stripes.
LEVELS = {"raid0": (2, True), "raid1": (2, False), "raid10": (2, True)}

SPEC = Spec(
    summary="Make an md array of disks named by identity; refuse any disk that is used or carries something else; tell mdadm.conf and the initial ramdisk.",
    params={
        "name": Param("str", "the array's name: /dev/md/NAME", required=True),
        "devices": Param("list", "disks, each as {serial} | {wwn} | {by_id} | {model, size} | {path}, in the order of the stripes", required=True),
        "level": Param("str", "raid0 stripes, raid1 mirrors, raid10 does both", default="raid0", choices=tuple(LEVELS)),
        "chunk": Param("str", "piece of a stripe on one disk", default="512KiB"),
        "wipe": Param("list", "disks whose content may be lost, each as {serial} | {wwn} | {by_id} | {path}", default=[]),
    },
    returns={
        "path": "the array's device", "uuid": "its UUID", "members": "serials of its disks", "plan": "what is done, in sentences",
        "warnings": "names that can move between boots",
    },
    example="- md_array:\n    name: data\n    level: raid1\n    devices: [{serial: S4YPNX0R400123}, {serial: S4YPNX0R400124}]\n",
)


def read(system: System, args: Args) -> State:
    with node_lock.undisturbed(system, LOCK, LOCK_SECONDS):
        return _read(system, args)


def _read(system: System, args: Args) -> State:
    disks = blocks.discover()
    resolved = scratch_make.resolve([*args["devices"], *args["wipe"]])
    chosen, problems = select(args["devices"], disks, resolved)
    wipe, wrong = wiped(args["wipe"], chosen, resolved)
    users = scratch_make.read_users(disks, chosen)
    readings = []
    for disk in chosen:
        try:
            readings.append(scratch_make.read_one(system, disk, users))
        except (Failed, OSError) as error:
            problems.append(f"{disk.identity()} cannot be examined: {error}")
    uuids = {array_of(reading) for reading in readings}
    found = uuids.pop() if len(uuids) == 1 and not problems else ""
    return {
        "chosen": chosen, "problems": problems + wrong, "wipe": wipe, "readings": readings, "resolved": resolved, "uuid": found,
        "is": _examine(system, chosen[0]) if found else {}, "built": md.running([disk.name for disk in chosen]) if found else None,
        "no_md": md.without_kernel(system, args["level"]), "mdadm": system.which("mdadm") is not None, "conf": md.conf(system),
        "ramdisk": md.initramfs_tool(system),
    }


def _examine(system: System, disk: Disk) -> Dict[str, str]:
    """Name, level and number of disks of the array that a member belongs to, as mdadm exports them; empty where it says nothing."""
    done = system.run(["mdadm", "--examine", "--export", disk.path], timeout=30.0) if system.which("mdadm") else None
    lines = done.stdout.splitlines() if done is not None and done.rc == 0 else []
    return dict(line.split("=", 1) for line in lines if "=" in line)


def wished(args: Args, state: State) -> bool:
    """Whether the members carry the array that is asked for, whoever made it."""
    seen: Dict[str, str] = state["is"]
    found = (seen.get("MD_NAME", "").rsplit(":", 1)[-1], seen.get("MD_LEVEL"), seen.get("MD_DEVICES"))
    return found == (args["name"], args["level"], str(len(state["chosen"])))


def diff(args: Args, state: State) -> Change:
    """Raises Failed with every reason of every disk when one of them must not be touched."""
    there = bool(state["uuid"]) and wished(args, state)
    standings = [stand(reading, {}, {"min_size": 0}, state["wipe"]) for reading in state["readings"]]
    problems = _problems(args, state) + ([] if there else refusals(standings))
    if problems:
        raise Failed("md_array refuses, and nothing was written on any disk of this node:\n" + "\n".join(f"  - {p}" for p in problems), refused=problems)
    who = " ".join(disk.serial or disk.path for disk in state["chosen"])
    actions = [] if there else [f"clear {standing.disk.identity()}, which carries {standing.found}" for standing in standings if standing.found]
    if not there:
        actions.append(f"make {args['level']} {md.path_of(args['name'])} of {who}")
    elif state["built"] is None or not state["built"].size:
        actions.append(f"assemble {md.path_of(args['name'])} of {who}")
    if not there or md_conf.with_array(state["conf"], md.path_of(args["name"]), state["uuid"]) != state["conf"]:
        actions.append(f"write {md.conf_path()}" + (f", then {state['ramdisk']}" if state["ramdisk"] else ""))
    before = "".join(f"{standing.disk.identity()}: {standing.found or 'empty'}\n" for standing in standings)
    return Change(actions=actions, before=before if actions else "", after="".join(f"{action}\n" for action in actions), data={"there": there})


def _problems(args: Args, state: State) -> "list[str]":
    chosen: Sequence[Disk] = state["chosen"]
    chunk = parse_size(args["chunk"]) or 0
    problems = list(state["problems"])
    if state["no_md"]:
        problems.append(state["no_md"])
    if not md_conf.NAME.fullmatch(args["name"]):
        problems.append(f"name {args['name']!r} must be of letters, digits, dot, dash and underscore, at most 32")
    if len(chosen) < LEVELS[args["level"]][0]:
        problems.append(f"{args['level']} takes at least {LEVELS[args['level']][0]} disks, and {len(chosen)} are found")
    if len({disk.size for disk in chosen}) > 1:
        problems.append(f"the disks must have one size: {', '.join(disk.identity() for disk in chosen)}")
    if chunk < 4096 or chunk & (chunk - 1):
        problems.append("chunk must be a power of two of at least 4KiB, such as 512KiB")
    return problems


def write(system: System, args: Args, state: State, change: Change) -> None:
    """Alone on this node, from a new reading. mdadm.conf first, then the ramdisk that carries a copy of it."""
    with node_lock.alone(system, LOCK, LOCK_SECONDS):
        state = _read(system, args)
        now = diff(args, state)
        if not state["mdadm"]:
            raise Failed("mdadm is not installed (package mdadm); nothing was written on any disk")
        key = state["uuid"] if now.data["there"] else _make(system, args, state)
        if now.data["there"] and (state["built"] is None or not state["built"].size):
            md.assemble(system, args["name"], key, state["chosen"])
        new = md_conf.with_array(md.conf(system), md.path_of(args["name"]), key)
        if new != md.conf(system):
            md.write_conf(system, new)
            md.renew_initramfs(system)


def _make(system: System, args: Args, state: State) -> str:
    readings = scratch_make.read_again(system, state["chosen"])
    refused = refusals([stand(reading, {}, {"min_size": 0}, state["wipe"]) for reading in readings])
    if refused:
        raise Failed("a disk changed while this step ran, and nothing was written on it: " + "; ".join(refused))
    key = str(uuid.uuid4())
    scratch_make.clear_all(system, readings)
    chunk = parse_size(args["chunk"]) or 0
    array = md.create(system, md.Array(args["name"], key, args["level"], chunk if LEVELS[args["level"]][1] else 0, tuple(state["chosen"])))
    scratch_make.clear_stale(system, array)
    return key


def values(args: Args, state: State, change: Change) -> Args:
    built: Any = state["built"]
    return {
        "path": built.path if built else md.path_of(args["name"]), "uuid": md_conf.colons(state["uuid"]) if state["uuid"] else "",
        "members": [disk.serial for disk in state["chosen"]], "plan": list(change.actions),
        "warnings": path_warnings(args["devices"], state["chosen"], state["resolved"]),
    }
