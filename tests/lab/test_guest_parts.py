"""The parts of guests that need no qemu: kernel and initrd as files, the monitor's and the serial line's words, seed, plan, inventory."""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
import socket
import struct
import subprocess
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nodectl.lab import guest_image, guest_kernel, guest_qemu, guests, inventory_file, lifecycle, needs, plan, qmp
from nodectl.lab.base import Base
from nodectl.lab.guest_qemu import Files, Wire
from nodectl.lab.plan import LabPlan
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState, load
from tests.lab.reading import read_yaml

# -- kernel and initrd


def bzimage(payload: bytes, sectors: int = 3) -> bytes:
    """A bzImage as far as its payload is concerned."""
    image = bytearray((sectors + 1) * 512 + 64)
    image[0x1F1] = sectors
    struct.pack_into("<II", image, 0x248, 64, len(payload))
    return bytes(image) + payload


def xz(text: bytes) -> bytes:
    """As the kernel's build does it: the unpacked size behind the stream."""
    return lzma.compress(text) + struct.pack("<I", len(text))


def test_the_kernel_is_taken_out_of_its_image() -> None:
    kernel = b"\x7fELF" + bytes(5000) + b"end"
    assert guest_kernel.uncompressed(bzimage(xz(kernel))) == kernel
    assert guest_kernel.uncompressed(bzimage(xz(kernel), sectors=27)) == kernel


@pytest.mark.parametrize(("payload", "words"), [(xz(b"no kernel"), "no ELF file"), (b"\x28\xb5\x2f\xfd" + bytes(64), "not compressed with xz")])
def test_a_kernel_of_another_make_is_refused(payload: bytes, words: str) -> None:
    with pytest.raises(LabProblem, match=words):
        guest_kernel.uncompressed(bzimage(payload))


MODULES_DEP = """\
kernel/drivers/virtio/virtio.ko:
kernel/drivers/virtio/virtio_ring.ko: kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko
kernel/fs/ext4/ext4.ko: kernel/fs/mbcache.ko kernel/fs/jbd2/jbd2.ko
kernel/fs/mbcache.ko:
kernel/fs/jbd2/jbd2.ko:
kernel/arch/x86/crypto/crc32-pclmul.ko.xz:
"""


def test_modules_load_after_what_they_need() -> None:
    order = [Path(path).name for path in guest_kernel.load_order(MODULES_DEP, ["virtio_pci", "ext4", "virtio_ring", "crc32_pclmul"])]
    assert order == ["virtio.ko", "virtio_ring.ko", "virtio_pci.ko", "jbd2.ko", "mbcache.ko", "ext4.ko", "crc32-pclmul.ko.xz"]


def test_a_module_that_the_kernel_lacks_is_named() -> None:
    with pytest.raises(LabProblem, match="has no module btrfs"):
        guest_kernel.load_order(MODULES_DEP, ["btrfs"])


@pytest.mark.parametrize(("module", "kept"), [
    ("kernel/fs/xfs/xfs.ko", True), ("kernel/drivers/nvme/host/nvme.ko", True), ("kernel/drivers/net/virtio_net.ko", True), ("kernel/drivers/net/bonding/bonding.ko", True),
    ("kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko", True), ("kernel/arch/x86/crypto/crc32-pclmul.ko", True), ("kernel/net/netfilter/nf_tables.ko", True),
    ("kernel/drivers/gpu/drm/nouveau/nouveau.ko", False), ("kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko", False), ("kernel/sound/soundcore.ko", False),
    ("kernel/net/wireless/cfg80211.ko", False), ("kernel/arch/x86/kvm/kvm.ko", False), ("kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko", False),
])
def test_which_modules_a_guest_gets(module: str, kept: bool) -> None:
    assert guest_kernel.kept(module) is kept


def read_cpio(data: bytes) -> dict[str, tuple[int, bytes, tuple[int, int]]]:
    """A reader of its own, so that a mistake of the writer shows."""
    found: dict[str, tuple[int, bytes, tuple[int, int]]] = {}
    at = 0
    while True:
        assert data[at:at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * number:at + 14 + 8 * number], 16) for number in range(13)]
        mode, size, major, minor, length = fields[1], fields[6], fields[9], fields[10], fields[11]
        name = data[at + 110:at + 110 + length - 1].decode()
        start = at + (110 + length + 3) // 4 * 4
        at = start + (size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, data[start:start + size], (major, minor))


def test_the_initrd_holds_init_modules_and_a_console(tmp_path: Path) -> None:
    for name in ("kernel/a/one.ko", "kernel/b/two.ko"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(name.encode())
    found = read_cpio(guest_kernel.initrd(b"BUSY", tmp_path, ["kernel/a/one.ko", "kernel/b/two.ko"]))
    assert found["bin/busybox"] == (0o100755, b"BUSY", (0, 0))
    assert found["init"][1].startswith(b"#!/bin/busybox sh\n")
    assert found["modules/order"][1] == b"one.ko\ntwo.ko\n"
    assert found["modules/two.ko"][1] == b"kernel/b/two.ko"
    assert found["dev/console"] == (0o020600, b"", (5, 1))


@pytest.mark.skipif(not shutil.which("busybox"), reason="busybox is not installed")
def test_init_is_a_script_that_busybox_understands() -> None:
    done = subprocess.run(["busybox", "sh", "-n"], input=guest_kernel.INIT, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")


# -- qemu's control socket


class Server:
    """A unix socket that answers each line, or each piece, as a function says; None closes."""

    def __init__(self, path: Path, greeting: bytes, answer: Callable[[bytes], bytes | None]) -> None:
        self.answer, self.greeting, self.heard = answer, greeting, b""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        client, _ = self.listener.accept()
        client.sendall(self.greeting)
        while piece := client.recv(65536):
            self.heard += piece
            reply = self.answer(piece)
            if reply is None:
                break
            client.sendall(reply)
        client.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "socket"


def monitor(place: Path, answers: dict[str, object]) -> Server:
    def answer(piece: bytes) -> bytes | None:
        command = json.loads(piece)["execute"]
        if command == "qmp_capabilities":
            return b'{"return": {}}\n'
        found = answers[command]
        return None if found is None else b'{"event": "STOP"}\n' + json.dumps(found).encode() + b"\n"

    return Server(place, b'{"QMP": {}}\n', answer)


def test_the_monitor_returns_what_qemu_said_past_its_events(place: Path) -> None:
    monitor(place, {"query-status": {"return": {"running": True}}, "human-monitor-command": {"return": ""}})
    with qmp.Monitor(place, 5.0) as talk:
        assert talk.run("query-status") == {"running": True}
        assert talk.human("savevm ready") == ""


@pytest.mark.parametrize(("answer", "words"), [
    ({"error": {"class": "GenericError", "desc": "Bus 'rp9' not found"}}, "qemu refused device_add: Bus 'rp9' not found"), (None, "ended while it was asked"),
])
def test_what_the_monitor_refuses_is_said(place: Path, answer: object, words: str) -> None:
    monitor(place, {"device_add": answer})
    with pytest.raises(LabProblem, match=words), qmp.Monitor(place, 5.0) as talk:
        talk.run("device_add", {})


def test_words_of_the_human_monitor_are_a_failure(place: Path) -> None:
    monitor(place, {"human-monitor-command": {"return": "State blocked by non-migratable device\r\n"}})
    with pytest.raises(LabProblem, match="State blocked by non-migratable device"), qmp.Monitor(place, 5.0) as talk:
        talk.human("savevm ready")


def test_a_monitor_that_is_silent_is_not_waited_for(place: Path) -> None:
    Server(place, b"", lambda _piece: b"")
    with pytest.raises(LabProblem, match=r"did not answer within 0\.3 s"), qmp.Monitor(place, 0.3):
        pass


def test_nobody_listens(place: Path) -> None:
    with pytest.raises(LabProblem, match="no qemu listens at"), qmp.Monitor(place, 0.2):
        pass


def test_a_socket_may_lie_deep(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-long-name-of-a-folder"] * 6)
    folder.mkdir(parents=True)
    here = os.open(folder, os.O_RDONLY)
    Server(Path(f"/proc/self/fd/{here}/s"), b'{"QMP": {}}\n', lambda _piece: b'{"return": {}}\n')
    assert len(str(folder / "s")) > 107
    with qmp.Monitor(folder / "s", 5.0) as talk:
        assert talk.run("cont") == {}
    os.close(here)


# -- the serial line


def shell(place: Path, output: str = "", code: int = 0, silent: int = 0) -> Server:
    """A shell on a serial line: echoes what is typed, then answers; ``silent`` pieces are lost first."""
    lost = [silent]

    def answer(piece: bytes) -> bytes | None:
        if lost[0]:
            lost[0] -= 1
            return b""
        text = piece.decode().removeprefix(qmp.CLEAR)
        word = text.partition("CTL-")[2].partition("-")[0].strip()
        end = f"NODECTL-{word}-{code}\r\n" if "-$?" in text else f"NODECTL-{word}\r\n"
        return (text + output + "\r\n" + end).encode()

    return Server(place, b"", answer)


def test_a_line_is_typed_and_its_output_read(place: Path) -> None:
    server = shell(place, "rxe0 ACTIVE")
    assert "rxe0 ACTIVE" in qmp.type_line(place, "rdma link", 5.0)
    assert server.heard.startswith(qmp.CLEAR.encode())


def test_a_line_that_fails_raises_with_its_output(place: Path) -> None:
    shell(place, "no such device", code=19)
    with pytest.raises(LabProblem, match=r"(?s)exit code 19.*no such device"):
        qmp.type_line(place, "rdma link add", 5.0)


def test_the_echo_is_not_taken_for_the_end(place: Path) -> None:
    """A shell that only echoes has not ended."""
    Server(place, b"", lambda piece: piece)
    with pytest.raises(LabProblem, match=r"did not end 'sleep 9' within 0\.5 s"):
        qmp.type_line(place, "sleep 9", 0.5)


def test_a_serial_line_that_closes_is_said(place: Path) -> None:
    Server(place, b"", lambda _piece: None)
    with pytest.raises(LabProblem, match="was closed"):
        qmp.type_line(place, "true", 2.0)


def test_a_shell_is_typed_to_until_it_is_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qmp, "AGAIN_S", 0.05)
    server = shell(place, silent=2)
    qmp.await_shell(place, 5.0)
    assert server.heard.count(b"CTL-") >= 3


def test_a_guest_without_a_shell_is_not_waited_for_ever(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qmp, "AGAIN_S", 0.05)
    Server(place, b"Kernel panic - not syncing", lambda _piece: b"")
    with pytest.raises(LabProblem, match="showed no shell within .*Kernel panic"):
        qmp.await_shell(place, 0.4)


# -- the command, the seed


WIRES = (Wire("52:54:00:4e:04:65", "tap-g1"), Wire("52:54:00:4f:04:65", "fab-g1"))


def test_the_same_devices_for_the_first_start_and_every_other(tmp_path: Path) -> None:
    """qemu refuses a saved state when one differs."""
    files = Files(tmp_path, tmp_path / "vmlinux", tmp_path / "initrd")
    first, again = (guest_qemu.argv(files, "g1", *WIRES, resume=resume) for resume in (False, True))
    assert again[:len(first)] == first
    assert again[len(first):] == ["-loadvm", "ready"]
    assert sum(word.startswith("pcie-root-port") for word in first) == plan.NVME_PORTS
    assert not any("nvme," in word for word in first), "a state with an NVMe disk cannot be saved"
    assert "tcg" in first[first.index("-accel") + 1]


def test_a_disk_is_plugged_in_with_its_serial() -> None:
    (add, device) = guest_qemu.nvme("LAB4G1D2", Path("/x/LAB4G1D2.img"), 1)
    assert add[1]["node-name"] == device[1]["drive"]
    assert (device[1]["serial"], device[1]["bus"]) == ("LAB4G1D2", "rp1")


@pytest.fixture
def state(tmp_path: Path) -> LabState:
    found = LabState("a1b2c3", "dev", tmp_path, net=4)
    found.hosts = (LabHost("n1", "10.77.4.11", ("LAB4N1D1",)),)
    found.guests = tuple(LabHost(name, plan.host_address(4, name), plan.serials(4, name, 2)) for name in plan.guest_names(2))
    found.key.with_suffix(".pub").write_text("ssh-ed25519 AAAA lab\n")
    keys = found.host_dir("g1") / "etc/ssh"
    keys.mkdir(parents=True)
    (keys / "ssh_host_ed25519_key").write_text("PRIVATE\n")
    (keys / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 BBBB root@x\n")
    return found


def test_the_seed_gives_a_guest_its_own_name_address_and_keys(state: LabState) -> None:
    data = guests.seed(state, state.guests[0], state.host_dir("g1") / "etc/ssh")
    assert len(data) == guest_image.SEED_BYTES
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        texts = {entry.name: archive.extractfile(entry).read().decode() for entry in archive}  # type: ignore[union-attr]
        modes = {entry.name: entry.mode for entry in archive}
    assert texts["etc/hostname"] == "g1\n"
    assert "10.77.4.102 g2" in texts["etc/hosts"]
    assert "10.77.4.11 n1" in texts["etc/hosts"]
    assert "127.0.1.1" not in texts["etc/hosts"]
    assert texts["home/ops/.ssh/authorized_keys"] == "ssh-ed25519 AAAA lab\n"
    assert modes["etc/ssh/ssh_host_ed25519_key"] == 0o600
    assert "Address=192.168.77.101/24" in texts["etc/systemd/network/11-fabric.network"]
    assert len(texts["etc/machine-id"]) == 33


def test_the_seed_s_script_is_one(state: LabState) -> None:
    data = guests.seed(state, state.guests[0], state.host_dir("g1") / "etc/ssh")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        script = archive.extractfile("run/seed.sh").read().decode()  # type: ignore[union-attr]
    assert "{" not in script
    assert subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, timeout=20).returncode == 0


def test_a_seed_that_does_not_fit_is_refused(state: LabState) -> None:
    (state.host_dir("g1") / "etc/ssh/ssh_host_rsa_key").write_text("x" * (1 << 20))
    with pytest.raises(LabProblem, match="the seed of guest g1"):
        guests.seed(state, state.guests[0], state.host_dir("g1") / "etc/ssh")


def test_no_two_guests_of_two_labs_share_an_address_of_a_card(state: LabState) -> None:
    macs = set()
    for net in (4, 5):
        state.net = net
        for guest in state.guests:
            macs |= {wire.mac for wire in guests.wires(state, LabHost(guest.name, plan.host_address(net, guest.name)))}
    assert len(macs) == 8
    assert all(len(wire.tap) <= 15 for guest in state.guests for wire in guests.wires(state, guest))


# -- plan, state, inventory, needs


@pytest.mark.parametrize(("wrong", "said"), [
    (LabPlan(guests=9), "--guests 9: expected 0 to 8"), (LabPlan(guests=-1), "--guests -1"), (LabPlan(guests=2, disks=7), "a guest has 6 places for NVMe disks"),
    (LabPlan(hosts=-1, guests=1), "--hosts -1: expected 0 to 64"), (LabPlan(hosts=0), "--hosts 0: expected 1 to 64"),
])
def test_what_no_lab_of_guests_can_be(wrong: LabPlan, said: str) -> None:
    with pytest.raises(LabProblem) as problem:
        wrong.checked()
    assert said in str(problem.value)


def test_guests_alone_are_a_lab(tmp_path: Path) -> None:
    checked = LabPlan(dir=tmp_path, hosts=0, guests=2).checked()
    assert (checked.hosts, checked.guests) == (0, 2)
    assert [plan.host_address(4, name) for name in plan.guest_names(2)] == ["10.77.4.101", "10.77.4.102"]


def test_the_state_keeps_its_guests_and_reads_what_had_none(state: LabState) -> None:
    state.save()
    again = load(state.dir)
    assert again is not None
    assert again.guests == state.guests
    assert again.guest("g2").address == "10.77.4.102"
    with pytest.raises(LabProblem, match=r"guest 'n1' is not in lab 'dev': it has g1, g2"):
        again.guest("n1")
    path = state.dir / "lab.json"
    old = json.loads(path.read_text())
    del old["guests"]
    path.write_text(json.dumps(old))
    older = load(state.dir)
    assert older is not None
    assert older.guests == ()


def test_one_inventory_for_hosts_and_guests(state: LabState) -> None:
    groups = read_yaml(inventory_file.inventory_text(state, fixed=False))["all"]["children"]
    assert list(groups["gpu"]["hosts"]) == ["n1"]
    assert groups["guests"]["hosts"]["g1"] == {
        "ansible_host": "10.77.4.101", "fabric_address": "192.168.77.101", "scratch_devices": [{"serial": "LAB4G1D1"}, {"serial": "LAB4G1D2"}],
    }
    assert groups["guests"]["vars"] == {"torch_python": "", "base_memlock": "unlimited", "base_nofile": 1048576, "rdma_floor": "100 kB/s"}


def test_an_inventory_without_hosts_or_without_guests(state: LabState) -> None:
    hosts, state.hosts = state.hosts, ()
    assert read_yaml(inventory_file.inventory_text(state, fixed=False))["all"]["children"]["gpu"] == {"hosts": {}}
    state.hosts, state.guests = hosts, ()
    assert list(read_yaml(inventory_file.inventory_text(state, fixed=False))["all"]["children"]) == ["gpu"]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool, path=None: None if tool.startswith("qemu") else f"/usr/bin/{tool}")
    monkeypatch.setattr(needs, "DEVICES", {})
    monkeypatch.setattr(needs, "KEYRING", Path("/"))


@pytest.mark.usefixtures("complete")
def test_missing_qemu_is_one_message_with_the_line_that_installs_it() -> None:
    needs.require(s3=False)
    with pytest.raises(LabProblem) as problem:
        needs.require(s3=False, guests=1)
    assert "missing programs: qemu-system-x86_64, qemu-img" in str(problem.value)
    assert str(problem.value).endswith("apt-get install -y qemu-system-x86 qemu-utils")


@pytest.mark.usefixtures("complete")
def test_lab_up_says_it_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(LabProblem, match="qemu-system-x86"):
        lifecycle.up(LabPlan(dir=tmp_path / "lab", hosts=0, guests=1, s3=False))
    assert not (tmp_path / "lab").exists()


def test_guests_that_do_not_fit_into_memory_are_refused() -> None:
    needs.require_memory(0)
    with pytest.raises(LabProblem, match="no room for 100000 guests"):
        needs.require_memory(100_000)


def test_the_cache_tells_images_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By qemu's version, and by what is done to them: a state that was saved otherwise cannot be loaded."""
    said = ["QEMU emulator version 7.2.22 (Debian)\nCopyright"]
    monkeypatch.setattr(guest_image, "run", lambda _argv: said[0])
    shared = Base(tmp_path / "bookworm-1/root", tmp_path / "bookworm-1/repo", "3.11")
    first = guest_image.key(shared)
    assert first == guest_image.key(shared)
    assert first.startswith("bookworm-guest-")
    said[0] = "QEMU emulator version 9.0.0\n"
    assert guest_image.key(shared) != first
    said[0] = "QEMU emulator version 7.2.22 (Debian)\n"
    monkeypatch.setattr(guest_qemu, "MEMORY_MIB", 2048)
    assert guest_image.key(shared) != first
