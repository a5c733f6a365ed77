"""Guests of a lab: qemu with a real kernel, started from a saved state, beside the namespace hosts and on the same bridge."""

from __future__ import annotations

import io
import tarfile
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nodectl.lab import disks, guest_qemu
from nodectl.lab.base import Base
from nodectl.lab.guest_image import BOOT_TIMEOUT_S, SEED_BYTES, GuestImage, prepared, start_qemu
from nodectl.lab.guest_qemu import COMMAND_LINE, FABRIC, INTERFACE, Files, Wire
from nodectl.lab.hosts import greets
from nodectl.lab.machine import attempt, marked, remove_tree, run, stop, until
from nodectl.lab.network import BRIDGE, bridge_namespace, within
from nodectl.lab.plan import LAB_USER, REPO_PORT, SERVICES_OCTET, address
from nodectl.lab.problem import LabProblem
from nodectl.lab.qmp import Monitor, type_line
from nodectl.lab.state import LabHost, LabState

Say = Callable[[str], None]
# Resumed guests answered in 4 to 9 s on a machine of two cores; with eight other jobs on them it was a minute.
RESUME_TIMEOUT_S = 240.0
PLUG_TIMEOUT_S = 120.0
# The tap devices are there milliseconds after the monitor; once, on busy cores, they were not yet.
CARDS_TIMEOUT_S = 20.0
# Stopping all units took 8 s on two cores, and 30 with other jobs on them; systemd itself kills a unit after 90.
OFF_TIMEOUT_S = 150.0
# An emulated sshd needs a second of its core for each connection: asked in haste, it only gets slower.
GREETING_S = 20.0
# 52:54:00 is qemu's own; the card, the number of the lab's network, and that of the guest follow.
MAC = "52:54:00:{card:02x}:{net:02x}:{number:02x}"
CARD, FABRIC_CARD = 0x4E, 0x4F
# The fabric's bridge, in the lab's own namespace like the other: its addresses mean something to the guests of this lab only.
FABRIC_BRIDGE = "fab0"
FABRIC_NET = "192.168.77."
# Where systemd-boot and GRUB of the RHEL family keep what a kernel is started with.
LOADER_ENTRY = "/boot/loader/entries/lab.conf"

# Run in the guest, as root, from the seed disk: what tells it apart from every other guest that woke up from the same state.
SEED = """\
set -e
hostname {name}
ip link set {interface} down
ip link set {interface} address {mac}
ip address flush dev {interface}
ip address add {address}/24 dev {interface}
ip link set {interface} up
ip link set {fabric} down
ip link set {fabric} address {fabric_mac}
ip address flush dev {fabric}
ip address add {fabric_address}/24 dev {fabric}
ip link set {fabric} up
chown -R root:root /etc/ssh
chmod 0600 /etc/ssh/ssh_host_*_key
chown -R {user}:{user} /home/{user}/.ssh
chmod 0700 /home/{user}/.ssh
chmod 0600 /home/{user}/.ssh/authorized_keys
kill -HUP "$(cat /run/sshd.pid)" || systemctl start ssh.service
rdma link add rxe0 type rxe netdev {fabric}
"""
NETWORK = """\
[Match]
Name={interface}

[Link]
MACAddress={mac}

[Network]
Address={address}/24
"""


def files(state: LabState, guest: str, image: GuestImage | None = None) -> Files:
    folder = state.host_dir(guest)
    return Files(folder, image.vmlinux if image else folder, image.initrd if image else folder)


def mark(state: LabState, guest: str) -> str:
    return f"{state.id}/{guest}"


def number(guest: LabHost) -> int:
    return int(guest.address.rpartition(".")[2])


def fabric_address(guest: LabHost) -> str:
    return f"{FABRIC_NET}{number(guest)}"


def wires(state: LabState, guest: LabHost) -> tuple[Wire, Wire]:
    """The guest's cards and their ends in the bridges' namespace; qemu makes those, and they go with it."""
    macs = [MAC.format(card=card, net=state.net, number=number(guest)) for card in (CARD, FABRIC_CARD)]
    return Wire(macs[0], f"tap-{guest.name}"), Wire(macs[1], f"fab-{guest.name}")


def make(state: LabState, guest: LabHost, image: GuestImage) -> None:
    """The guest's folder: its copy of the disk with the saved state, and the seed that gives it its own name, address and keys."""
    folder = state.host_dir(guest.name)
    state.claim("tree", str(folder))
    folder.mkdir(parents=True)
    # Saved states do not show through an overlay, so the disk is copied; 0.2 s where the file system shares the blocks.
    run(["cp", "--reflink=auto", "--sparse=always", str(image.golden), str(files(state, guest.name).root)], 120.0)
    keys = folder / "etc/ssh"
    keys.mkdir(parents=True)
    run(["ssh-keygen", "-A", "-f", str(folder)])
    files(state, guest.name).seed.write_bytes(seed(state, guest, keys))
    for serial in guest.serials:
        path = disks.image(state, serial)
        state.claim("file", str(path))
        with path.open("wb") as file:
            file.truncate(state.disk_bytes)


def seed(state: LabState, guest: LabHost, keys: Path) -> bytes:
    """The seed disk: an archive for the guest's root folder, padded to the size the saved state knows. Raises LabProblem when it does not fit."""
    peers = "".join(f"{peer.address} {peer.name}\n" for peer in (*state.hosts, *state.guests))
    services = address(state.net, SERVICES_OCTET)
    wire, fabric = wires(state, guest)
    own = {"interface": INTERFACE, "mac": wire.mac, "address": guest.address}
    other = {"fabric": FABRIC, "fabric_mac": fabric.mac, "fabric_address": fabric_address(guest)}
    texts = {
        "etc/hostname": f"{guest.name}\n",
        "etc/machine-id": f"{uuid.uuid4().hex}\n",
        "etc/hosts": f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{peers}{services} lab\n",
        "etc/apt/sources.list.d/lab.list": f"deb [trusted=yes] http://{services}:{REPO_PORT}/ ./\n",
        "etc/systemd/network/10-lab.network": NETWORK.format(**own),
        "etc/systemd/network/11-fabric.network": NETWORK.format(interface=FABRIC, mac=fabric.mac, address=fabric_address(guest)),
        f"home/{LAB_USER}/.ssh/authorized_keys": state.key.with_suffix(".pub").read_text(),
        "run/seed.sh": SEED.format(name=guest.name, user=LAB_USER, **own, **other),
        **{f"etc/ssh/{path.name}": path.read_text() for path in sorted(keys.iterdir())},
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(text.encode()), 0o600 if name.endswith("_key") else 0o644, int(time.time())
            archive.addfile(entry, io.BytesIO(text.encode()))
    if len(out.getvalue()) > SEED_BYTES:
        raise LabProblem(f"the seed of guest {guest.name} has {len(out.getvalue())} bytes, and {SEED_BYTES} fit: the lab has too many hosts")
    return out.getvalue().ljust(SEED_BYTES, b"\0")


def boot(state: LabState, guest: LabHost, image: GuestImage, resume: bool = True, line: str = COMMAND_LINE) -> None:
    """Starts the guest from its saved state and plugs its wire in; ``wake`` makes it itself. Without ``resume`` it boots from its disk, with ``line``."""
    state.claim("process", mark(state, guest.name))
    own, (wire, fabric) = files(state, guest.name, image), wires(state, guest)
    command = guest_qemu.argv(own, guest.name, wire, fabric, resume, line)
    start_qemu(mark(state, guest.name), within(bridge_namespace(state)), own, command, own.folder / "qemu.log")
    plug = "".join(f"link set {one.tap} master {bridge}\nlink set {one.tap} up\n" for one, bridge in ((wire, BRIDGE), (fabric, FABRIC_BRIDGE)))
    ip = ["ip", "-netns", bridge_namespace(state), "-batch", "-"]
    # qemu answers on its monitor before it has made its cards.
    if not until(lambda: attempt(ip, stdin=plug).returncode == 0, CARDS_TIMEOUT_S, 0.2):
        run(ip, stdin=plug)


def wake(state: LabState, guest: LabHost) -> None:
    """Gives the resumed guest clock, name, address and keys, then its disks, and waits for its sshd. Raises LabProblem."""
    own = files(state, guest.name)
    # The clock stands where the state was saved; keys and certificates are judged by it. The seed is read past what the saved state has cached.
    first = f"date -s @{int(time.time())} >/dev/null && dd if=/dev/vdb bs=64k iflag=direct 2>/dev/null | tar -C / -xf - --no-same-owner && sh /run/seed.sh"
    type_line(own.serial, first, RESUME_TIMEOUT_S)
    plug_disks(state, guest)
    if not until(lambda: greets(guest.address, GREETING_S), RESUME_TIMEOUT_S, 2.0):
        raise LabProblem(f"guest {guest.name}: no sshd greets at {guest.address} within {RESUME_TIMEOUT_S:.0f} s; see {own.console}")


def plug_disks(state: LabState, guest: LabHost) -> None:
    """Plugs the guest's NVMe disks in and waits until it shows all of them. Raises LabProblem."""
    own = files(state, guest.name)
    _plug(state, guest, guest.serials)
    if guest.serials:
        seconds = int(PLUG_TIMEOUT_S)
        links = " && ".join(f"ls /dev/disk/by-id/nvme-*{serial}* >/dev/null 2>&1" for serial in guest.serials)
        type_line(own.serial, f"timeout {seconds} sh -c 'until {links}; do sleep 0.3; done'", PLUG_TIMEOUT_S + 10.0)


def _plug(state: LabState, guest: LabHost, serials: Sequence[str]) -> None:
    """These disks into the first ports, in this order: the kernel names them by it."""
    with Monitor(files(state, guest.name).monitor) as monitor:
        for port, serial in enumerate(serials):
            for command, arguments in guest_qemu.nvme(serial, disks.image(state, serial), port):
                monitor.run(command, arguments)


def went_off(state: LabState, guest: LabHost, given_up: Callable[[], bool] = lambda: False) -> bool:
    """Whether a guest that was told to go off did so: units stopped, file systems unmounted, qemu ended. ``given_up`` ends the wait."""
    until(lambda: given_up() or not running(state, guest.name), OFF_TIMEOUT_S, 0.5)
    return not running(state, guest.name)


def off_at_reboot(state: LabState, guest: LabHost) -> None:
    """From now on its qemu ends where the guest would reboot: who waits for that can change what a machine's owner changes, and switch it on."""
    with Monitor(files(state, guest.name).monitor) as monitor:
        monitor.run("set-action", {"reboot": "shutdown"})


def loader_line(state: LabState, guest: LabHost) -> str:
    """The kernel's line by the boot loader's entry on the disk of a guest that is off: qemu starts kernels itself, so the lab is its boot loader.

    Raises LabProblem when there is no such entry.
    """
    own = files(state, guest.name)
    raw = own.folder / "root.raw"
    run(["qemu-img", "convert", "-O", "raw", str(own.root), str(raw)], 120.0)
    try:
        entry = run(["debugfs", "-R", f"cat {LOADER_ENTRY}", str(raw)])
    finally:
        raw.unlink()
    lines = [line.partition(" ")[2].strip() for line in entry.splitlines() if line.startswith("options ")]
    if len(lines) != 1:
        raise LabProblem(f"guest {guest.name}: {LOADER_ENTRY} on its disk has {len(lines)} lines of options, expected 1")
    return lines[0]


def power_on(state: LabState, guest: LabHost, serials: Sequence[str], line: str = COMMAND_LINE) -> None:
    """Boots a guest that is off from its own disk, with these NVMe disks in the ports from the first on, and waits for its sshd. Raises LabProblem.

    Not for the shell on its serial line: on a machine with too much to do systemd gives that up after 90 s, and nothing else.
    """
    boot(state, guest, _image(state, lambda _text: None), resume=False, line=line)
    _plug(state, guest, serials)
    if not until(lambda: greets(guest.address, GREETING_S), BOOT_TIMEOUT_S, 2.0):
        raise LabProblem(f"guest {guest.name}: no sshd greets at {guest.address} within {BOOT_TIMEOUT_S:.0f} s after it was switched on")


def unplug_disk(state: LabState, guest: LabHost, port: int) -> None:
    """Pulls NVMe disk number ``port`` (from 0), as a hand would."""
    with Monitor(files(state, guest.name).monitor) as monitor:
        monitor.run("device_del", {"id": f"nvme{port}"})


def set_port(state: LabState, guest: LabHost, up: bool) -> None:
    """Plugs the guest's fabric cable in or out: the interface loses its carrier, the RDMA port goes down; ssh still answers."""
    with Monitor(files(state, guest.name).monitor) as monitor:
        monitor.run("set_link", {"name": "card-f0", "up": up})


def inside(state: LabState, guest: str, line: str, timeout: float) -> str:
    """Runs a shell line as root on the guest's serial line, past its sshd and network, and gives back what it printed. Raises LabProblem."""
    return type_line(files(state, guest).serial, line, timeout)


def running(state: LabState, guest: str) -> bool:
    return bool(marked(mark(state, guest)))


def known_hosts(state: LabState, guest: LabHost) -> list[str]:
    keys = sorted((state.host_dir(guest.name) / "etc/ssh").glob("ssh_host_*_key.pub"))
    return [f"{guest.name},{guest.address} {' '.join(key.read_text().split()[:2])}\n" for key in keys]


def start_all(state: LabState, image: GuestImage, say: Say) -> None:
    """All guests of the lab, side by side, until each one's sshd greets."""
    run(["ip", "-netns", bridge_namespace(state), "-batch", "-"], stdin=f"link add {FABRIC_BRIDGE} type bridge\nlink set {FABRIC_BRIDGE} up\n")
    _start(state, state.guests, image, say)


def renew(state: LabState, chosen: Sequence[LabHost], say: Say) -> None:
    """Pulls the plug of these guests and starts them afresh, with empty disks and new host keys."""
    if not chosen:
        return
    image = _image(state, say)
    for guest in chosen:
        stop(mark(state, guest.name))
        remove_tree(state.host_dir(guest.name))
    _start(state, chosen, image, say)


def _image(state: LabState, say: Say) -> GuestImage:
    base = Path(state.base)
    return prepared(Base(base, Path(state.repo), (base.parent / "python").read_text().strip()), say)


def _start(state: LabState, chosen: Sequence[LabHost], image: GuestImage, say: Say) -> None:
    for guest in chosen:
        say(f"starting guest {guest.name}")
        make(state, guest, image)
        boot(state, guest, image)
    with ThreadPoolExecutor(max(1, len(chosen)), thread_name_prefix="wake") as pool:
        for job in [pool.submit(wake, state, guest) for guest in chosen]:
            job.result()
