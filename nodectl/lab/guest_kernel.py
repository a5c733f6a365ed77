"""A Debian kernel and an initrd small enough to start quickly without hardware virtualisation. Reads and writes files, starts nothing."""

from __future__ import annotations

import lzma
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from nodectl.lab.problem import LabProblem

# Where the first sectors of a bzImage say where its payload lies (Linux, Documentation/arch/x86/boot.rst).
SETUP_SECTORS, PAYLOAD_OFFSET, PAYLOAD_LENGTH, SECTOR = 0x1F1, 0x248, 0x24C, 512
# What the root disk needs before it is mounted. crc32c is found through a crypto alias only, which modules.dep does not know.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
# Of all modules of the kernel, those that a node without graphics, sound and foreign hardware may be asked for. The crc32 modules lie in
# crypto and arch: without them rdma_rxe says "No such file or directory" when a link is added.
KEPT_FOLDERS = (
    "kernel/arch/", "kernel/crypto/", "kernel/lib/", "kernel/fs/", "kernel/net/", "kernel/mm/", "kernel/block/", "kernel/drivers/nvme/",
    "kernel/drivers/md/", "kernel/drivers/block/", "kernel/drivers/virtio/", "kernel/drivers/infiniband/core/", "kernel/drivers/infiniband/sw/",
    "kernel/drivers/infiniband/ulp/", "kernel/drivers/char/", "kernel/drivers/crypto/", "kernel/drivers/cpufreq/", "kernel/drivers/watchdog/",
)  # fmt: skip
LEFT_FOLDERS = ("kernel/net/wireless/", "kernel/net/mac80211/", "kernel/net/bluetooth/", "kernel/net/nfc/", "kernel/net/can/", "kernel/arch/x86/kvm/")
KEPT_DRIVERS = ("virtio_net", "net_failover", "veth", "tun", "tap", "dummy", "bonding", "macvlan", "ifb", "vxlan")

INIT = """\
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
while read -r module; do /bin/busybox insmod "/modules/$module"; done </modules/order
tries=0
until [ -b /dev/vda ] || [ $tries -ge 600 ]; do /bin/busybox sleep 0.1; tries=$((tries + 1)); done
/bin/busybox mount -t ext4 /dev/vda /root || { echo "no root disk"; /bin/busybox poweroff -f; }
/bin/busybox umount /proc /sys
/bin/busybox mount --move /dev /root/dev
exec /bin/busybox switch_root /root /sbin/init
"""


def uncompressed(bzimage: bytes) -> bytes:
    """The ELF kernel inside a bzImage. qemu starts it directly (PVH), which saves its decompression in the guest. Raises LabProblem."""
    sectors = bzimage[SETUP_SECTORS] or 4
    offset, length = struct.unpack_from("<II", bzimage, PAYLOAD_OFFSET)
    start = (sectors + 1) * SECTOR + offset
    try:
        # The payload ends with its unpacked size (4 bytes), which is no part of the stream.
        kernel = lzma.LZMADecompressor().decompress(bzimage[start : start + length])
    except lzma.LZMAError as error:
        raise LabProblem(f"the kernel's payload is not compressed with xz ({error}): Debian has changed its kernels; this lab needs a new recipe") from error
    if not kernel.startswith(b"\x7fELF"):
        raise LabProblem("the kernel's payload is no ELF file: this lab needs a new recipe for it")
    return kernel


def kept(module: str) -> bool:
    """Whether a module, by its path below lib/modules/VERSION, goes into the guests' root."""
    if module.startswith(LEFT_FOLDERS):
        return False
    return module.startswith(KEPT_FOLDERS) or (module.startswith("kernel/drivers/net/") and Path(module).name.partition(".")[0] in KEPT_DRIVERS)


def load_order(modules_dep: str, wanted: Sequence[str]) -> list[str]:
    """Paths of ``wanted`` modules and all they depend on, in the order in which they load. Raises LabProblem for one that is not there.

    A line of modules.dep lists what a module needs, the last first.
    """
    needs = {path: rest.split() for path, _, rest in (line.partition(":") for line in modules_dep.splitlines())}
    by_name = {Path(path).name.partition(".")[0].replace("-", "_"): path for path in needs}
    order: list[str] = []
    for name in wanted:
        if name not in by_name:
            raise LabProblem(f"this kernel has no module {name}: the guests' recipe does not fit it")
        path = by_name[name]
        order += [each for each in [*reversed(needs[path]), path] if each not in order]
    return order


def initrd(busybox: bytes, modules: Path, order: Sequence[str]) -> bytes:
    """An initial RAM disk (newc cpio, uncompressed) that loads ``order`` from the folder ``modules`` and hands over to /dev/vda."""
    files: list[tuple[str, int, bytes]] = [
        ("bin", 0o040755, b""), ("modules", 0o040755, b""), ("bin/busybox", 0o100755, busybox), ("init", 0o100755, INIT.encode()),
        ("modules/order", 0o100644, "".join(f"{Path(path).name}\n" for path in order).encode()),
    ]  # fmt: skip
    files += [(f"modules/{Path(path).name}", 0o100644, (modules / path).read_bytes()) for path in order]
    # The kernel's own /dev/console, for what init says before devtmpfs is there.
    return cpio([*files, ("dev", 0o040755, b""), ("dev/console", 0o020600, b"")])


def cpio(files: Iterable[tuple[str, int, bytes]]) -> bytes:
    """An archive in the form newc; /dev/console is the one device it may hold. (name, mode, content) each."""
    out = bytearray()
    for number, (name, mode, content) in enumerate(files, 1):
        major, minor = (5, 1) if mode & 0o170000 == 0o020000 else (0, 0)
        out += _entry(number, name, mode, content, major, minor)
    return bytes(out + _entry(0, "TRAILER!!!", 0, b"", 0, 0))


def _entry(number: int, name: str, mode: int, content: bytes, major: int, minor: int) -> bytes:
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
