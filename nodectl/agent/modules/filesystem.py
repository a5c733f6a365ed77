"""filesystem: make one on a device that carries nothing."""

from __future__ import annotations

import os
import shlex
import stat
from typing import Any, Dict, List

from nodectl.agent import blocks, signatures
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.signatures import Found
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Make a filesystem on an empty device; whatever it carries already is named and kept.",
    params={
        "dev": Param("path", "the device", required=True, aliases=("device",)),
        "fstype": Param("str", "filesystem type", required=True, choices=("xfs", "ext4", "ext3", "ext2", "btrfs", "swap"), aliases=("type",)),
        "opts": Param("str", "options for mkfs"),
        "force": Param("bool", "replace what the device carries; never when somebody uses it", default=False),
        "state": Param("str", "what is wished", default="present", choices=("present",)),
    },
    returns={"found": "what the device carried before", "uuid": "the filesystem's UUID", "label": "its label"},
    example="- filesystem:\n    dev: /dev/disk/by-id/nvme-X\n    fstype: xfs\n    opts: -L data\n",
)
MKFS_SECONDS = 900.0  # mkfs discards the whole device first: about a minute per terabyte at worst
_FORCE = {"xfs": "-f", "btrfs": "-f", "ext2": "-F", "ext3": "-F", "ext4": "-F", "swap": "-f"}


def read(system: System, args: Args) -> State:
    """Signatures, and who uses the device; a device that is not there is told in ``missing``."""
    info = system.stat(args["dev"], follow=True)
    if info is None:
        return {"missing": True}
    if not (stat.S_ISBLK(info.st_mode) or stat.S_ISREG(info.st_mode)):
        raise Failed(f"{args['dev']} is neither a block device nor an image file")
    users: List[str] = []
    partitions: List[str] = []
    if stat.S_ISBLK(info.st_mode):
        number = blocks.number_of(info.st_rdev)
        users, partitions = _users(args["dev"], number)
    return {"missing": False, "found": signatures.probe(system, args["dev"]), "users": users, "partitions": partitions}


def _users(dev: str, number: str) -> "tuple[List[str], List[str]]":
    """(who uses it, its partitions)"""
    folder = os.path.realpath(f"/sys/dev/block/{number}")
    disk = blocks.describe(dev, number, folder)
    uses, swap = blocks.mount_uses(), blocks.swap_uses()
    numbers = [number] + [part for _, part in disk.partitions]
    users = [f"mounted on {point}" for one in numbers for point in sorted(uses.get(one, ()))]
    users += ["swap space in use" for one in numbers if one in swap] + [f"{holder} is built on it" for holder in disk.holders]
    if not users:
        held = blocks.exclusive(dev)
        users += [held] if held else []
    return users, [name for name, _ in disk.partitions]


def diff(args: Args, state: State) -> Change:
    """Empty when the device carries the wished type. Raises Failed with what was found otherwise."""
    if state["missing"]:
        raise Failed(f"there is no device {args['dev']} on this node")
    found: Found = state["found"]
    if found.type == args["fstype"] and not found.table and not found.others:
        return Change()
    carries = found.sentence() or (f"partitions {', '.join(state['partitions'])}" if state["partitions"] else "")
    if state["users"]:
        used = "; ".join(state["users"])
        raise Failed(f"{args['dev']} is in use ({used}), and is left alone, force or not; it carries {carries or 'nothing known'}", found=carries)
    if carries and not args["force"]:
        raise Failed(f"{args['dev']} carries {carries}, not {args['fstype']}: it is left alone. With force: true it would be overwritten", found=carries)
    steps = [f"overwrite {carries} on {args['dev']}"] if carries else []
    steps.append(f"make {args['fstype']} on {args['dev']}")
    return Change(actions=steps, before=f"{args['dev']}: {carries or 'empty'}\n", after=f"{args['dev']}: {args['fstype']}\n", data={"carries": carries})


def write(system: System, args: Args, state: State, change: Change) -> None:
    again = read(system, args)
    if again != state:
        raise Failed(f"{args['dev']} changed while this step ran; nothing was written on it")
    force = [_FORCE[args["fstype"]]] if change.data["carries"] else []
    program = "mkswap" if args["fstype"] == "swap" else f"mkfs.{args['fstype']}"
    done = system.run([program, *force, *shlex.split(args["opts"] or ""), args["dev"]], timeout=MKFS_SECONDS)
    if done.rc != 0:
        raise Failed(f"{program} failed on {args['dev']}: {done.stderr.strip() or done.stdout.strip()}", rc=done.rc, stderr=done.stderr, stdout=done.stdout)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    found: Found = state["found"]
    return {"found": change.data.get("carries", found.sentence()), "uuid": found.uuid, "label": found.label}
