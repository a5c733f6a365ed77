"""The base that all hosts share: a Debian 12 tree and a package repository, built once and kept in a cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodectl.lab import repo
from nodectl.lab.machine import attempt, remove_tree, run, unmount
from nodectl.lab.plan import LAB_USER, plain_path
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import locked

SUITE = "bookworm"
DEFAULT_MIRROR = "http://deb.debian.org/debian"
DEFAULT_CACHE = Path("/var/cache/nodectl/lab")
CACHE_VARIABLE = "NODECTL_LAB_CACHE"
MIRROR_VARIABLE = "NODECTL_LAB_MIRROR"
# What a rented node has when "sshd answers", and no more: everything else is the roles' work.
BASE_PACKAGES = [
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "python3", "sudo", "iproute2", "procps", "kmod", "udev", "libpam-systemd"),
    *("xfsprogs", "e2fsprogs", "fuse3", "fdisk", "ca-certificates", "netbase", "iputils-ping", "tzdata"),
]
# What roles, their users' roles and real Ansible may install on a host; the lab has no way out to a mirror.
REPO_PACKAGES = [
    *("chrony", "fio", "rclone", "nvme-cli", "rdma-core", "ibverbs-utils", "infiniband-diags", "perftest", "numactl", "ethtool"),
    *("pciutils", "mdadm", "nftables", "jq", "tree", "python3-apt", "python3-venv", "s3fs", "nfs-common"),
    *("dnf", "rpm", "createrepo-c", "python3-debian", "python3-pip", "locales", "cron", "gnupg", "iptables", "ufw"),
    *("zip", "unzip", "rsync", "acl", "attr", "git", "make", "expect", "python3-pexpect"),
    *("auditd", "fail2ban", "python3-systemd", "aide", "aide-common", "libpam-pwquality", "libpam-tmpdir", "needrestart", "debsums", "apt-show-versions"),
    *("apt-listchanges", "apparmor", "apparmor-utils", "cron", "sysstat", "acct", "linux-base", "lynis", "openscap-scanner"),
]
# A stock host runs these once a day. In a rehearsal they would take the apt lock, or the disks, in the middle of a run.
QUIET_UNITS = ["apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "dpkg-db-backup.timer"]
# chronyd would steer the clock of the machine that all hosts share; -x lets it run and answer without that.
CHRONY_DROPIN = "[Unit]\nConditionCapability=\n[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd -x -F 1\n"
# Changes whenever the recipe below does, so that an old base is not taken for a new one.
RECIPE = 1
# debootstrap took 48 s here and 98 s elsewhere; a slow mirror may need minutes.
BUILD_TIMEOUT_S = 1200.0
# Killed with us, and with everything that it started or mounted: its own mount and process namespaces end with it.
CONTAINED = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--"]

Say = Callable[[str], None]


@dataclass(frozen=True)
class Base:
    """Where the shared tree and the repository are. Both are read-only for everybody."""

    root: Path
    repo: Path
    python: str  # "3.11"


def cache_folder() -> Path:
    """The cache, as an absolute path. Raises LabProblem for one that no overlay mount could name."""
    return plain_path(Path(os.environ.get(CACHE_VARIABLE) or DEFAULT_CACHE).absolute(), CACHE_VARIABLE)


def key(mirror: str) -> str:
    """Name of the cache entry: equal for equal contents."""
    recipe = json.dumps([RECIPE, SUITE, mirror, BASE_PACKAGES, REPO_PACKAGES, QUIET_UNITS, CHRONY_DROPIN, LAB_USER])
    return f"{SUITE}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def mirror() -> str:
    """NODECTL_LAB_MIRROR, or the mirror this machine itself uses for Debian 12, or Debian's own."""
    named = os.environ.get(MIRROR_VARIABLE)
    if named:
        return named
    listed = attempt(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages"]).stdout
    for line in listed.splitlines():
        fields = line.split()
        if fields[1:] == [SUITE, "main"] and fields[0].startswith(("http://", "https://")):
            return fields[0].rstrip("/")
    return DEFAULT_MIRROR


def prepared(say: Say) -> Base:
    """The base, built when the cache has none. Two builders: the second waits for the first, BUILD_TIMEOUT_S at most."""
    source = mirror()
    cache = cache_folder()
    wanted = cache / key(source)
    if not wanted.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache, "the lab's base image is being built", BUILD_TIMEOUT_S):
            if not wanted.exists():
                _build(wanted, source, say)
    python = (wanted / "python").read_text().strip()
    return Base(wanted / "root", wanted / "repo", python)


def forget() -> list[Path]:
    """Removes all cached bases and says which. Raises LabProblem while a lab stands on one of them."""
    cache = cache_folder()
    if not cache.is_dir():
        return []
    with locked(cache, "removing the lab's base images"):
        entries = sorted(cache.glob(f"{SUITE}-*"))
        mounts = Path("/proc/self/mountinfo").read_text()
        for entry in entries:
            if f"lowerdir={entry}/" in mounts:
                raise LabProblem(f"{entry} is the base of a lab that is up (see `findmnt -t overlay`): take that lab down first")
        for entry in entries:
            remove_tree(entry)
    return entries


def _build(wanted: Path, source: str, say: Say) -> None:
    """Builds beside the final name and renames at the end: what has the name is whole. Called with the cache locked."""
    partial = wanted.with_name(f"{wanted.name}.partial")
    _sweep(partial)
    partial.mkdir()
    complete = False
    try:
        say(f"building the base image once (debootstrap of Debian 12 from {source}, about 1 to 3 minutes)")
        root = partial / "root"
        run([*CONTAINED, "debootstrap", "--variant=minbase", f"--include={','.join(BASE_PACKAGES)}", SUITE, str(root), source], BUILD_TIMEOUT_S)
        _furnish(root)
        say("fetching the packages that roles install")
        repo.build(partial / "repo", root, SUITE, source, REPO_PACKAGES)
        (partial / "python").write_text(_python_version(root) + "\n")
        partial.rename(wanted)
        complete = True
    finally:
        if not complete:
            _sweep(partial)


def _sweep(partial: Path) -> None:
    """What a builder that was killed has left. The lock is ours, so nobody is at work there."""
    if partial.exists():
        unmount(partial)
        remove_tree(partial)


def _furnish(root: Path) -> None:
    """Makes the tree a rented node: a user with sudo, no host keys, nothing that wakes up by itself."""
    run([*CONTAINED, "chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", LAB_USER])
    sudoers = root / "etc/sudoers.d" / LAB_USER
    sudoers.write_text(f"{LAB_USER} ALL=(ALL) NOPASSWD:ALL\n")
    sudoers.chmod(0o440)
    for private in (root / "etc/ssh").glob("ssh_host_*"):
        private.unlink()
    (root / "etc/apt/sources.list").write_text("")
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/resolv.conf").write_text("# The lab has no name service: hosts are in /etc/hosts.\n")
    for unit in QUIET_UNITS:
        (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
    dropin = root / "etc/systemd/system/chrony.service.d/lab.conf"
    dropin.parent.mkdir(parents=True)
    dropin.write_text(CHRONY_DROPIN)
    for leftover in [*(root / "var/cache/apt/archives").glob("*.deb"), *(root / "var/lib/apt/lists").glob("*_*")]:
        leftover.unlink()


def _python_version(root: Path) -> str:
    """Minor version of the tree's python3, as "3.11"."""
    target = os.readlink(root / "usr/bin/python3")
    if not target.startswith("python3."):
        raise LabProblem(f"{root}/usr/bin/python3 leads to {target}: expected python3.N")
    return target.removeprefix("python")
