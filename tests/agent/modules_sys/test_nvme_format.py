"""nvme_format and md_array without a drive: what they would do, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent import blocks, md, scratch_make
from nodectl.agent.blocks import Disk
from nodectl.agent.modules import md_array, nvme_format
from nodectl.agent.modules.nvme_format import Drive, Format
from nodectl.agent.runner import run_step
from nodectl.agent.scratch_guard import Reading
from nodectl.agent.signatures import Found
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.agent.modules_sys.scripted import Scripted, filled, reason

ONE = Disk("/dev/nvme0n1", "nvme0n1", "259:0", "nvme", "S1", "eui.1", "", 10**12, False, (), (), (), (), "")
TWO = ONE._replace(path="/dev/nvme1n1", name="nvme1n1", number="259:1", serial="S2", wwn="eui.2")
SMALL, LARGE, CHECKED, QUICK = Format(0, 512, 0, 2), Format(1, 4096, 0, 0), Format(2, 4096, 8, 0), Format(3, 512, 0, 0)
NONE = Found("", "", "", "", ())
EXT4 = Found("ext4", "OLD", "x", "", ())


@pytest.mark.parametrize(
    ("formats", "block_size", "wanted"),
    [
        ([SMALL, LARGE, CHECKED], "auto", LARGE), ([QUICK, LARGE], "auto", LARGE), ([QUICK, LARGE._replace(rank=1)], "auto", QUICK), ([SMALL, LARGE], "512", SMALL),
        ([SMALL], "4096", None), ([CHECKED], "auto", None), ([], "auto", None), ([SMALL, Format(1, 8192, 0, 0)], "auto", SMALL),
    ],
)
def test_which_format_is_better(formats: list[Format], block_size: str, wanted: Format | None) -> None:
    assert nvme_format.pick(formats, block_size) == wanted


def identified(flbas: int = 0) -> dict[str, Any]:
    return {"flbas": flbas, "lbafs": [{"ms": 0, "ds": 9, "rp": 2}, {"ms": 8, "ds": 9, "rp": 2}, {"ms": 0, "ds": 12, "rp": 0}, {"ms": 0, "ds": 0, "rp": 0}]}


def test_formats_as_nvme_cli_lists_them() -> None:
    formats, current = nvme_format.formats_of(identified(2))
    assert [(one.number, one.size, one.metadata, one.rank) for one in formats] == [(0, 512, 0, 2), (1, 512, 8, 2), (2, 4096, 0, 0)]
    assert current.size == 4096
    # Number 18 = bits 0 to 3 are 2, bit 5 is 1: more than 16 formats.
    many = {"flbas": 0x22, "lbafs": [{"ms": 0, "ds": 9}] * 18 + [{"ms": 0, "ds": 12}]}
    assert nvme_format.formats_of(many)[1].number == 18


@pytest.mark.parametrize("said", [{}, {"flbas": 0}, {"flbas": "x", "lbafs": []}, {"flbas": 0, "lbafs": [{}]}, {"flbas": 5, "lbafs": [{"ms": 0, "ds": 9}]}, {"flbas": 0, "lbafs": 7}])
def test_formats_that_cannot_be_read(said: dict[str, Any]) -> None:
    assert "format" in reason(lambda: nvme_format.formats_of(said))


def drive(disk: Disk = ONE, current: Format = SMALL, formats: Sequence[Format] = (SMALL, LARGE), kernel: int = 0, shared: Sequence[str] = (), **reading: Any) -> Drive:
    fields: dict[str, Any] = {"points": {}, "swap": (), "held": "", "found": NONE, **reading}
    return Drive(Reading(disk, **fields), formats, current, kernel or current.size, shared)


JUDGED: list[tuple[str, Drive, str, str, str]] = [
    ("empty", drive(), "auto", "to 4096-byte blocks (now 512), which erases it (it carries nothing)", ""),
    ("carries, and is named", drive(found=EXT4), "auto", "which erases ext4 (label OLD", ""),
    ("as wished", drive(current=LARGE, found=EXT4, points={"259:0": ["/x"]}), "auto", "", ""),
    ("not seen by the kernel yet", drive(current=LARGE, kernel=512), "auto", "make the kernel see the 4096-byte blocks", ""),
    ("mounted", drive(points={"259:0": ["/scratch"]}), "auto", "", "it is mounted on /scratch (free it first, or take it out"),
    ("swap", drive(swap=["259:0"]), "auto", "", "swap space in use"),
    ("array", drive(ONE._replace(holders=("md127",)), idle={"md127": ("259:0",)}), "auto", "", "md127 is built on it"),
    ("held", drive(held="somebody holds it exclusively"), "auto", "", "somebody holds it"),
    ("written", drive(openers=["postgres (process 7) has it open for writing"]), "auto", "", "postgres"),
    ("partition mounted", drive(ONE._replace(partitions=(("nvme0n1p1", "259:9"),)), points={"259:9": ["/"]}), "auto", "", "this system runs from it"),
    ("several namespaces", drive(shared=["/dev/nvme0n2"]), "auto", "", "/dev/nvme0n2 would be erased with it"),
    ("not offered", drive(formats=(SMALL,)), "4096", "", "offers no 4096-byte blocks without metadata, only 512"),
    ("only with metadata", drive(current=CHECKED, formats=(CHECKED,)), "auto", "", "only formats with metadata"),
    ("metadata goes", drive(current=CHECKED, formats=(LARGE, CHECKED)), "auto", "to 4096-byte blocks (now 4096)", ""),
]


@pytest.mark.parametrize(("one", "block_size", "does", "refused"), [case[1:] for case in JUDGED], ids=[case[0] for case in JUDGED])
def test_drives(one: Drive, block_size: str, does: str, refused: str) -> None:
    args = filled(nvme_format.SPEC, devices=[{"serial": "S1"}], block_size=block_size)
    state = {"drives": [one], "problems": []}
    if refused:
        said = reason(lambda: nvme_format.diff(args, state))
        assert refused in said
        assert "nothing was written on any drive" in said
    else:
        change = nvme_format.diff(args, state)
        assert bool(change) == bool(does)
        assert does in "; ".join(change.actions)


def test_one_refused_drive_stops_all() -> None:
    args = filled(nvme_format.SPEC, devices=[{"serial": "S1"}, {"serial": "S2"}])
    state = {"drives": [drive(), drive(TWO, points={"259:1": ["/x"]})], "problems": []}
    assert "S2" in reason(lambda: nvme_format.diff(args, state))


class Node(Scripted):
    """Drives that take a format; ``formatted`` lists the commands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, disks: Sequence[Disk], fna: int = 0, refuses: str = "") -> None:
        self.flbas = {disk.path: 0 for disk in disks}
        self.formatted: list[str] = []
        super().__init__({"nvme": lambda argv: self.nvme(argv, fna, refuses), "blkid": (2, "", ""), "wipefs": (0, "", "")})
        monkeypatch.setattr(blocks, "discover", lambda *_a: list(disks))
        monkeypatch.setattr(blocks, "exclusive", lambda _path: "")
        monkeypatch.setattr(blocks, "first_data", lambda *_a: -1)
        monkeypatch.setattr("nodectl.agent.node_lock.FOLDER", str(tmp_path))
        monkeypatch.setattr(md, "settle", lambda _system: None)

    def nvme(self, argv: Sequence[str], fna: int, refuses: str) -> tuple[int, str, str]:
        if argv[1] == "id-ctrl":
            return 0, json.dumps({"fna": fna}), ""
        if argv[1] == "id-ns":
            return 0, json.dumps(identified(self.flbas[argv[2]])), ""
        self.formatted.append(" ".join(argv[1:]))
        if refuses:
            return 1, "", refuses
        self.flbas[argv[2]] = int(argv[3].partition("=")[2])
        return 0, "Success formatting namespace:1", ""

    def read(self, path: str) -> bytes | None:
        number = path.split("/")[4]
        disk = next(one for one in blocks.discover() if one.number == number)
        return b"4096\n" if self.flbas[disk.path] == 2 else b"512\n"

    def step(self, check: bool = False, **args: Any) -> Outcome:
        return run_step(self, Step(1, "nvme_format", args, check, True))


def test_named_drives_are_formatted_once_and_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    node = Node(monkeypatch, tmp_path, [ONE, TWO])
    foretold = node.step(check=True, devices=[{"serial": "S2"}])
    assert (foretold.changed, node.formatted) == (True, [])
    done = node.step(devices=[{"serial": "S2"}])
    assert (done.failed, done.msg) == (False, foretold.msg)
    assert node.formatted == ["format /dev/nvme1n1 --lbaf=2 --timeout=900000"]
    assert done.values["devices"] == [{"path": "/dev/nvme1n1", "serial": "S2", "block_size": 4096, "formats": [512, 4096], "found": ""}]
    assert node.step(devices=[{"serial": "S2"}]).changed is False
    assert len(node.formatted) == 1


@pytest.mark.parametrize(
    ("devices", "says"),
    [
        ([], "the selection is empty"), ([{"path": "/dev/nvme0n1"}], "cannot be named by path"), ([{"model": "x", "size": "1TB"}], "cannot be named by model, size"),
        ([{"serial": "S9"}], "no disk here is {serial: S9}"), (["S1"], "named by a mapping"), ([{"serial": "S1"}, {"wwn": "eui.1"}], "named twice"),
    ],
)
def test_only_a_name_is_a_consent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, devices: list[Any], says: str) -> None:
    node = Node(monkeypatch, tmp_path, [ONE, TWO])
    refused = node.step(devices=devices)
    assert refused.failed
    assert says in refused.msg
    assert node.formatted == []


def test_a_drive_that_formats_all_namespaces_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    twin = TWO._replace(serial="S1")
    node = Node(monkeypatch, tmp_path, [ONE, twin], fna=1)
    assert "is 2 devices" in node.step(devices=[{"serial": "S1"}]).msg
    assert "/dev/nvme1n1 would be erased with it" in node.step(devices=[{"serial": "S1", "wwn": "eui.1"}]).msg
    assert node.formatted == []
    assert not Node(monkeypatch, tmp_path, [ONE, twin], fna=0).step(devices=[{"serial": "S1", "wwn": "eui.1"}]).failed


def test_a_format_that_fails_or_does_nothing_is_no_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failed = Node(monkeypatch, tmp_path, [ONE], refuses="NVMe status: Access Denied").step(devices=[{"serial": "S1"}])
    assert "could not be formatted: NVMe status: Access Denied" in failed.msg
    node = Node(monkeypatch, tmp_path, [ONE])
    monkeypatch.setattr(node, "flbas", type("Stuck", (dict,), {"__setitem__": lambda *_a: None})(node.flbas))
    assert "did not take" in node.step(devices=[{"serial": "S1"}]).msg


def test_the_controller_is_found_by_sysfs_and_not_by_the_number(tmp_path: Path) -> None:
    for device, children in (("nvme3", ["nvme0n1"]), ("nvme-subsys0", ["nvme2", "nvme2n1", "model"])):
        for child in children:
            (tmp_path / device / child).mkdir(parents=True)
    for number, device in (("259:0", "nvme3"), ("259:1", "nvme-subsys0")):
        (tmp_path / "dev/block" / number).mkdir(parents=True)
        (tmp_path / "dev/block" / number / "device").symlink_to(tmp_path / device)
    assert nvme_format.controller(ONE, str(tmp_path)) == "/dev/nvme3"
    assert nvme_format.controller(TWO, str(tmp_path)) == "/dev/nvme2"


ARRAY = "8f4c8e59-6949-4fab-b8af-a6607ba5baee"
MEMBER = Found("linux_raid_member", "any:data", ARRAY, "", ())
BUILT = Disk("/dev/md127", "md127", "9:127", "md", "", "", "", 2 * 10**12, False, (), (), (), ("nvme0n1", "nvme1n1"), "")
SEEN = {"MD_NAME": "any:data", "MD_LEVEL": "raid0", "MD_DEVICES": "2"}
LINE = "ARRAY /dev/md/data UUID=8f4c8e59:69494fab:b8afa660:7ba5baee\n"


def array_state(found: Sequence[Found] = (NONE, NONE), **more: Any) -> dict[str, Any]:
    readings = [Reading(disk, {}, (), "", one) for disk, one in zip((ONE, TWO), found, strict=True)]
    state: dict[str, Any] = {"chosen": [ONE, TWO], "problems": [], "wipe": set(), "readings": readings, "uuid": "", "is": {}, "built": None, "no_md": ""}
    return {**state, "conf": "", "ramdisk": "update-initramfs", **more}


THERE: dict[str, Any] = {"found": (MEMBER, MEMBER), "uuid": ARRAY, "is": SEEN}
ARRAYS: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    ("new", array_state(), {}, "make raid0 /dev/md/data of S1 S2; write /etc/mdadm/mdadm.conf, then update-initramfs", ""),
    ("there", array_state(**THERE, built=BUILT, conf=LINE), {}, "", ""),
    ("there, not assembled", array_state(**THERE, conf=LINE), {}, "assemble /dev/md/data of S1 S2", ""),
    ("there, does not run", array_state(**THERE, built=BUILT._replace(size=0), conf=LINE), {}, "assemble /dev/md/data of S1 S2", ""),
    ("there, the boot does not know", array_state(**THERE, built=BUILT), {}, "write /etc/mdadm/mdadm.conf, then update-initramfs", ""),
    ("another level", array_state(**THERE), {"level": "raid1"}, "", "it carries linux_raid_member"),
    ("another name", array_state(**THERE), {"name": "other"}, "", "it carries linux_raid_member"),
    ("half an array", array_state((MEMBER, NONE)), {}, "", "it carries linux_raid_member"),
    ("half an array that may go", array_state((MEMBER, NONE), wipe={"259:0"}), {}, "clear /dev/nvme0n1", ""),
    ("foreign", array_state((EXT4, NONE)), {}, "", "it carries ext4"),
    ("no md", array_state(no_md="this kernel has no md driver for raid0"), {}, "", "no md driver"),
    ("bad name", array_state(), {"name": "fast cache"}, "", "must be of letters"),
    ("chunk", array_state(), {"chunk": "3k"}, "", "power of two"),
    ("one disk", array_state(chosen=[ONE]), {}, "", "at least 2 disks, and 1 are found"),
    ("sizes", array_state(chosen=[ONE, TWO._replace(size=1)]), {}, "", "must have one size"),
]


@pytest.mark.parametrize(("state", "wish", "does", "refused"), [case[1:] for case in ARRAYS], ids=[case[0] for case in ARRAYS])
def test_arrays(state: dict[str, Any], wish: dict[str, Any], does: str, refused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(md, "conf_path", lambda: "/etc/mdadm/mdadm.conf")
    args = filled(md_array.SPEC, **{"name": "data", "devices": [{"serial": "S1"}, {"serial": "S2"}], **wish})
    if refused:
        assert refused in reason(lambda: md_array.diff(args, state))
    else:
        change = md_array.diff(args, state)
        assert bool(change) == bool(does)
        assert does in "; ".join(change.actions)


def test_the_ramdisk_learns_after_mdadm_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "mdadm.conf"
    monkeypatch.setattr(md, "conf_path", lambda: str(conf))
    seen: list[str] = []

    def update(argv: Sequence[str]) -> tuple[int, str, str]:
        seen.append(conf.read_text())
        return 0, "", ""

    system = Scripted({"update-initramfs": update})
    md.write_conf(system, LINE)
    md.renew_initramfs(system)
    assert seen == [LINE]
    assert system.ran == ["update-initramfs -u -k all"]
    md.renew_initramfs(Scripted({}))
    assert scratch_make.RECORD.startswith("/etc/")


@pytest.mark.parametrize(
    ("mdstat", "modprobe", "says"),
    [(b"Personalities : [raid0] [raid10]\n", None, ""), (b"Personalities : [raid10]\nraid0\n", (1, "", ""), "no md driver for raid0"), (None, (0, "", ""), ""), (None, (1, "", ""), "no md driver"), (None, None, "no md driver")],
)
def test_whether_the_kernel_has_md(mdstat: bytes | None, modprobe: tuple[int, str, str] | None, says: str) -> None:
    system = Scripted({"modprobe": modprobe} if modprobe else {}, {"/proc/mdstat": mdstat} if mdstat else {})
    assert says in md.without_kernel(system)
    assert bool(md.without_kernel(system)) == bool(says)
