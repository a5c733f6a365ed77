"""scratch_disks on real loop devices: what it makes, and above all what it refuses without changing one byte."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.agent.modules_sys.conftest import DiskMaker, Inside, LoopDisk

pytestmark = pytest.mark.servers

# ext4 keeps the images small (xfs wants 300 MB).
EXT4 = {"fstype": "ext4"}


def args(tmp_path: Path, *disks: LoopDisk, **more: Any) -> dict[str, Any]:
    return {"devices": [{"serial": d.serial} for d in disks], "mount": str(tmp_path / "scratch"), **EXT4, **more}


def test_makes_mounts_records_and_second_run_changes_nothing(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one, two = disk("ser-one"), disk("ser-two")
    wish = args(tmp_path, one, two, layout="each", count=2, mode="0755", owner="nobody")
    before = (one.sha256(), two.sha256())
    foretold = inside.step("scratch_disks", wish, check=True)
    assert foretold["changed"]
    assert not foretold["failed"]
    assert (one.sha256(), two.sha256()) == before
    assert inside.sh("cat /etc/fstab; ls /etc/nodectl 2>/dev/null || true") == ""
    done = inside.step("scratch_disks", wish)
    assert not done["failed"], done["msg"]
    assert done["values"]["plan"] == foretold["values"]["plan"]
    assert done["values"]["mounts"] == [str(tmp_path / "scratch"), str(tmp_path / "scratch2")]
    uuids = [d["uuid"] for d in done["values"]["devices"]]
    fstab = inside.sh("cat /etc/fstab")
    assert [f"UUID={u} {p} ext4 defaults,noatime,nofail,x-systemd.device-timeout=120s 0 2" for u, p in zip(uuids, done["values"]["mounts"], strict=True)] == fstab.splitlines()
    assert inside.sh(f"stat -c %U {tmp_path}/scratch {tmp_path}/scratch2").split() == ["nobody", "nobody"]
    again = inside.step("scratch_disks", wish)
    assert not again["failed"], again["msg"]
    assert not again["changed"]
    assert [d["uuid"] for d in again["values"]["devices"]] == uuids


def test_xfs_is_the_default(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    big = disk("ser-xfs", 320)
    wish = {"devices": [{"serial": "ser-xfs"}], "mount": str(tmp_path / "scratch")}
    assert not inside.step("scratch_disks", wish)["failed"]
    assert inside.sh(f"findmnt -no FSTYPE,SOURCE {tmp_path}/scratch").split() == ["xfs", big.path]
    assert inside.step("scratch_disks", wish)["changed"] is False


def test_mounts_again_what_is_ours_after_a_reboot(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    wish = args(tmp_path, one)
    assert not inside.step("scratch_disks", wish)["failed"]
    inside.sh(f"touch {tmp_path}/scratch/kept && umount {tmp_path}/scratch && : > /etc/fstab")
    again = inside.step("scratch_disks", wish)
    assert again["values"]["plan"] == [
        f"mount {one.path} (serial ser-one, 16.78 MB) on {tmp_path}/scratch", f"write the line for {tmp_path}/scratch into /etc/fstab", f"set owner and mode of {tmp_path}/scratch",
    ]
    assert "kept" in inside.sh(f"ls {tmp_path}/scratch")


def test_wipes_only_what_is_named(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one, two = disk("ser-one"), disk("ser-two")
    for each in (one, two):
        each.run("mkfs.ext4", "-q", "-L", "OLD", "DEV")
    sums = (one.sha256(), two.sha256())
    both = args(tmp_path, one, two, layout="each", wipe=[{"serial": "ser-one"}])
    refused = inside.step("scratch_disks", both)
    assert refused["failed"]
    assert "ser-two" in refused["msg"]
    assert (one.sha256(), two.sha256()) == sums
    only = inside.step("scratch_disks", args(tmp_path, one, wipe=[{"serial": "ser-one"}]))
    assert not only["failed"], only["msg"]
    assert "clear" in only["values"]["plan"][0]
    assert two.sha256() == sums[1]


def test_wipe_clears_a_partitioned_disk(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    partitioned(one)
    done = inside.step("scratch_disks", args(tmp_path, one, wipe=[{"serial": "ser-one"}]))
    assert not done["failed"], done["msg"]
    assert not Path(f"/sys/block/{one.name}/{one.name}p1").exists()


def partitioned(one: LoopDisk) -> None:
    """One Linux partition of 8 MiB at 1 MiB, in a table written by hand, and known to the kernel."""
    entry = bytes([0, 0, 0, 0, 0x83, 0, 0, 0]) + (2048).to_bytes(4, "little") + (16384).to_bytes(4, "little")
    poke(one, 446, entry + bytes(48) + b"\x55\xaa")
    subprocess.run(["addpart", one.path, "1", "2048", "16384"], check=False, capture_output=True)


# Dangers: what stands on a disk or who uses it → what the refusal must say. None may change a byte, wipe or no wipe where noted.
def ext4(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    one.run("mkfs.ext4", "-q", "-L", "OLD", "DEV")


def partition_table(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    partitioned(one)
    one.run("delpart", "DEV", "1")


def partition_in_kernel(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    partitioned(one)


def swap_signature(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    one.run("mkswap", "DEV")


def btrfs(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    poke(one, 0x10040, b"_BHRfS_M")
    poke(one, 0x10020, uuid.uuid4().bytes)


def luks(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    poke(one, 0, b"LUKS\xba\xbe\x00\x01aes\0")


def lvm(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    label = bytearray(512)
    label[0:8] = b"LABELONE"
    label[8:16] = (1).to_bytes(8, "little")
    label[20:32] = (32).to_bytes(4, "little") + b"LVM2 001"
    label[32:64] = b"abcdefghijklmnopqrstuvwxyzABCDEF"
    label[16:20] = lvm_crc(bytes(label[20:])).to_bytes(4, "little")
    poke(one, 512, bytes(label))


def lvm_crc(data: bytes) -> int:
    crc = 0xF597A6CF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xEDB88320 if crc & 1 else crc >> 1
    return crc


def md_member(one: LoopDisk, inside: Inside, tmp_path: Path, sector: int = 8) -> None:
    """Version 1.2 stands 4 KiB from the start."""
    block = bytearray(256)
    block[0:8] = bytes.fromhex("fc4e2ba9") + (1).to_bytes(4, "little")
    block[16:32] = uuid.uuid4().bytes
    block[32:41] = b"old:array"
    block[128:136] = (8).to_bytes(8, "little")
    block[144:152] = sector.to_bytes(8, "little")
    total = sum(int.from_bytes(block[i : i + 4], "little") for i in range(0, 256, 4))
    block[216:220] = (((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF).to_bytes(4, "little")
    poke(one, sector * 512, bytes(block))


def md_member_at_the_end(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    """Version 1.0, as mirrors of boot partitions have it: nothing at the start shows it."""
    md_member(one, inside, tmp_path, one.image.stat().st_size // 512 - 16)


def ceph(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    poke(one, 0, b"bluestore block device\n" + str(uuid.uuid4()).encode() + b"\n")


def iso(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    poke(one, 32768, b"\x01CD001\x01")


def data_at_the_end(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    """What a wiped start leaves: a backup table, a log, the end of somebody's database."""
    poke(one, one.image.stat().st_size - 8192, b"the end of a database")


def unsigned_data(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    poke(one, 300 * 1024, b"a database writes to the raw disk")


def ours_but_not_recorded(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    one.run("mkfs.ext4", "-q", "-L", "scratch", "DEV")


def mounted_here(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    ext4(one, inside, tmp_path)
    inside.sh(f"mkdir {tmp_path}/other && mount -o ro {one.path} {tmp_path}/other")


def partition_mounted(one: LoopDisk, inside: Inside, tmp_path: Path) -> None:
    partitioned(one)
    node = f"/dev/{one.name}p1"
    inside.sh(f"test -b {node} || mknod {node} b $(tr : ' ' < /sys/block/{one.name}/{one.name}p1/dev)")
    inside.sh(f"mkfs.ext4 -q {node} && mkdir {tmp_path}/other && mount -o ro {node} {tmp_path}/other")


def poke(one: LoopDisk, offset: int, data: bytes) -> None:
    with Path(one.path).open("r+b", buffering=0) as handle:
        sector = offset // 512 * 512
        handle.seek(sector)
        whole = bytearray(handle.read(-(-(offset - sector + len(data)) // 512) * 512))
        whole[offset - sector : offset - sector + len(data)] = data
        handle.seek(sector)
        handle.write(whole)
        os.fsync(handle.fileno())


CARRIES = [
    (ext4, "ext4 (label OLD"), (partition_table, "dos partition table"), (partition_in_kernel, "partition"), (swap_signature, "swap"), (btrfs, "btrfs"),
    (luks, "crypto_LUKS"), (lvm, "LVM2_member"), (md_member, "linux_raid_member"), (unsigned_data, "data without a known signature"),
    (ours_but_not_recorded, "ext4 (label scratch"), (md_member_at_the_end, "linux_raid_member"), (ceph, "ceph_bluestore"),
    (iso, "iso9660"), (data_at_the_end, "data without a known signature"),
]


@pytest.mark.parametrize(("make", "says"), CARRIES, ids=lambda x: getattr(x, "__name__", ""))
def test_refuses_what_carries_something(inside: Inside, disk: DiskMaker, tmp_path: Path, make: Any, says: str) -> None:
    one, clean = disk("ser-bad"), disk("ser-clean")
    make(one, inside, tmp_path)
    sums = (one.sha256(), clean.sha256())
    for check in (True, False):
        refused = inside.step("scratch_disks", args(tmp_path, clean, one, layout="each"), check=check)
        assert refused["failed"]
        assert says in refused["msg"]
        assert "ser-bad" in refused["msg"]
        assert "wipe: [{serial: ser-bad}]" in refused["msg"]
        assert (one.sha256(), clean.sha256()) == sums
    assert inside.sh("cat /etc/fstab") == ""


@pytest.mark.parametrize(("make", "says"), [(mounted_here, "is mounted on"), (partition_mounted, "p1 is mounted on")], ids=["mounted", "partition_mounted"])
def test_refuses_what_is_mounted_even_with_wipe(inside: Inside, disk: DiskMaker, tmp_path: Path, make: Any, says: str) -> None:
    one, clean = disk("ser-bad"), disk("ser-clean")
    make(one, inside, tmp_path)
    sums = (one.sha256(), clean.sha256())
    refused = inside.step("scratch_disks", args(tmp_path, clean, one, layout="each", wipe=[{"serial": "ser-bad"}]))
    assert refused["failed"]
    assert says in refused["msg"]
    assert "wipe does not override" in refused["msg"]
    inside.sh(f"umount {tmp_path}/other")
    assert (one.sha256(), clean.sha256()) == sums


def test_refuses_swap_in_use_even_with_wipe(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-swap")
    one.run("mkswap", "-U", "6e1f7f2e-0000-4000-8000-000000000002", "DEV")
    inside.sh(f"swapon {one.path}")
    try:
        refused = inside.step("scratch_disks", args(tmp_path, one, wipe=[{"serial": "ser-swap"}]))
    finally:
        inside.sh(f"swapoff {one.path}")
    assert refused["failed"]
    assert "swap space in use" in refused["msg"]
    # Its sum cannot be compared: the kernel may have swapped to it. The signature is still there.
    assert "6e1f7f2e-0000-4000-8000-000000000002" in inside.sh(f"blkid -p {one.path}")


def test_refuses_what_another_namespace_has_mounted(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-far")
    one.run("mkfs.ext4", "-q", "DEV")
    before = one.sha256()
    (tmp_path / "far").mkdir()
    script = f"mount -o ro,noload {one.path} {tmp_path}/far && echo up && cat >/dev/null"
    far = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert far.stdout is not None
    assert far.stdout.readline() == "up\n"
    refused = inside.step("scratch_disks", args(tmp_path, one, wipe=[{"serial": "ser-far"}]))
    far.communicate("", timeout=10)
    assert refused["failed"]
    assert f"mounted on {tmp_path}/far" in refused["msg"]
    assert one.sha256() == before


def test_refuses_what_is_held_exclusively(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-held")
    handle = os.open(one.path, os.O_RDONLY | os.O_EXCL)
    try:
        refused = inside.step("scratch_disks", args(tmp_path, one))
    finally:
        os.close(handle)
    assert "holds it exclusively" in refused["msg"]


def test_refuses_what_lies_under_a_loop_device(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-under")
    before = one.sha256()
    above = subprocess.run(["losetup", "--find", "--show", "--read-only", one.path], check=True, capture_output=True, text=True).stdout.strip()
    try:
        refused = inside.step("scratch_disks", args(tmp_path, one, wipe=[{"serial": "ser-under"}]))
    finally:
        subprocess.run(["losetup", "--detach", above], check=True)
    assert f"{Path(above).name} is a loop device on it" in refused["msg"]
    assert one.sha256() == before


def test_refuses_what_a_process_writes_on(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    """A database on the bare disk holds nothing exclusively."""
    one = disk("ser-raw")
    before = one.sha256()
    database = subprocess.Popen(["sleep", "60"], stdin=os.open(one.path, os.O_RDWR))
    try:
        refused = inside.step("scratch_disks", args(tmp_path, one, wipe=[{"serial": "ser-raw"}]))
    finally:
        database.kill()
        database.wait()
    assert f"sleep (process {database.pid}) has it open for writing" in refused["msg"]
    assert "wipe does not override" in refused["msg"]
    assert one.sha256() == before


def test_refuses_a_mount_that_was_let_go_while_a_file_is_open(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    """umount -l: no mount table shows it any more, and the filesystem lives on."""
    one = disk("ser-lazy")
    one.run("mkfs.ext4", "-q", "DEV")
    pid = inside.sh(f"mkdir {tmp_path}/lazy && mount -o ro,noload {one.path} {tmp_path}/lazy && sleep 60 < {tmp_path}/lazy >/dev/null 2>&1 & echo $!; sleep 0.3")
    inside.sh(f"umount -l {tmp_path}/lazy")
    before = one.sha256()
    refused = inside.step("scratch_disks", args(tmp_path, one, wipe=[{"serial": "ser-lazy"}]))
    inside.sh(f"pkill -P {pid.strip()}; kill {pid.strip()} 2>/dev/null; true")
    assert "holds it exclusively" in refused["msg"]
    assert one.sha256() == before


def test_refuses_a_read_only_disk(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-ro")
    one.run("blockdev", "--setro", "DEV")
    refused = inside.step("scratch_disks", args(tmp_path, one))
    one.run("blockdev", "--setrw", "DEV")
    assert "it is read-only" in refused["msg"]


WRONG_WISHES: list[tuple[str, dict[str, Any], str]] = [
    ("empty selection", {"devices": []}, "the selection is empty"),
    ("unknown serial", {"devices": [{"serial": "nobody"}]}, "no disk here is {serial: nobody}"),
    ("count", {"count": 2}, "2 disks are expected (count), 1 are found"),
    ("min_size", {"min_size": "1GB"}, "less than min_size"),
    ("min_size that is none", {"min_size": "big"}, "is no size"),
    ("twice", {"devices": [{"serial": "ser-one"}, {"size": "16777216", "serial": "ser-one"}]}, "named twice"),
    ("size of another disk", {"devices": [{"serial": "ser-one", "size": "32MiB"}]}, "no disk here is"),
    ("unknown key", {"devices": [{"name": "nvme0n1"}]}, "cannot be named by name"),
    ("bare text", {"devices": ["/dev/nvme0n1"]}, "named by a mapping"),
    ("model without size", {"devices": [{"model": "x"}]}, "names too little"),
    ("empty value", {"devices": [{"serial": ""}]}, "empty value"),
    ("raid0 without md", {"layout": "raid0"}, "layout raid0"),
    ("stale wipe", {"wipe": [{"serial": "other"}]}, "does not name one disk of the selection"),
    ("wipe by model", {"wipe": [{"model": "x", "size": "1GB"}]}, "cannot be named by model"),
    ("long label", {"label": "a-very-long-label-indeed"}, "too long"),
    ("root", {"mount": "/"}, "absolute path other than /"),
]


@pytest.mark.parametrize(("wish", "says"), [(w, s) for _, w, s in WRONG_WISHES], ids=[n for n, _, _ in WRONG_WISHES])
def test_refuses_a_wish_that_leaves_doubt(inside: Inside, disk: DiskMaker, tmp_path: Path, wish: dict[str, Any], says: str) -> None:
    one = disk("ser-one")
    before = one.sha256()
    refused = inside.step("scratch_disks", args(tmp_path, one, **{k: v for k, v in wish.items() if k != "mount"}) | wish)
    assert refused["failed"]
    assert says in refused["msg"]
    assert one.sha256() == before


def test_single_takes_one_disk(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    assert "exactly one disk" in inside.step("scratch_disks", args(tmp_path, disk("ser-a"), disk("ser-b"), layout="single"))["msg"]


def test_same_serial_twice_is_ambiguous(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-same")
    (tmp_path / "b").mkdir()
    other = DiskMaker(tmp_path / "b")("ser-same")
    try:
        refused = inside.step("scratch_disks", args(tmp_path, one))
    finally:
        subprocess.run(["losetup", "--detach", other.path], check=False)
    assert "is 2 devices" in refused["msg"]


def test_partition_is_refused_by_path(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    partitioned(one)
    node = f"/dev/{one.name}p1"
    inside.sh(f"test -b {node} || mknod {node} b $(tr : ' ' < /sys/block/{one.name}/{one.name}p1/dev)")
    refused = inside.step("scratch_disks", {"devices": [{"path": node}], "mount": str(tmp_path / "scratch"), **EXT4, "wipe": [{"path": node}]})
    assert f"partition of {one.name}: name the whole disk" in refused["msg"]


def test_path_is_taken_with_a_warning(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    done = inside.step("scratch_disks", {"devices": [{"path": one.path}], "mount": str(tmp_path / "scratch"), **EXT4})
    assert not done["failed"], done["msg"]
    said = (done["warnings"] or done["values"].get("warnings"))[0]
    assert "can move between boots" in said
    assert "serial: ser-one" in said
    record = json.loads(inside.sh("cat /etc/nodectl/scratch.json"))["devices"]
    assert [r["serial"] for r in record.values()] == ["ser-one"]


def test_mount_point_that_hides_files_or_is_taken(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    inside.sh(f"mkdir {tmp_path}/scratch && touch {tmp_path}/scratch/file")
    assert "holds 1 entries and nothing is mounted there" in inside.step("scratch_disks", args(tmp_path, one))["msg"]
    inside.sh(f"mount -t tmpfs tmpfs {tmp_path}/scratch")
    before = one.sha256()
    assert "is a mount point of another filesystem" in inside.step("scratch_disks", args(tmp_path, one))["msg"]
    assert one.sha256() == before


def test_copied_disk_is_not_ours(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one, copy = disk("ser-one"), disk("ser-copy")
    assert not inside.step("scratch_disks", args(tmp_path, one))["failed"]
    inside.sh(f"umount {tmp_path}/scratch")
    copy.run("dd", f"if={one.path}", "of=DEV", "bs=1M", "conv=fsync")
    before = copy.sha256()
    refused = inside.step("scratch_disks", args(tmp_path, copy))
    assert "this is a copy or the disks were swapped" in refused["msg"]
    assert copy.sha256() == before


def test_damaged_record_is_an_error_not_an_empty_one(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    inside.sh("mkdir -p /etc/nodectl && echo '{' > /etc/nodectl/scratch.json")
    assert "is damaged" in inside.step("scratch_disks", args(tmp_path, one))["msg"]


def test_broken_off_run_goes_on_with_its_own_disk_only(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    key = str(uuid.uuid4())
    size = one.image.stat().st_size
    record = {"version": 1, "devices": {key: {"made": "begun", "serial": "ser-one", "size": size, "fstype": "ext4", "label": "scratch", "mount": f"{tmp_path}/scratch"}}}
    inside.sh(f"mkdir -p /etc/nodectl && cat > /etc/nodectl/scratch.json <<'END'\n{json.dumps(record)}\nEND")
    one.run("mkfs.ext4", "-q", "-L", "SOMEBODY", "DEV")
    before = one.sha256()
    assert "label SOMEBODY" in inside.step("scratch_disks", args(tmp_path, one))["msg"]
    assert one.sha256() == before
    one.run("mkfs.ext4", "-q", "-F", "-U", key, "DEV")
    done = inside.step("scratch_disks", args(tmp_path, one))
    assert not done["failed"], done["msg"]
    assert done["values"]["devices"][0]["uuid"] == key


def test_order_of_attachment_does_not_matter(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one, two = disk("ser-one"), disk("ser-two")
    wish = args(tmp_path, one, two, layout="each")
    first = inside.step("scratch_disks", wish)
    assert not first["failed"], first["msg"]
    where = {d["serial"]: d["mount"] for d in first["values"]["devices"]}
    inside.sh(f"umount {tmp_path}/scratch {tmp_path}/scratch2")
    for each in (one, two):
        subprocess.run(["losetup", "--detach", each.path], check=True)
    two.path, one.path = LoopDisk(two.image).path, LoopDisk(one.image).path
    again = inside.step("scratch_disks", wish)
    assert not again["failed"], again["msg"]
    assert {d["serial"]: d["mount"] for d in again["values"]["devices"]} == where
    assert inside.step("scratch_disks", wish)["changed"] is False


def test_without_mkfs_or_owner_nothing_is_begun(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    before = one.sha256()
    assert "does not know" in inside.step("scratch_disks", args(tmp_path, one, owner="who-is-this"))["msg"]
    inside.sh(f"mkdir {tmp_path}/empty && touch {tmp_path}/none && for f in $(command -v mkfs.ext4) /sbin/mkfs.ext4 /usr/sbin/mkfs.ext4; do test ! -e $f || mount --bind {tmp_path}/none $f; done")
    assert "mkfs.ext4 is not installed (package e2fsprogs)" in inside.step("scratch_disks", args(tmp_path, one))["msg"]
    assert one.sha256() == before
    assert inside.sh("ls /etc/nodectl 2>/dev/null || true") == ""


def test_line_in_fstab_verifies(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-one")
    inside.sh("printf '# mine\\nUUID=dead-beef /home/x xfs defaults 0 0\\n' > /etc/fstab")
    assert not inside.step("scratch_disks", args(tmp_path, one))["failed"]
    text = inside.sh("cat /etc/fstab")
    assert text.startswith("# mine\nUUID=dead-beef /home/x xfs defaults 0 0\n")
    inside.sh(f"sed -i /dead-beef/d /etc/fstab && findmnt --verify -F /etc/fstab {tmp_path}/scratch")
