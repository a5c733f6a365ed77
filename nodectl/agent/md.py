"""The hands for md arrays: make, assemble, stop, and tell the boot about them. Nothing here decides; no program is given a force option."""

from __future__ import annotations

import os
from typing import List, NamedTuple, Optional, Sequence, Tuple

from nodectl.agent import blocks, md_conf
from nodectl.agent.blocks import Disk
from nodectl.agent.contract import Failed
from nodectl.agent.system import System

# mdadm writes a few blocks on each member; a disk that needs longer than this is ill.
MDADM_SECONDS = 120.0
# udev makes the links of a new array; on an emulated node with a twentieth of a core that took tens of seconds.
SETTLE_SECONDS = 60
# All kernels' images are written anew; the slowest seen (an emulated node) took ten minutes.
INITRAMFS_SECONDS = 1200.0
# The first that is there: Debian and Ubuntu, RHEL and its family.
INITRAMFS = (("update-initramfs", ["update-initramfs", "-u", "-k", "all"]), ("dracut", ["dracut", "--force", "--regenerate-all"]))


class Array(NamedTuple):
    """What is to be made: ``uuid`` in any writing, ``chunk`` in bytes (0 where the level has none), ``members`` in the order of the stripes."""

    name: str
    uuid: str
    level: str
    chunk: int
    members: Tuple[Disk, ...]


def path_of(name: str) -> str:
    return f"/dev/md/{name}"


def without_kernel(system: System, level: str = "raid0") -> str:
    """ "" when this kernel can run such arrays, else the reason. Loads nothing."""
    if f"[{level}]" in (system.read("/proc/mdstat") or b"").decode("ascii", "replace").split("\n", 1)[0]:
        return ""
    if system.which("modprobe") and system.run(["modprobe", "--dry-run", level], timeout=10.0).rc == 0:
        return ""
    return f"this kernel has no md driver for {level} (no such personality in /proc/mdstat, and no module {level} to load)"


def running(members: Sequence[str]) -> Optional[Disk]:
    """The array that is built of exactly these kernel names; its size is 0 where it does not run."""
    return next((disk for disk in blocks.discover() if disk.kind == "md" and not disk.parent and sorted(disk.slaves) == sorted(members)), None)


def create(system: System, array: Array) -> Disk:
    """The new array, seen in sysfs. The members must carry nothing: mdadm would ask, and its input is closed."""
    argv = ["mdadm", "--create", path_of(array.name), f"--name={array.name}", "--homehost=any", "--metadata=1.2", f"--level={array.level}"]
    argv += [f"--raid-devices={len(array.members)}", f"--uuid={md_conf.colons(array.uuid)}"]
    argv += [f"--chunk={array.chunk // 1024}"] if array.chunk else []
    must(system, [*argv, *(disk.path for disk in array.members)], f"no {array.level} could be made of {_say(array.members)}")
    return _seen(system, array.members)


def assemble(system: System, name: str, uuid: str, members: Sequence[Disk]) -> Disk:
    """The array of these members, running. An array of them that does not run is stopped first: it holds them."""
    held_by = {holder for disk in members for holder in disk.holders}
    for half in blocks.discover():
        if half.name in held_by and half.kind == "md" and not half.size:
            stop(system, half.path)
    argv = ["mdadm", "--assemble", path_of(name), f"--uuid={md_conf.colons(uuid)}", *(disk.path for disk in members)]
    must(system, argv, f"the array of {_say(members)} could not be assembled")
    return _seen(system, members)


def stop(system: System, path: str) -> None:
    must(system, ["mdadm", "--stop", path], f"the array {path} could not be stopped")


def _seen(system: System, members: Sequence[Disk]) -> Disk:
    """mdadm's exit code proves nothing: the array must be there, built of these disks, and have a size."""
    settle(system)
    found = running([disk.name for disk in members])
    if found is None or not found.size:
        raise Failed(f"mdadm ended well, but no running array is built of {_say(members)}")
    return found


def settle(system: System) -> None:
    """Let udev end its work; where there is none, or it takes too long, what is asked next tells."""
    if os.path.isdir("/run/udev") and system.which("udevadm"):
        system.run(["udevadm", "settle", f"--timeout={SETTLE_SECONDS}"], timeout=SETTLE_SECONDS + 10.0)


def conf_path() -> str:
    """Where this node's mdadm looks: a folder of its own on Debian and Ubuntu."""
    return "/etc/mdadm/mdadm.conf" if os.path.isdir("/etc/mdadm") or os.path.exists("/etc/debian_version") else "/etc/mdadm.conf"


def conf(system: System) -> str:
    return (system.read(conf_path()) or b"").decode("utf-8", "surrogateescape")


def write_conf(system: System, text: str) -> None:
    os.makedirs(os.path.dirname(conf_path()), mode=0o755, exist_ok=True)
    system.write_atomic(conf_path(), text.encode("utf-8", "surrogateescape"))


def initramfs_tool(system: System) -> str:
    """What makes this node's initial ramdisk, "" where it has none."""
    return next((name for name, _ in INITRAMFS if system.which(name)), "")


def renew_initramfs(system: System) -> None:
    """After mdadm.conf was written, never before: the ramdisk carries a copy of it."""
    tool = initramfs_tool(system)
    argv: List[str] = next((argv for name, argv in INITRAMFS if name == tool), [])
    if argv:
        system.progress(f"{tool}: the initial ramdisk learns of the array (this takes a minute)")
        must(system, argv, "the initial ramdisk could not be made anew", INITRAMFS_SECONDS)


def must(system: System, argv: Sequence[str], what: str, seconds: float = MDADM_SECONDS) -> None:
    done = system.run(argv, timeout=seconds)
    if done.rc != 0:
        raise Failed(f"{what}: {done.stderr.strip() or done.stdout.strip() or f'exit code {done.rc}'}", rc=done.rc, stderr=done.stderr)


def _say(members: Sequence[Disk]) -> str:
    return ", ".join(disk.identity() for disk in members)
