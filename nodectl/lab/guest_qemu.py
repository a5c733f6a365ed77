"""The qemu command of a guest: the same devices for the first start and for every start from the saved state, or qemu refuses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodectl.lab.plan import NVME_PORTS

# One vCPU: two guests of two each on two cores wait for one another's locks (118 CPU-s each instead of 35, measured).
MEMORY_MIB = 1024
# What the machine stands on, in order: fixed places keep the interface's name (enp0s16) and let a state be loaded again.
INTERFACE, FABRIC = "enp0s16", "enp0s18"
ROOT_PLACE, SEED_PLACE, NET_PLACE, RNG_PLACE, FABRIC_PLACE, FIRST_PORT = 0x8, 0x9, 0x10, 0x11, 0x12, 0x2
# Without AVX there is less to emulate: 59 instead of 66 CPU-s until ssh answered. norandmaps lets TCG use translated pages again: 33 instead of 39.
CPU = "Nehalem"
COMMAND_LINE = "console=ttyS0 root=/dev/vda rw quiet loglevel=4 mitigations=off norandmaps"
SNAPSHOT = "ready"


@dataclass(frozen=True)
class Files:
    """What one guest's qemu opens, in its folder: ``root`` (qcow2, with the saved state), ``seed`` (raw, read-only for the guest)."""

    folder: Path
    vmlinux: Path
    initrd: Path

    @property
    def root(self) -> Path:
        return self.folder / "root.qcow2"

    @property
    def seed(self) -> Path:
        return self.folder / "seed.tar"

    @property
    def serial(self) -> Path:
        return self.folder / "serial"

    @property
    def monitor(self) -> Path:
        return self.folder / "qmp"

    @property
    def console(self) -> Path:
        return self.folder / "console.log"


@dataclass(frozen=True)
class Wire:
    """One network card: its address, and the tap device that qemu makes for it."""

    mac: str
    tap: str


def argv(files: Files, name: str, wire: Wire, fabric: Wire, resume: bool, line: str = COMMAND_LINE) -> list[str]:
    """To be started in the network namespace where the tap devices belong, with ``files.folder`` as the working folder.

    ``wire`` leads to the controller, ``fabric`` carries RDMA: a node whose fabric is cut still answers. ``resume`` starts from the saved state,
    without which the guest boots with ``line`` for its kernel.
    """
    return [
        "qemu-system-x86_64", "-name", name, "-M", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", CPU, "-m", str(MEMORY_MIB), "-smp", "1",
        "-nodefaults", "-no-user-config", "-display", "none", "-rtc", "base=utc",
        "-chardev", f"socket,id=s0,path={files.serial.name},server=on,wait=off,logfile={files.console.name},logappend=on", "-serial", "chardev:s0",
        "-qmp", f"unix:{files.monitor.name},server=on,wait=off",
        "-kernel", str(files.vmlinux), "-initrd", str(files.initrd), "-append", line,
        "-drive", f"file={files.root.name},if=none,id=root,format=qcow2,cache=unsafe,discard=unmap",
        "-device", f"virtio-blk-pci,drive=root,addr={ROOT_PLACE:#x}",
        "-drive", f"file={files.seed.name},if=none,id=seed,format=raw,readonly=on,cache=none", "-device", f"virtio-blk-pci,drive=seed,addr={SEED_PLACE:#x}",
        *_card("n0", wire, NET_PLACE), *_card("f0", fabric, FABRIC_PLACE),
        "-device", f"virtio-rng-pci,addr={RNG_PLACE:#x}", *_ports(), *(["-loadvm", SNAPSHOT] if resume else []),
    ]  # fmt: skip


def _card(name: str, wire: Wire, place: int) -> list[str]:
    """The rate that rdma_rxe shows for its port is the card's ``speed`` (Mb/s)."""
    return [
        "-netdev", f"tap,id={name},ifname={wire.tap},script=no,downscript=no",
        "-device", f"virtio-net-pci,id=card-{name},netdev={name},romfile=,mac={wire.mac},addr={place:#x},speed=100000,duplex=full",
    ]  # fmt: skip


def _ports() -> list[str]:
    return [
        word for number in range(NVME_PORTS)
        for word in ("-device", f"pcie-root-port,id=rp{number},chassis={number + 1},slot={number + 1},addr={FIRST_PORT + number:#x}.0")
    ]  # fmt: skip


def nvme(serial: str, image: Path, port: int) -> Sequence[tuple[str, dict[str, object]]]:
    """QMP commands that plug an NVMe disk into root port ``port``."""
    node = f"disk{port}"
    return (
        ("blockdev-add", {"driver": "raw", "node-name": node, "file": {"driver": "file", "filename": str(image), "discard": "unmap"}, "discard": "unmap"}),
        ("device_add", {"driver": "nvme", "id": f"nvme{port}", "serial": serial, "drive": node, "bus": f"rp{port}"}),
    )
