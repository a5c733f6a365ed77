"""Block devices and mounts. Nothing is asked of a network or FUSE filesystem: it may never answer."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, List, Optional, Sequence

from nodectl.agent.facts.platform import text
from nodectl.agent.system import Mount

SECTOR = 512  # /sys/block/*/size counts these, whatever the device's own block size is
# Filesystems whose size is worth knowing and whose answer comes from this machine's own kernel.
LOCAL = frozenset([
    "ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "f2fs", "zfs", "jfs", "reiserfs", "squashfs", "iso9660", "overlay", "bcachefs", "exfat", "ntfs3",
])
REMOTE = frozenset(["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "9p", "glusterfs", "beegfs", "gpfs", "wekafs", "virtiofs"])
_UNITS = ("Bytes", "KB", "MB", "GB", "TB", "PB")


def human(size: float) -> str:
    """As Ansible writes sizes: 1024-based, two digits."""
    index = 0
    while size >= 1024 and index < len(_UNITS) - 1:
        size /= 1024
        index += 1
    return f"{size:.2f} {_UNITS[index]}"


def devices(root: str = "/") -> Dict[str, Any]:
    """Every block device of /sys/block, with its partitions, holders and names."""
    base = os.path.join(root, "sys/block")
    links = _links(root)
    return {name: _device(os.path.join(base, name), name, links) for name in sorted(os.listdir(base) if os.path.isdir(base) else [])}


def _device(folder: str, name: str, links: Dict[str, Dict[str, List[str]]]) -> Dict[str, Any]:
    sector_size = _number(text(os.path.join(folder, "queue/logical_block_size")), SECTOR)
    count = _number(text(os.path.join(folder, "size")), 0)
    result: Dict[str, Any] = {
        "virtual": 1 if "/devices/virtual/" in os.path.realpath(folder) else 0, "size": human(count * SECTOR), "size_bytes": count * SECTOR,
        "sectors": str(count), "sectorsize": str(sector_size), "removable": text(os.path.join(folder, "removable")),
        "rotational": text(os.path.join(folder, "queue/rotational")), "holders": _entries(os.path.join(folder, "holders")),
        "links": _own(links, name), "partitions": _partitions(folder, name, links, sector_size),
        "support_discard": text(os.path.join(folder, "queue/discard_granularity")),
        "scheduler_mode": (re.findall(r"\[(.*?)\]", text(os.path.join(folder, "queue/scheduler"))) or [""])[0],
    }
    for key in ("vendor", "model", "serial", "wwid"):
        result[key] = text(os.path.join(folder, "device", key)) or (text(os.path.join(folder, key)) if key == "wwid" else "") or None
    if result["wwid"]:
        result["wwn"] = result["wwid"]
    backing = text(os.path.join(folder, "loop/backing_file"))
    return dict(result, backing_file=backing) if backing else result


def _partitions(folder: str, name: str, links: Dict[str, Dict[str, List[str]]], sector_size: int) -> Dict[str, Any]:
    found = {}
    for entry in _entries(folder):
        place = os.path.join(folder, entry)
        if not entry.startswith(name) or not os.path.exists(os.path.join(place, "partition")):
            continue
        count = _number(text(os.path.join(place, "size")), 0)
        own = _own(links, entry)
        found[entry] = {
            "size": human(count * SECTOR), "sectors": str(count), "sectorsize": sector_size, "start": text(os.path.join(place, "start")),
            "uuid": own["uuids"][0] if own["uuids"] else None, "holders": _entries(os.path.join(place, "holders")), "links": own,
        }
    return found


def _entries(folder: str) -> List[str]:
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def _number(value: str, default: int) -> int:
    return int(value) if value.isdigit() else default


def _links(root: str) -> Dict[str, Dict[str, List[str]]]:
    """kind -> device name -> names in /dev/disk/by-*."""
    result: Dict[str, Dict[str, List[str]]] = {}
    for kind in ("id", "uuid", "label"):
        folder = os.path.join(root, "dev/disk", f"by-{kind}")
        table = result.setdefault(f"{kind}s", {})
        for entry in _entries(folder):
            target = os.path.basename(os.path.realpath(os.path.join(folder, entry)))
            table.setdefault(target, []).append(entry)
    return result


def _own(links: Dict[str, Dict[str, List[str]]], name: str) -> Dict[str, List[str]]:
    return {**{kind: table.get(name, []) for kind, table in links.items()}, "masters": []}


Space = Callable[[str], Optional[os.statvfs_result]]


def mounts(table: Sequence[Mount], links: Dict[str, Dict[str, List[str]]], space: Space = os.statvfs) -> List[Dict[str, Any]]:
    """As Ansible lists them (devices, network and FUSE filesystems), sizes only of local ones.

    ``space`` is asked only for those of LOCAL; the caller holds the time limit.
    """
    result = []
    for mount in {mount.target: mount for mount in table}.values():  # of several on one target the last one is seen
        fuse = mount.fstype == "fuse" or mount.fstype.startswith("fuse.")
        if not (mount.source.startswith("/") or mount.fstype in REMOTE or fuse or mount.fstype in LOCAL):
            continue
        uuids = links.get("uuids", {}).get(os.path.basename(os.path.realpath(mount.source)), []) if mount.source.startswith("/dev/") else []
        entry: Dict[str, Any] = {
            "mount": mount.target, "device": mount.source, "fstype": mount.fstype, "options": mount.options, "dump": 0, "passno": 0,
            "uuid": uuids[0] if uuids else "N/A",
        }
        result.append({**entry, **(_space(mount.target, space) if mount.fstype in LOCAL else {"note": "not asked: network and FUSE filesystems may hang"})})
    return result


def _space(target: str, space: Space) -> Dict[str, Any]:
    try:
        found = space(target)
    except OSError as error:
        return {"note": f"cannot be read: {error.strerror}"}
    if found is None:
        return {}
    return {
        "size_total": found.f_frsize * found.f_blocks, "size_available": found.f_frsize * found.f_bavail, "block_size": found.f_bsize,
        "block_total": found.f_blocks, "block_available": found.f_bavail, "block_used": found.f_blocks - found.f_bavail,
        "inode_total": found.f_files, "inode_available": found.f_favail, "inode_used": found.f_files - found.f_favail,
    }


def links(root: str = "/") -> Dict[str, Dict[str, List[str]]]:
    """Names of /dev/disk, for ``mounts``."""
    return _links(root)
