"""Which block devices this node has, who they are, and who uses them. Reads sysfs, /dev and /proc; opens nothing for writing.

Devices are found by walking /dev for block nodes and mapping major:minor to /sys/dev/block, so that a node with another
name than the kernel's (a loop device bound into a namespace as /dev/nvme0n1) is seen under the name people use.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

SECTOR = 512  # sysfs counts in sectors of 512 bytes, whatever the device's own sector size is
LOOP = "loop (simulated)"
# Folders of /dev that hold no disks, and may be other mounts with very many entries.
_NOT_DISKS = frozenset(["pts", "shm", "mqueue", "hugepages", "fd", "net", "input", "char", "bus", "cpu", "dri", "infiniband"])


class Disk(NamedTuple):
    """One block device. ``size`` is in bytes, ``number`` is "major:minor", ``serial`` and ``wwn`` are "" where there is none.

    ``partitions`` are (kernel name, number) pairs; ``holders`` are kernel names of what is built on the device or on one of
    its partitions; ``slaves`` are what the device itself is built of. ``parent`` is the whole disk's name for a partition.
    """

    path: str
    name: str
    number: str
    kind: str
    serial: str
    wwn: str
    model: str
    size: int
    read_only: bool
    by_id: Tuple[str, ...]
    partitions: Tuple[Tuple[str, str], ...]
    holders: Tuple[str, ...]
    slaves: Tuple[str, ...]
    parent: str

    def identity(self) -> str:
        """How a person recognises it: path, serial, size."""
        return f"{self.path} (serial {self.serial or 'none'}, {human(self.size)})"


def human(size: int) -> str:
    """Bytes as a drive's label writes them, in decimal units."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} B"


def _word(*paths: str) -> str:
    """The first of the files that can be read and is not empty, stripped."""
    for path in paths:
        try:
            with open(path, "rb") as handle:
                text = handle.read(4096).decode("utf-8", "replace").strip().strip("\0").strip()
        except OSError:
            continue
        if text:
            return text
    return ""


def names(path: str) -> Tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(path)))
    except OSError:
        return ()


def _scsi_serial(path: str) -> str:
    """The unit serial number page of a SCSI disk: four bytes of head, then the text."""
    try:
        with open(os.path.join(path, "device", "vpd_pg80"), "rb") as handle:
            return handle.read(260)[4:].decode("ascii", "replace").strip().strip("\0")
    except OSError:
        return ""


def loop_serial(backing_file: str) -> str:
    """A loop device's stand-in for a serial: its backing file's base name without suffix."""
    if backing_file.endswith(" (deleted)"):
        backing_file = backing_file[: -len(" (deleted)")]
    return os.path.splitext(os.path.basename(backing_file))[0]


def describe(path: str, number: str, folder: str, by_id: Tuple[str, ...] = ()) -> Disk:
    """The device with node ``path`` from its sysfs ``folder``."""
    name = os.path.basename(folder)
    backing = _word(os.path.join(folder, "loop", "backing_file"))
    children = [child for child in names(folder) if os.path.exists(os.path.join(folder, child, "partition"))]
    partitions = tuple((child, _word(os.path.join(folder, child, "dev"))) for child in children)
    holders = list(names(os.path.join(folder, "holders")))
    for child, _ in partitions:
        holders += names(os.path.join(folder, child, "holders"))
    parent = os.path.basename(os.path.dirname(folder)) if os.path.exists(os.path.join(folder, "partition")) else ""
    return Disk(
        path=path, name=name, number=number, kind=_kind(name, parent),
        serial=loop_serial(backing) if backing else _word(os.path.join(folder, "serial"), os.path.join(folder, "device", "serial")) or _scsi_serial(folder),
        wwn=_word(os.path.join(folder, "wwid"), os.path.join(folder, "device", "wwid")),
        model=_word(os.path.join(folder, "device", "model")),
        size=int(_word(os.path.join(folder, "size")) or 0) * SECTOR,
        read_only=_word(os.path.join(folder, "ro")) == "1",
        by_id=by_id, partitions=partitions, holders=tuple(sorted(set(holders))), slaves=names(os.path.join(folder, "slaves")), parent=parent,
    )


def _kind(name: str, parent: str) -> str:
    if parent:
        return "partition"
    for start, kind in (("loop", LOOP), ("nvme", "nvme"), ("md", "md"), ("dm-", "device mapper"), ("zram", "memory"), ("ram", "memory")):
        if name.startswith(start):
            return kind
    return "disk"


def _nodes(dev: str) -> Iterator[Tuple[str, str]]:
    """(path, "major:minor") of each block node under ``dev``; symbolic links are left out."""
    for folder, children, files in os.walk(dev):
        children[:] = [child for child in children if child not in _NOT_DISKS]
        for name in files:
            path = os.path.join(folder, name)
            try:
                found = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISBLK(found.st_mode):
                yield path, number_of(found.st_rdev)


def number_of(rdev: int) -> str:
    return f"{os.major(rdev)}:{os.minor(rdev)}"


def _links(dev: str) -> Dict[str, List[str]]:
    """Names under disk/by-id for each device number."""
    folder = os.path.join(dev, "disk", "by-id")
    found: Dict[str, List[str]] = {}
    for name in names(folder):
        try:
            number = number_of(os.stat(os.path.join(folder, name)).st_rdev)
        except OSError:
            continue
        found.setdefault(number, []).append(name)
    return found


def discover(dev: str = "/dev", sysfs: str = "/sys") -> List[Disk]:
    """Every block device with a node and a size, one entry per major:minor, sorted by path. An array that does not run has size 0 and is one too.

    A node that is not called by the kernel's loop name wins over one that is.
    """
    nodes: Dict[str, List[str]] = {}
    for path, number in _nodes(dev):
        nodes.setdefault(number, []).append(path)
    links = _links(dev)
    disks = []
    for number, paths in nodes.items():
        folder = os.path.realpath(os.path.join(sysfs, "dev", "block", number))
        if not os.path.isdir(folder):
            continue
        path = min(paths, key=lambda p: (os.path.basename(p).startswith("loop"), len(p), p))
        disk = describe(path, number, folder, tuple(links.get(number, ())))
        if disk.size or disk.kind == "md":
            disks.append(disk)
    return sorted(disks, key=lambda d: d.path)


def mount_uses(proc: str = "/proc") -> Dict[str, Set[str]]:
    """Device number → mount points, over every mount namespace whose processes can be read.

    btrfs shows an anonymous number in mountinfo, therefore the source's own number counts too.
    """
    uses: Dict[str, Set[str]] = {}
    seen: Set[str] = set()
    for pid in ["self"] + [name for name in names(proc) if name.isdigit()]:
        base = os.path.join(proc, pid)
        try:
            namespace = os.readlink(os.path.join(base, "ns", "mnt"))
            if namespace in seen:
                continue
            with open(os.path.join(base, "mountinfo"), "rb") as handle:
                text = handle.read().decode("utf-8", "surrogateescape")
        except OSError:
            continue
        seen.add(namespace)
        for number, point in _mountinfo(text, os.path.join(base, "root")):
            uses.setdefault(number, set()).add(point)
    return uses


def _mountinfo(text: str, root: str) -> Iterator[Tuple[str, str]]:
    for line in text.splitlines():
        fields = line.split(" ")
        if "-" not in fields[6:]:
            continue
        point, source = unescape(fields[4]), unescape(fields[fields.index("-", 6) + 2])
        yield fields[2], point
        if source.startswith("/"):
            try:
                found = os.stat(root + source)
            except OSError:
                continue
            if stat.S_ISBLK(found.st_mode):
                yield number_of(found.st_rdev), point


def unescape(field: str) -> str:
    """The octal escapes of mountinfo, /proc/swaps and fstab."""
    if "\\" not in field:
        return field
    out = field
    for code in ("040", "011", "012", "043"):
        out = out.replace("\\" + code, chr(int(code, 8)))
    return out.replace("\\134", "\\")


def swap_uses(path: str = "/proc/swaps") -> Set[str]:
    """Device numbers that are swap space now."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            lines = handle.read().splitlines()[1:]
    except OSError:
        return set()
    found = set()
    for line in lines:
        try:
            info = os.stat(unescape(line.split()[0]))
        except (OSError, IndexError):
            continue
        if stat.S_ISBLK(info.st_mode):
            found.add(number_of(info.st_rdev))
    return found


def openers(numbers: Set[str], proc: str = "/proc", sysfs: str = "/sys") -> Dict[str, List[str]]:
    """Device number → who works on the bare device without holding it exclusively: loop devices on top of it, processes that have it open for writing.

    A process that only reads is left out: udev and blkid open every disk for a moment.
    """
    found: Dict[str, List[str]] = {}
    if not numbers:
        return found
    for name in names(os.path.join(sysfs, "block")):
        backing = _word(os.path.join(sysfs, "block", name, "loop", "backing_file"))
        if backing.startswith("/dev/"):
            _note(found, numbers, backing, f"{name} is a loop device on it")
    for pid in names(proc):
        if pid.isdigit() and pid != str(os.getpid()):
            for handle in names(os.path.join(proc, pid, "fd")):
                _writer(found, numbers, os.path.join(proc, pid), handle)
    return found


def _writer(found: Dict[str, List[str]], numbers: Set[str], folder: str, handle: str) -> None:
    try:
        target = os.readlink(os.path.join(folder, "fd", handle))
    except OSError:
        return
    if not target.startswith("/dev/"):
        return
    flags = next((line.split()[1] for line in _word(os.path.join(folder, "fdinfo", handle)).splitlines() if line.startswith("flags:")), "0")
    if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
        who = f"{_word(os.path.join(folder, 'comm')) or 'a process'} (process {os.path.basename(folder)}) has it open for writing"
        _note(found, numbers, os.path.join(folder, "fd", handle), who)


def _note(found: Dict[str, List[str]], numbers: Set[str], path: str, who: str) -> None:
    try:
        info = os.stat(path)
    except OSError:
        return
    number = number_of(info.st_rdev)
    if stat.S_ISBLK(info.st_mode) and number in numbers and who not in found.setdefault(number, []):
        found[number].append(who)


def exclusive(path: str) -> str:
    """"" when the device can be opened exclusively (nobody holds it), else why not. Reads nothing, writes nothing."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return "somebody holds it exclusively (a mount, an array or a volume; perhaps in another namespace)"
        return f"cannot be opened: {error.strerror}"
    os.close(handle)
    return ""


def first_data(path: str, span: int) -> int:
    """Offset of the first block of 4 KiB that is not zero in the first and last ``span`` bytes, or -1."""
    block = 4096
    zero = bytes(block)
    with open(path, "rb", buffering=0) as handle:
        end = handle.seek(0, os.SEEK_END)
        for start, stop in ((0, min(span, end)), (max(end - span, 0), end)):
            handle.seek(start)
            for offset in range(start, stop, block):
                data = handle.read(min(block, stop - offset))
                if data != zero[: len(data)]:
                    return offset
    return -1


def as_state(disk: Disk) -> Dict[str, Any]:
    """JSON types, for a module's State and return values."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in disk._asdict().items()}
