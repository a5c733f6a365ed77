"""Which disks a selection names. Pure: wishes and the node's disks in, disks and complaints out."""

from __future__ import annotations

import fnmatch
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from nodectl.agent.blocks import Disk, human
from nodectl.agent.sizes import parse_size

# A drive's label rounds (a "3.84 TB" drive has 3 840 755 982 336 bytes); two drive sizes of one model differ far more.
SIZE_TOLERANCE = 0.01
KEYS = ("serial", "wwn", "by_id", "path", "model", "size")
# These name one device whatever the order of attachment; model and size name a kind of device.
NAMING = ("serial", "wwn", "by_id", "path")


def check_selector(selector: Any, keys: Sequence[str] = KEYS) -> str:
    """ "" or what is wrong with a selector as it was written."""
    if not isinstance(selector, Mapping) or not selector:
        return f"a device is named by a mapping such as {{serial: S4YPNX0R}}, not by {selector!r}"
    unknown = sorted(str(key) for key in selector if key not in keys)
    if unknown:
        return f"a device cannot be named by {', '.join(unknown)} here; expected one of {', '.join(keys)}"
    if any(value is None or str(value).strip() == "" for value in selector.values()):
        return f"empty value in {say(selector)}"
    if "size" in selector and parse_size(selector["size"]) is None:
        return f"size {selector['size']!r} is no size; write bytes or for example 3.84TB"
    if ("size" in selector) != ("model" in selector) and not any(key in selector for key in NAMING):
        return f"{say(selector)} names too little: model and size go together, or name a serial"
    return ""


def say(selector: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in selector.items()) + "}"


def matches(selector: Mapping[str, Any], disk: Disk, resolved: Mapping[str, str]) -> bool:
    """Every key must agree. ``resolved`` maps a path as written to the device number that it leads to."""
    return all(_agrees(key, str(value).strip(), disk, resolved) for key, value in selector.items())


def _agrees(key: str, value: str, disk: Disk, resolved: Mapping[str, str]) -> bool:
    if key == "serial":
        return value == disk.serial
    if key == "wwn":
        return bool(disk.wwn) and _bare(value) == _bare(disk.wwn)
    if key == "by_id":
        return value.rsplit("/", 1)[-1] in disk.by_id
    if key == "path":
        return resolved.get(value) == disk.number
    if key == "model":
        return fnmatch.fnmatchcase(disk.model.lower(), value.lower())
    size = parse_size(value) or 0
    return abs(disk.size - size) <= size * SIZE_TOLERANCE


def _bare(wwn: str) -> str:
    """sysfs writes naa.5000…, eui.36…, uuid.…; by-id names and people write wwn-0x5000…"""
    text = wwn.lower()
    for start in ("wwn-", "nvme-", "naa.", "eui.", "uuid.", "0x"):
        if text.startswith(start):
            text = text[len(start) :]
    return text


def select(selectors: Sequence[Mapping[str, Any]], disks: Sequence[Disk], resolved: Mapping[str, str]) -> Tuple[List[Disk], List[str]]:
    """(the disks in the order they were named, complaints). A selection that leaves anything in doubt is a complaint."""
    chosen: List[Disk] = []
    problems: List[str] = []
    for selector in selectors:
        wrong = check_selector(selector)
        found = [] if wrong else [disk for disk in disks if matches(selector, disk, resolved)]
        if wrong:
            problems.append(wrong)
        elif not found:
            problems.append(f"no disk here is {say(selector)}; {_there_is(disks)}")
        elif len(found) > 1 and any(key in selector for key in NAMING):
            problems.append(f"{say(selector)} is {len(found)} devices ({', '.join(d.path for d in found)}): name one of them by its wwn or by_id")
        else:
            problems += [f"{disk.identity()} is named twice in the selection" for disk in found if disk in chosen]
            chosen += [disk for disk in found if disk not in chosen]
    return chosen, problems


def wiped(selectors: Sequence[Any], chosen: Sequence[Disk], resolved: Mapping[str, str]) -> Tuple[Set[str], List[str]]:
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


def _there_is(disks: Sequence[Disk]) -> str:
    real = [disk for disk in disks if not disk.parent]
    return "this node has " + ("; ".join(f"{d.path} (serial {d.serial or 'none'}, {human(d.size)})" for d in real) or "no disk at all")


def path_warnings(selectors: Sequence[Mapping[str, Any]], chosen: Sequence[Disk], resolved: Mapping[str, str]) -> List[str]:
    """A name such as /dev/nvme0n1 may be another disk after the next boot: say which one it was this time."""
    out = []
    for selector in selectors:
        path = str(selector.get("path", "")) if isinstance(selector, Mapping) else ""
        disk = next((d for d in chosen if path and resolved.get(path) == d.number), None)
        if disk is not None:
            better = f"serial: {disk.serial}" if disk.serial else f"by_id: {disk.by_id[0]}" if disk.by_id else "a by_id name"
            out.append(f"{path} is a name that can move between boots; it was resolved to {disk.identity()}, so write {better} in the inventory")
    return out


def numbers(disk: Disk) -> Dict[str, str]:
    """Device number → kernel name, for the disk and its partitions."""
    return {disk.number: disk.name, **{number: name for name, number in disk.partitions}}
