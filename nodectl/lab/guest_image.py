"""What all guests share, built once and kept in the cache: kernel, initrd, root disk, and the state of a guest that has just started."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodectl.lab import guest_kernel, guest_qemu, repo
from nodectl.lab.base import BUILD_TIMEOUT_S, CONTAINED, QUIET_UNITS, SUITE, Base, cache_folder, mirror
from nodectl.lab.guest_qemu import SNAPSHOT, Files, Wire
from nodectl.lab.machine import marked, remove_tree, run, start, stop, unmount, until
from nodectl.lab.problem import LabProblem
from nodectl.lab.qmp import Monitor, await_shell, type_line
from nodectl.lab.state import locked

# To be raised when what is done to the image changes, and none of the texts that its name is made of.
RECIPE = 3
# Kernel and a busybox that needs no library. Not the cloud kernel: it has neither rdma_rxe nor ib_ipoib.
KERNEL_PACKAGES = ["linux-image-amd64", "busybox-static"]
# Installed when the image is built: under emulation apt would need minutes for them in each guest.
GUEST_PACKAGES = ["chrony", "rdma-core", "ibverbs-utils", "infiniband-diags", "perftest", "mdadm", "nvme-cli", "fio", "pciutils", "ethtool"]
# Loaded before the state is saved, which saves every guest seconds.
WARM_MODULES = ["nvme", "rdma_rxe", "rdma_ucm", "ib_umad", "ib_uverbs", "raid0", "xfs", "fuse"]
# What a guest runs when it wakes up, so that it is in its memory by then.
WARM_PROGRAMS = "(ip -V; rdma link; tar --version; dd --version; chown --version; chmod --version; hostname; nvme version) >/dev/null"
# What a guest without hardware or a way out has no use for; each costs seconds of emulated boot.
MASKED = [
    *QUIET_UNITS, "nvmf-autoconnect.service", "nvmefc-boot-connections.service", "getty@tty1.service", "systemd-pstore.service", "uuidd.socket",
    "modprobe@drm.service", "modprobe@efi_pstore.service", "systemd-hwdb-update.service", "systemd-firstboot.service", "smartmontools.service",
    "systemd-networkd-wait-online.service", "rdma-ndd.service", "mdmonitor-oneshot.timer", "mdcheck_start.timer", "mdcheck_continue.timer",
]  # fmt: skip
# A root shell on the serial line, without the login that would start PAM, logind and a user manager (15 CPU-s under emulation).
SERIAL_SHELL = "[Service]\nExecStart=\nExecStart=-/sbin/agetty --noclear --noissue --skip-login --login-program /bin/bash --keep-baud 115200 %I linux\n"
# The software HCA does not survive a reboot by itself, as a driver's device does.
RXE_UNIT = f"""\
[Unit]
Description=soft-RoCE on the lab's fabric
After=network.target sys-subsystem-net-devices-{guest_qemu.FABRIC}.device
# Not before the guest has its own addresses: the device's GUID is made of the card's.
ConditionPathExists=/etc/systemd/network/11-fabric.network
ConditionPathExists=!/sys/class/infiniband/rxe0

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=/sbin/modprobe rdma_rxe
ExecStart=/usr/bin/rdma link add rxe0 type rxe netdev {guest_qemu.FABRIC}

[Install]
WantedBy=multi-user.target
"""
# 2 GiB hold the tree (0.8 GiB) and what roles install. The file is sparse.
ROOT_BYTES = 2 << 30
SEED_BYTES = 1 << 20
ROOT = "root.qcow2"
# A cold start took 25 to 60 s on busy cores; with eight other jobs on two cores minutes were seen.
BOOT_TIMEOUT_S = 420.0
GOLDEN = (Wire("52:54:00:4e:44:00", "ndl-first"), Wire("52:54:00:4f:44:00", "ndl-fabric"))

Say = Callable[[str], None]


@dataclass(frozen=True)
class GuestImage:
    """``golden`` holds the saved state and what it wrote over the root disk, which lies beside it; a guest gets a copy of ``golden``, for saved
    states do not show through an overlay of it."""

    vmlinux: Path
    initrd: Path
    golden: Path


def prepared(shared: Base, say: Say) -> GuestImage:
    """The image, built when the cache has none. Two builders: the second waits for the first."""
    wanted = cache_folder() / key(shared)
    if not wanted.exists():
        with locked(cache_folder(), "the guests' image is being built", BUILD_TIMEOUT_S):
            if not wanted.exists():
                _build(wanted, shared, say)
    return GuestImage(wanted / "vmlinux", wanted / "initrd", wanted / "golden.qcow2")


def key(shared: Base) -> str:
    """Name of the cache entry: equal for equal contents. A saved state belongs to one version of qemu."""
    version = run(["qemu-system-x86_64", "--version"]).splitlines()[0]
    kernel = [guest_kernel.INIT, guest_kernel.BOOT_MODULES, guest_kernel.KEPT_FOLDERS, guest_kernel.LEFT_FOLDERS, guest_kernel.KEPT_DRIVERS]
    devices = guest_qemu.argv(Files(Path("."), Path("vmlinux"), Path("initrd")), "guest", *GOLDEN, resume=True)
    packages = [shared.root.parent.name, GUEST_PACKAGES, KERNEL_PACKAGES, WARM_MODULES, MASKED]
    recipe = json.dumps([RECIPE, version, packages, kernel, devices, SERIAL_SHELL, RXE_UNIT, ROOT_BYTES])
    return f"{SUITE}-guest-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def _build(wanted: Path, shared: Base, say: Say) -> None:
    """Builds beside the final name and renames at the end: what has the name is whole. Called with the cache locked."""
    partial = wanted.with_name(f"{wanted.name}.partial")
    for left in wanted.parent.glob(f"{SUITE}-guest-*.partial"):
        _sweep(left)
    partial.mkdir()
    complete = False
    try:
        say("building the guests' image once (kernel, packages, root disk, first start: about 4 minutes)")
        repo.build(partial / "debs", shared.root, SUITE, mirror(), KERNEL_PACKAGES)
        tree = partial / "tree"
        run(["cp", "--archive", "--reflink=auto", str(shared.root), str(tree)], BUILD_TIMEOUT_S)
        _install(tree, shared)
        version = _kernel(partial, tree)
        _furnish(tree)
        say(f"writing the guests' root disk (Linux {version})")
        _disk(partial, tree)
        say("starting a guest once, to save its state")
        _save_state(partial, wanted / ROOT)
        for folder in ("tree", "debs", "unpacked"):
            remove_tree(partial / folder)
        partial.rename(wanted)
        complete = True
    finally:
        if not complete:
            _sweep(partial)


def _sweep(partial: Path) -> None:
    """What a builder that was killed has left. The lock is ours, so nobody is at work there."""
    stop(partial.name)
    if partial.exists():
        unmount(partial)
        remove_tree(partial)


def _install(tree: Path, shared: Base) -> None:
    """Debian's packages from the lab's own repository, at this machine's speed. Nothing is started: the tree has no init."""
    policy, listed, store = tree / "usr/sbin/policy-rc.d", tree / "etc/apt/sources.list.d/build.list", tree / "srv/repo"
    shutil.copytree(shared.repo, store)
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    listed.write_text("deb [trusted=yes] file:/srv/repo ./\n")
    inside = [*CONTAINED, "chroot", str(tree)]
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run([*inside, "apt-get", "--quiet", "update"], BUILD_TIMEOUT_S, env=quiet)
    run([*inside, "apt-get", "--quiet", "--yes", "--no-install-recommends", "install", *GUEST_PACKAGES], BUILD_TIMEOUT_S, env=quiet)
    policy.unlink()
    listed.unlink()
    shutil.rmtree(store)
    for leftover in [*(tree / "var/cache/apt/archives").glob("*.deb"), *(tree / "var/lib/apt/lists").glob("*_*")]:
        leftover.unlink()


def _kernel(partial: Path, tree: Path) -> str:
    """Kernel, modules and initrd out of the packages, without installing them. Gives back the kernel's version."""
    unpacked = partial / "unpacked"
    for deb in sorted((partial / "debs").glob("*.deb")):
        if deb.name.startswith(("linux-image-6", "linux-image-7", "busybox-static_")):
            run(["dpkg-deb", "--extract", str(deb), str(unpacked)], BUILD_TIMEOUT_S)
    images = sorted((unpacked / "boot").glob("vmlinuz-*"))
    if not images:
        raise LabProblem(f"no kernel came with {KERNEL_PACKAGES[0]}: its packages are {', '.join(one.name for one in (partial / 'debs').glob('*.deb'))}")
    version = images[-1].name.removeprefix("vmlinuz-")
    (partial / "vmlinux").write_bytes(guest_kernel.uncompressed(images[-1].read_bytes()))
    all_modules = unpacked / "lib/modules" / version
    target = tree / "lib/modules" / version
    for path in sorted(all_modules.rglob("*.ko")):
        if guest_kernel.kept(str(path.relative_to(all_modules))):
            (target / path.relative_to(all_modules)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / path.relative_to(all_modules))
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy2(all_modules / name, target / name)
    run([*CONTAINED, "chroot", str(tree), "depmod", version], BUILD_TIMEOUT_S)
    order = guest_kernel.load_order((target / "modules.dep").read_text(), guest_kernel.BOOT_MODULES)
    (partial / "initrd").write_bytes(guest_kernel.initrd((unpacked / "bin/busybox").read_bytes(), target, order))
    return version


def _furnish(tree: Path) -> None:
    """Makes the tree start in a guest; what tells guests apart comes with the seed disk."""
    units = tree / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    shell = units / "serial-getty@ttyS0.service.d/lab.conf"
    shell.parent.mkdir(parents=True)
    shell.write_text(SERIAL_SHELL)
    (units / "lab-rxe.service").write_text(RXE_UNIT)
    run([*CONTAINED, "chroot", str(tree), "systemctl", "enable", "systemd-networkd.service", "lab-rxe.service"])
    # Keys for the first start only, so that sshd runs in the saved state; each guest's own come with its seed.
    run(["ssh-keygen", "-A", "-f", str(tree)])
    (tree / "etc/fstab").write_text("/dev/vda / ext4 rw,noatime 0 1\n")
    (tree / "etc/hostname").write_text("guest\n")
    (tree / "etc/machine-id").write_text("")


def _disk(partial: Path, tree: Path) -> None:
    """No journal: a guest whose plug is pulled is made afresh."""
    raw = partial / "root.raw"
    with raw.open("wb") as file:
        file.truncate(ROOT_BYTES)
    run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(tree), str(raw)], BUILD_TIMEOUT_S)
    run(["qemu-img", "convert", "-O", "qcow2", str(raw), str(partial / ROOT)], BUILD_TIMEOUT_S)
    raw.unlink()


def _save_state(partial: Path, below: Path) -> None:
    """Boots a guest, waits until all of it has started, loads modules, saves its state into its disk, an overlay of what will lie at ``below``."""
    files = Files(partial / "first", partial / "vmlinux", partial / "initrd")
    files.folder.mkdir()
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", f"../{ROOT}", str(files.root)])
    files.seed.write_bytes(bytes(SEED_BYTES))
    log = files.folder / "qemu.log"
    start_qemu(partial.name, ["unshare", "--net"], files, guest_qemu.argv(files, "first", *GOLDEN, resume=False), log)
    try:
        await_shell(files.serial, BOOT_TIMEOUT_S)
        # Units without a network of theirs may fail; what counts is that the boot is over.
        type_line(files.serial, "systemctl is-system-running --wait >/dev/null; stty -echo; PS1=; true", BOOT_TIMEOUT_S)
        type_line(files.serial, f"modprobe -a {' '.join(WARM_MODULES)} && {WARM_PROGRAMS} && sync", BOOT_TIMEOUT_S)
        with Monitor(files.monitor) as monitor:
            monitor.run("stop")
            monitor.human(f"savevm {SNAPSHOT}")
            monitor.run("quit")
        until(lambda: not marked(partial.name), BOOT_TIMEOUT_S)
    finally:
        stop(partial.name)
    run(["qemu-img", "rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", str(below), str(files.root)])
    files.root.rename(partial / "golden.qcow2")
    remove_tree(files.folder)


def start_qemu(mark: str, within: list[str], files: Files, command: list[str], log: Path) -> None:
    """Starts qemu in its guest's folder. Raises LabProblem with its words when it ends at once."""
    for left in (files.serial, files.monitor):
        left.unlink(missing_ok=True)
    start(mark, [*within, "sh", "-c", 'cd "$0" && exec "$@"', str(files.folder), *command], log)
    # qemu makes its sockets once it has understood its command line and opened its disks.
    if not until(lambda: files.monitor.exists() or not marked(mark), 60.0) or not marked(mark):
        raise LabProblem(f"qemu did not start: {log.read_text(errors='replace')[-1000:] or 'it said nothing'}\n  command: {' '.join(command)}")
