"""nvme_format: another block size for NVMe drives that are named by serial. Formatting erases a drive; naming it here is the opt-in.

A drive that somebody uses is refused, whatever is named. All drives are judged before the first is formatted.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from nodectl.agent import blocks, md, node_lock, scratch_make
from nodectl.agent.blocks import Disk
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.scratch_guard import Reading, content, in_use
from nodectl.agent.scratch_select import check_selector, select
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

# As scratch_disks: the two must never be at one disk at the same time.
LOCK, LOCK_SECONDS = "scratch_disks", scratch_make.MKFS_SECONDS
# Without --force nvme waits 10 s before it begins; drives that erase every block on a format take minutes.
FORMAT_SECONDS = 900.0
IDENTIFY_SECONDS = 30.0
# What a drive's namespace is chosen by; never by a path, and never a kind of drive.
NAMES = ("serial", "wwn")

SPEC = Spec(
    summary="Give NVMe drives another block size (LBA format); erases exactly the drives that are named, and refuses any that is used.",
    params={
        "devices": Param(
            "list", "drives, each as {serial}, or {serial, wwn} where one has several namespaces: naming it is the consent to erase it", required=True,
        ),
        "block_size": Param(
            "str", "bytes; auto: what the drive itself calls fastest, 4096 of equally fast ones (a block of the filesystem is then one of the drive)",
            default="auto", choices=("auto", "512", "4096"),
        ),
    },
    returns={
        "devices": "per drive: path, serial, block_size (bytes), formats (the sizes it offers), found (what it carried)", "plan": "what is done, in sentences",
    },
    example="- nvme_format:\n    devices: [{serial: S4YPNX0R400123}]\n    block_size: 4096\n",
)


class Format(NamedTuple):
    """One LBA format: its number, bytes per block and of metadata, and the drive's own judgement (0 = best … 3 = degraded)."""

    number: int
    size: int
    metadata: int
    rank: int


class Drive(NamedTuple):
    """``kernel`` is the block size that the kernel works with; ``shared`` names further namespaces that a format erases too."""

    reading: Reading
    formats: Sequence[Format]
    current: Format
    kernel: int
    shared: Sequence[str]


def read(system: System, args: Args) -> State:
    with node_lock.undisturbed(system, LOCK, LOCK_SECONDS):
        return _read(system, args)


def _read(system: System, args: Args) -> State:
    disks = blocks.discover()
    wrong = [problem for problem in (check_selector(one, NAMES) for one in args["devices"]) if problem]
    chosen, problems = ([], wrong) if wrong else select(args["devices"], disks, {})
    users = scratch_make.read_users(disks, chosen)
    drives: List[Drive] = []
    for disk in chosen:
        try:
            drives.append(_drive(system, disk, disks, users))
        except (Failed, OSError) as error:
            problems.append(f"{disk.identity()} cannot be examined: {error}")
    return {"drives": drives, "problems": problems}


def _drive(system: System, disk: Disk, disks: Sequence[Disk], users: scratch_make.Users) -> Drive:
    if disk.kind != "nvme":
        raise Failed(f"it is no NVMe drive ({disk.kind})")
    formats, current = formats_of(_identify(system, "id-ns", disk.path))
    others = [other.path for other in disks if other.kind == "nvme" and other.serial == disk.serial and other.number != disk.number]
    # Bit 0 of FNA: a format of one namespace formats all of them.
    every = int(_identify(system, "id-ctrl", disk.path).get("fna", 0)) & 1 if others else 0
    kernel = int((system.read(f"/sys/dev/block/{disk.number}/queue/logical_block_size") or b"0").strip() or b"0")
    return Drive(scratch_make.read_one(system, disk, users), formats, current, kernel, others if every else ())


def _identify(system: System, what: str, path: str) -> Dict[str, Any]:
    done = system.run(["nvme", what, path, "--output-format=json"], timeout=IDENTIFY_SECONDS)
    try:
        found = json.loads(done.stdout) if done.rc == 0 else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        said = done.stderr.strip() or done.stdout[:200].strip() or f"exit code {done.rc}"
        raise Failed(f"nvme {what} gave no answer: {said}", rc=done.rc, stderr=done.stderr)
    return found


def formats_of(namespace: Mapping[str, Any]) -> "tuple[List[Format], Format]":
    """(formats, the one in use) of `nvme id-ns` as JSON. Raises Failed where they cannot be read."""
    try:
        listed = [(int(one["ds"]), int(one["ms"]), int(one.get("rp", 0))) for one in namespace["lbafs"]]
        flbas = int(namespace["flbas"])
    except (KeyError, TypeError, ValueError):
        raise Failed("its formats cannot be read from nvme id-ns (no lbafs and flbas)") from None
    formats = [Format(number, 1 << ds, ms, rp) for number, (ds, ms, rp) in enumerate(listed) if ds]
    # Bits 0 to 3 of FLBAS, and bits 5 and 6 above them where there are more than 16 formats.
    number = flbas & 0xF | (flbas >> 5 & 3) << 4
    current = next((one for one in formats if one.number == number), None)
    if current is None:
        raise Failed(f"it says that format {number} is in use, and lists none of that number")
    return formats, current


def pick(formats: Sequence[Format], block_size: str) -> Optional[Format]:
    """The format to have, None where the drive does not offer it. Metadata is for checks that no filesystem here makes."""
    plain = [one for one in formats if not one.metadata and (one.size in (512, 4096) if block_size == "auto" else one.size == int(block_size))]
    return min(plain, key=lambda one: (one.rank, -one.size), default=None)


def diff(args: Args, state: State) -> Change:
    """Raises Failed with every reason when one drive must not be formatted, or cannot be."""
    problems = list(state["problems"])
    if not args["devices"]:
        problems.append("the selection is empty: `devices` names no drive")
    change = Change(data={"found": {}})
    for drive in state["drives"]:
        action, reasons = _judge(drive, args["block_size"])
        problems += [f"{drive.reading.disk.identity()}: {reason}" for reason in reasons]
        change.actions += [action] if action else []
        change.data["found"][drive.reading.disk.serial] = content(drive.reading)
    if problems:
        raise Failed("nvme_format refuses, and nothing was written on any drive of this node:\n" + "\n".join(f"  - {p}" for p in problems), refused=problems)
    change.before = "".join(f"{drive.reading.disk.identity()}: {drive.current.size}-byte blocks\n" for drive in state["drives"]) if change else ""
    change.after = "".join(f"{action}\n" for action in change.actions)
    return change


def _judge(drive: Drive, block_size: str) -> "tuple[str, List[str]]":
    """(what is to be done, why it must not be)"""
    disk, wanted = drive.reading.disk, pick(drive.formats, block_size)
    if wanted is None:
        offered = ", ".join(sorted({str(one.size) for one in drive.formats if not one.metadata}))
        return "", [f"it offers no {block_size}-byte blocks without metadata, only {offered or 'formats with metadata'}"]
    if (drive.current.size, drive.current.metadata) == (wanted.size, 0):
        return ("" if drive.kernel == wanted.size else f"make the kernel see the {wanted.size}-byte blocks of {disk.identity()}"), []
    reasons = in_use(drive.reading)
    if drive.shared:
        reasons.append(f"this drive formats all namespaces at once, and {', '.join(drive.shared)} would be erased with it")
    if reasons:
        reasons = [f"{reason} (free it first, or take it out of `devices`, the role's nvme_scratch_format)" for reason in reasons]
    erases = content(drive.reading) or "it (it carries nothing)"
    return f"format {disk.identity()} to {wanted.size}-byte blocks (now {drive.current.size}), which erases {erases}", reasons


def write(system: System, args: Args, state: State, change: Change) -> None:
    """Alone on this node and from a new reading; nvme itself opens each drive exclusively, for it is given no --force."""
    with node_lock.alone(system, LOCK, LOCK_SECONDS):
        state = _read(system, args)
        diff(args, state)
        for drive in state["drives"]:
            disk, wanted = drive.reading.disk, pick(drive.formats, args["block_size"])
            if wanted is None:
                continue
            if (drive.current.size, drive.current.metadata) != (wanted.size, 0):
                scratch_make.read_again(system, [disk])
                system.progress(f"format {disk.identity()}")
                argv = ["nvme", "format", disk.path, f"--lbaf={wanted.number}", f"--timeout={int(FORMAT_SECONDS * 1000)}"]
                md.must(system, argv, f"{disk.identity()} could not be formatted", FORMAT_SECONDS)
            elif drive.kernel != wanted.size:
                md.must(system, ["nvme", "ns-rescan", controller(disk)], f"the kernel did not look at {disk.identity()} again")
        md.settle(system)


def controller(disk: Disk, sysfs: str = "/sys") -> str:
    """The controller's node. The number in nvme0n1 does not say that nvme0 owns it: with multipath it is the subsystem's."""
    folder = os.path.realpath(os.path.join(sysfs, "dev/block", disk.number, "device"))
    names = [os.path.basename(folder), *sorted(os.listdir(folder))]
    found = next((name for name in names if name.startswith("nvme") and name[4:].isdigit()), "")
    if not found:
        raise Failed(f"{disk.identity()}: no controller is shown in {folder}")
    return f"/dev/{found}"


def values(args: Args, state: State, change: Change) -> Args:
    found: Dict[str, str] = change.data["found"]
    return {"plan": list(change.actions), "devices": [_shown(drive, found) for drive in state["drives"]]}


def _shown(drive: Drive, found: Mapping[str, str]) -> Dict[str, Any]:
    disk = drive.reading.disk
    sizes = sorted({one.size for one in drive.formats if not one.metadata})
    return {"path": disk.path, "serial": disk.serial, "block_size": drive.current.size, "formats": sizes, "found": found.get(disk.serial, "")}
