"""Selection, sysfs reading, signatures and guards without any device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.agent import blocks, scratch_guard, scratch_select, signatures, sizes
from nodectl.agent.blocks import Disk
from nodectl.agent.scratch_guard import Reading, stand
from nodectl.agent.signatures import Found
from tests.agent.modules_sys.scripted import Scripted, reason

NVME = Disk("/dev/nvme0n1", "nvme0n1", "259:0", "nvme", "S1", "eui.0025385c", "SAMSUNG MZQL23T8", 3840755982336, False, ("nvme-SAMSUNG_S1",), (), (), (), "")
TWIN = NVME._replace(path="/dev/nvme1n1", name="nvme1n1", number="259:1", serial="S2", wwn="eui.0025385d", by_id=("nvme-SAMSUNG_S2",))
BOOT = Disk("/dev/sda", "sda", "8:0", "disk", "B1", "naa.5000c500", "INTEL SSD", 480103981056, False, (), (("sda1", "8:1"),), (), (), "")
ALL = [NVME, TWIN, BOOT]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ({"serial": "S1"}, [NVME]),
        ({"serial": " S1 "}, [NVME]),
        ({"serial": "s1"}, []),
        ({"wwn": "0x5000C500"}, [BOOT]),
        ({"wwn": "eui.0025385c"}, [NVME]),
        ({"by_id": "/dev/disk/by-id/nvme-SAMSUNG_S2"}, [TWIN]),
        ({"model": "samsung mzql*", "size": "3.84TB"}, [NVME, TWIN]),
        ({"model": "samsung*", "size": "7.68TB"}, []),
        ({"model": "INTEL SSD", "size": 480103981056}, [BOOT]),
        ({"path": "/dev/disk/x"}, [TWIN]),
        ({"path": "/dev/gone"}, []),
        ({"serial": "S1", "size": "3.84TB"}, [NVME]),
    ],
)
def test_selectors(selector: dict[str, Any], found: list[Disk]) -> None:
    chosen, problems = scratch_select.select([selector], ALL, {"/dev/disk/x": "259:1"})
    assert chosen == found
    assert bool(problems) == (not found)


def test_unknown_disk_lists_what_there_is() -> None:
    _, problems = scratch_select.select([{"serial": "S9"}], ALL, {})
    assert "/dev/nvme0n1 (serial S1, 3.84 TB)" in problems[0]


@pytest.mark.parametrize(
    ("text", "size"),
    [("3.84TB", 3840000000000), ("1KiB", 1024), ("4k", 4096), ("10G", 10 * 1024**3), ("5 MB", 5000000), (512, 512), ("12 B", 12), ("x", None), ("-1", None), ("1KK", None), ("", None)],
)
def test_sizes(text: Any, size: int | None) -> None:
    assert sizes.parse_size(text) == size


def test_size_of_names_the_parameter() -> None:
    assert "model_size" in reason(lambda: sizes.size_of("model_size", "huge"))


def test_sysfs_of_an_nvme_disk_with_partitions(tmp_path: Path) -> None:
    folder = tmp_path / "nvme0n1"
    files = {"size": "2048", "ro": "0", "wwid": "eui.1", "device/serial": "S1  ", "device/model": "M  ", "nvme0n1p1/partition": "1", "nvme0n1p1/dev": "259:1", "nvme0n1p1/holders/dm-0/x": ""}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    disk = blocks.describe("/dev/nvme0n1", "259:0", str(folder))
    assert (disk.serial, disk.model, disk.wwn, disk.size, disk.kind) == ("S1", "M", "eui.1", 1048576, "nvme")
    assert disk.partitions == (("nvme0n1p1", "259:1"),)
    assert disk.holders == ("dm-0",)
    part = blocks.describe("/dev/nvme0n1p1", "259:1", str(folder / "nvme0n1p1"))
    assert (part.kind, part.parent) == ("partition", "nvme0n1")


def test_sysfs_of_scsi_and_loop(tmp_path: Path) -> None:
    (tmp_path / "sda" / "device").mkdir(parents=True)
    (tmp_path / "sda" / "device" / "vpd_pg80").write_bytes(b"\0\x80\0\x04WD42")
    assert blocks.describe("/dev/sda", "8:0", str(tmp_path / "sda")).serial == "WD42"
    (tmp_path / "loop3" / "loop").mkdir(parents=True)
    (tmp_path / "loop3" / "loop" / "backing_file").write_text("/lab/n1-nvme0.img (deleted)\n")
    loop = blocks.describe("/dev/nvme0n1", "7:3", str(tmp_path / "loop3"))
    assert (loop.serial, loop.kind) == ("n1-nvme0", "loop (simulated)")


def test_mount_uses_of_other_namespaces_and_btrfs(tmp_path: Path) -> None:
    for pid, namespace, text in (
        ("self", "mnt:[1]", "20 1 259:1 / /data\\040x rw - xfs /dev/x rw\n"), ("12", "mnt:[2]", "30 1 0:77 / /far rw shared:1 - btrfs /dev/null rw\n"), ("13", "mnt:[2]", "broken"),
    ):
        (tmp_path / pid / "ns").mkdir(parents=True)
        (tmp_path / pid / "ns" / "mnt").symlink_to(namespace)
        (tmp_path / pid / "mountinfo").write_text(text)
    assert blocks.mount_uses(str(tmp_path)) == {"259:1": {"/data x"}, "0:77": {"/far"}}


@pytest.mark.parametrize(
    ("blkid", "wipefs", "says"),
    [
        ((2, "", ""), (0, '{"signatures": []}', ""), ""),
        ((2, "", ""), (0, "", ""), ""),
        ((0, "TYPE=xfs\nLABEL=a\\ b\nUUID=u\n", ""), (0, '{"signatures": [{"type": "xfs"}]}', ""), "xfs (label a b, uuid u)"),
        ((0, "PTTYPE=gpt\n", ""), (0, '{"signatures": [{"type": "gpt"}, {"type": "PMBR"}]}', ""), "a gpt partition table and PMBR"),
        ((2, "", ""), (0, '{"signatures": [{"type": "zfs_member"}]}', ""), "zfs_member"),
        ((8, "", ""), (0, "", ""), "several contradicting signatures"),
    ],
)
def test_signatures(blkid: Any, wipefs: Any, says: str) -> None:
    found = signatures.probe(Scripted({"blkid": blkid, "wipefs": wipefs}), "/dev/x")
    assert found.sentence() == says
    assert bool(found) == bool(says)


@pytest.mark.parametrize(("blkid", "wipefs"), [((4, "", "usage"), (0, "", "")), ((2, "", ""), (1, "", "I/O error")), ((2, "", ""), (0, "no json", ""))])
def test_what_cannot_be_read_is_not_empty(blkid: Any, wipefs: Any) -> None:
    assert "/dev/x" in reason(lambda: signatures.probe(Scripted({"blkid": blkid, "wipefs": wipefs}), "/dev/x"))


EMPTY = Found("", "", "", "", ())
WISH = {"fstype": "xfs", "label": "scratch", "min_size": 0}
OURS = {"u1": {"made": "done", "serial": "S1", "size": NVME.size, "label": "scratch", "mount": "/scratch"}}
MINE = Found("xfs", "scratch", "u1", "", ())


def reading(disk: Disk = NVME, points: Any = None, swap: Any = (), held: str = "", found: Found = EMPTY, data_at: int = -1) -> Reading:
    return Reading(disk, points or {}, swap, held, found, data_at)


GUARDS: list[tuple[str, Reading, dict[str, Any], bool, str, str]] = [
    ("empty", reading(), {}, False, "free", ""),
    ("foreign filesystem", reading(found=Found("ext4", "OLD", "x", "", ())), {}, False, "refused", "it carries ext4 (label OLD, uuid x)"),
    ("foreign, wipe", reading(found=Found("ext4", "OLD", "x", "", ())), {}, True, "free", ""),
    ("mounted, wipe", reading(points={"259:0": ["/x"]}, held="held"), {}, True, "refused", "it is mounted on /x"),
    ("root", reading(BOOT, points={"8:1": ["/"]}), {}, True, "refused", "its partition sda1 is mounted on / (this system runs from it)"),
    ("swap partition, wipe", reading(BOOT, swap=["8:1"]), {}, True, "refused", "its partition sda1 is swap space in use"),
    ("holders, wipe", reading(NVME._replace(holders=("md0",))), {}, True, "refused", "md0 is built on it"),
    ("slaves, wipe", reading(NVME._replace(slaves=("sda",))), {}, True, "refused", "it is itself built of sda"),
    ("read-only, wipe", reading(NVME._replace(read_only=True)), {}, True, "refused", "it is read-only"),
    ("held, wipe", reading(held="somebody holds it"), {}, True, "refused", "somebody holds it"),
    ("memory, wipe", reading(NVME._replace(kind="memory")), {}, True, "refused", "it is memory"),
    ("partition, wipe", reading(NVME._replace(parent="sda")), {}, True, "refused", "it is a partition of sda"),
    ("partitions", reading(BOOT), {}, False, "refused", "partitions sda1"),
    ("raw data", reading(data_at=8192), {}, False, "refused", "data without a known signature (first at byte 8192)"),
    ("ours", reading(found=MINE, points={"259:0": ["/scratch"]}), OURS, False, "ours", ""),
    ("ours, wipe is no reason to make it anew", reading(found=MINE), OURS, True, "ours", ""),
    ("ours elsewhere", reading(found=MINE, points={"259:0": ["/mnt"]}), OURS, False, "ours", "it is ours, but mounted on /mnt instead of /scratch"),
    ("copy of ours", reading(TWIN, found=MINE), OURS, False, "ours", "this is a copy or the disks were swapped"),
    ("ours with another label", reading(found=MINE._replace(label="data")), OURS, False, "ours", "not what was made there"),
    ("ours with more on it", reading(found=MINE._replace(others=("zfs_member",))), OURS, False, "ours", "zfs_member"),
    ("ours of another type", reading(found=MINE._replace(type="ext4")), OURS, False, "ours", "but xfs is asked for"),
    ("ours under an array", reading(NVME._replace(holders=("md0",)), found=MINE), OURS, False, "ours", "md0 is built on it"),
    ("ours read-only", reading(NVME._replace(read_only=True), found=MINE), OURS, False, "ours", "it is read-only"),
    ("begun by us", reading(data_at=4096), {"u1": dict(OURS["u1"], made="begun")}, False, "free", ""),
    ("begun by us, another's now", reading(found=Found("ext4", "", "x", "", ())), {"u1": dict(OURS["u1"], made="begun")}, False, "refused", "it carries ext4"),
    ("begun on another disk", reading(TWIN, data_at=4096), {"u1": dict(OURS["u1"], made="begun")}, False, "refused", "data without"),
]


@pytest.mark.parametrize(("read", "records", "wipe", "place", "says"), [case[1:] for case in GUARDS], ids=[case[0] for case in GUARDS])
def test_guards(read: Reading, records: dict[str, Any], wipe: bool, place: str, says: str) -> None:
    standing = stand(read, records, WISH, {read.disk.number} if wipe else set())
    assert standing.place == place
    assert says in "; ".join(standing.reasons)
    assert bool(standing.reasons) == bool(says)
    assert bool(scratch_guard.refusals([standing])) == bool(says)


def test_min_size() -> None:
    assert "less than min_size" in stand(reading(BOOT._replace(partitions=())), {}, dict(WISH, min_size=10**12), set()).reasons[0]


def test_wipe_of_one_disk_says_nothing_about_another() -> None:
    old = Found("ext4", "OLD", "x", "", ())
    assert stand(reading(TWIN, found=old), {}, WISH, {NVME.number}).place == "refused"
