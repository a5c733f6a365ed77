"""Several disks as one array, without any device: which layout, where a set of disks stands, mdadm.conf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nodectl.agent import md_conf, scratch_array, scratch_guard, scratch_make
from nodectl.agent.blocks import Disk
from nodectl.agent.scratch_array import choose, stand_set
from nodectl.agent.scratch_guard import Reading
from nodectl.agent.signatures import Found

SIZE = 3840755982336
A, B, C = (Disk(f"/dev/nvme{i}n1", f"nvme{i}n1", f"259:{i}", "nvme", f"S{i}", "", "", SIZE, False, (), (), (), (), "") for i in range(3))
NONE = Found("", "", "", "", ())
ARRAY = "8f4c8e59-6949-4fab-b8af-a6607ba5baee"
OLD = "00000000-6949-4fab-b8af-a6607ba5baee"
MEMBER = Found("linux_raid_member", "any:scratch", ARRAY, "", ())
EXT4 = Found("ext4", "OLD", "x", "", ())
XFS = Found("xfs", "scratch", "u1", "", ())
DONE: dict[str, Any] = {"made": "done", "serial": "S0+S1", "array": ARRAY, "name": "scratch", "size": SIZE, "label": "scratch", "mount": "/scratch"}
RECORDS = {"u1": DONE}
WISH = {"fstype": "xfs", "label": "scratch", "min_size": 0}
MD = Disk("/dev/md127", "md127", "9:127", "md", "", "", "", 2 * SIZE, False, (), (), (), ("nvme0n1", "nvme1n1"), "")


def disk(one: Disk, found: Found = NONE, **more: Any) -> Reading:
    fields = {"points": {}, "swap": (), "held": ""}
    return Reading(disk=more.pop("now", one), found=found, **{**fields, **more})


def held(one: Disk, found: Found = MEMBER, idle: bool = False) -> Reading:
    """A member whose array runs."""
    return disk(one, found, now=one._replace(holders=("md127",)), held="somebody holds it", idle={"md127": ("259:0", "259:1")} if idle else {})


def array(found: Found = XFS, **more: Any) -> Reading:
    return disk(MD, found, **more)


def begun(*, array: str = ARRAY) -> dict[str, dict[str, Any]]:
    return {"u1": dict(DONE, made="begun", array=array)}


# name, members, array, records, wiped numbers, place, what the target carries, refused: path → what is said
CASES: list[tuple[str, list[Reading], Reading | None, Mapping[str, Any], set[str], str, str, dict[str, str]]] = [
    ("empty disks", [disk(A), disk(B)], None, {}, set(), "free", "", {}),
    ("one carries something", [disk(A), disk(B, EXT4)], None, {}, set(), "free", "ext4", {B.path: "it carries ext4 (label OLD"}),
    ("one carries something and may lose it", [disk(A), disk(B, EXT4)], None, {}, {"259:1"}, "free", "ext4", {}),
    ("the opt-in for one is none for the other", [disk(A, EXT4), disk(B, EXT4)], None, {}, {"259:1"}, "free", "ext4", {A.path: "it carries ext4"}),
    ("a foreign array", [disk(A, MEMBER), disk(B, MEMBER)], None, {}, set(), "free", "raid", {A.path: "linux_raid_member", B.path: "linux_raid_member"}),
    ("a foreign array that runs", [held(A), held(B)], array(), {}, {"259:0", "259:1"}, "free", "raid", {A.path: "md127 is built on it", B.path: "md127"}),
    ("a foreign array that nobody uses", [held(A, idle=True), held(B, idle=True)], array(), {}, {"259:0", "259:1"}, "free", "raid", {}),
    ("a foreign array, one disk of it may go", [held(A, idle=True), held(B, idle=True)], array(), {}, {"259:0"}, "free", "raid", {A.path: "nobody uses md127", B.path: "nobody"}),
    ("a foreign array of which only one disk is chosen", [held(A, idle=True), disk(C)], None, {}, {"259:0"}, "free", "raid", {A.path: "nobody uses md127"}),
    ("ours, mounted", [held(A), held(B)], array(points={"9:127": ["/scratch"]}), RECORDS, set(), "ours", "xfs", {}),
    ("ours, in another order", [held(B), held(A)], array(points={"9:127": ["/scratch"]}), RECORDS, set(), "ours", "xfs", {}),
    ("ours, and no opt-in makes it anew", [held(A), held(B)], array(), RECORDS, {"259:0", "259:1"}, "ours", "xfs", {}),
    ("ours, mounted elsewhere", [held(A), held(B)], array(points={"9:127": ["/mnt"]}), RECORDS, set(), "ours", "xfs", {"/dev/md127": "mounted on /mnt instead of /scratch"}),
    ("ours, not assembled", [disk(A, MEMBER), disk(B, MEMBER)], None, RECORDS, set(), "ours", "", {}),
    ("ours, half assembled", [held(A, idle=True), disk(B, MEMBER)], None, RECORDS, set(), "ours", "", {}),
    ("ours, and a member is mounted", [held(A), disk(B, MEMBER, points={"259:1": ["/x"]})], None, RECORDS, set(), "ours", "", {A.path: "md127", B.path: "mounted on /x"}),
    ("ours, with another filesystem inside", [held(A), held(B)], array(EXT4), RECORDS, set(), "ours", "ext4", {"/dev/md127": "instead of the filesystem"}),
    ("the same, and all may go", [held(A, idle=True), held(B, idle=True)], array(EXT4), RECORDS, {"259:0", "259:1"}, "free", "raid", {}),
    ("the same, in use", [held(A), held(B)], array(EXT4, points={"9:127": ["/x"]}), RECORDS, {"259:0", "259:1"}, "free", "raid", {A.path: "md127", B.path: "md127"}),
    ("ours, with data inside that has no signature", [held(A), held(B)], array(NONE, data_at=8192), RECORDS, set(), "ours", "data", {"/dev/md127": "data without"}),
    ("ours, with nothing left inside", [held(A, idle=True), held(B, idle=True)], array(NONE), RECORDS, set(), "free", "raid", {}),
    ("ours, and one disk came back empty", [disk(A, MEMBER), disk(B)], None, RECORDS, set(), "free", "/dev/nvme0n1: linux_raid_member", {}),
    ("the same, half assembled at boot", [held(A)._replace(idle={"md127": ("259:0",)}), disk(B)], None, RECORDS, set(), "free", "raid", {}),
    ("ours, and one disk came back as another's", [disk(A, MEMBER), disk(B, EXT4)], None, RECORDS, set(), "free", "ext4", {B.path: "it carries ext4"}),
    ("ours, and one disk came back with raw data", [disk(A, MEMBER), disk(B, data_at=0)], None, RECORDS, set(), "free", "data", {B.path: "data without"}),
    ("ours, all disks empty", [disk(A), disk(B)], None, RECORDS, set(), "free", "", {}),
    ("ours, with a signature beside it", [disk(A, MEMBER._replace(others=("zfs_member",))), disk(B, MEMBER)], None, RECORDS, set(), "free", "zfs", {A.path: "zfs_member"}),
    ("ours, one disk wiped while it runs and is mounted", [held(A), held(B, NONE)], array(points={"9:127": ["/scratch"]}), RECORDS, set(), "free", "raid",
     {A.path: "md127 is built on it", B.path: "md127 is built on it"}),
    ("ours of other disks", [disk(A, MEMBER), disk(C, MEMBER)], None, RECORDS, set(), "free", "raid", {A.path: "linux_raid_member", C.path: "linux_raid_member"}),
    ("a disk more than ours", [disk(A, MEMBER), disk(B, MEMBER), disk(C)], None, RECORDS, set(), "free", "raid", {A.path: "linux", B.path: "linux"}),
    ("one disk each, made by us, is no array", [disk(A, XFS), disk(B)], None, {"u1": {"made": "done", "serial": "S0", "mount": "/scratch"}}, set(), "free", "xfs", {A.path: "xfs"}),
    ("cut off before the array", [disk(A), disk(B)], None, begun(), set(), "free", "", {}),
    ("cut off between the members", [disk(A, MEMBER), disk(B)], None, begun(), set(), "free", "raid", {}),
    ("cut off in mkfs", [held(A, idle=True), held(B, idle=True)], array(NONE, data_at=4096), begun(), set(), "free", "raid", {}),
    ("cut off before it was mounted", [held(A, idle=True), held(B, idle=True)], array(), begun(), set(), "free", "raid", {}),
    ("cut off while clearing", [disk(A, data_at=900000), disk(B, MEMBER)], None, begun(), set(), "free", "data", {}),
    ("cut off, and another's now", [disk(A, EXT4), disk(B)], None, begun(), set(), "free", "ext4", {A.path: "it carries ext4"}),
    ("cut off, of an older array of ours", [disk(A, MEMBER._replace(uuid=OLD)), disk(B)], None, {**begun(), "u0": dict(DONE, array=OLD)}, set(), "free", "raid", {}),
]


@pytest.mark.parametrize(("members", "built", "records", "wipe", "place", "carries", "refused"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_where_a_set_stands(
    members: list[Reading], built: Reading | None, records: Mapping[str, Any], wipe: set[str], place: str, carries: str, refused: dict[str, str],
) -> None:
    stood = stand_set(members, built, records, WISH, wipe)
    (target,) = stood.targets
    assert target.place == place
    assert carries in target.found
    assert bool(carries) == bool(target.found)
    said = {one.disk.path: "; ".join(one.reasons) for one in [*stood.refused, target] if one.reasons}
    assert said.keys() == refused.keys()
    for path, text in refused.items():
        assert text in said[path]


def test_a_set_is_the_same_in_any_order_and_none_without_serials() -> None:
    assert scratch_array.set_serial([B, A]) == scratch_array.set_serial([A, B]) == "S0+S1"
    assert scratch_array.set_serial([A, B._replace(serial="")]) == ""


def test_refusal_of_an_idle_array_says_how_it_may_go() -> None:
    stood = stand_set([held(A, idle=True), held(B, idle=True)], None, {}, WISH, set())
    assert all("name it for this host under `wipe: [{serial: S" in text for text in scratch_guard.refusals(stood.refused))


CHOICES: list[tuple[str, str, list[Disk], Mapping[str, Any], str, str, str]] = [
    ("as wished", "each", [A, B], RECORDS, "", "each", "as wished"),
    ("one", "auto", [A], {}, "", "single", "one disk"),
    ("two", "auto", [A, B], {}, "", "raid0", "2 disks of the same size"),
    ("striped before", "auto", [B, A], RECORDS, "", "raid0", "striped already"),
    ("striped before, by a kernel that had md", "auto", [A, B], RECORDS, "no md", "raid0", "striped already"),
    ("one by one before", "auto", [A, B], {"u": {"made": "done", "serial": "S1"}}, "", "each", "one by one already"),
    ("one by one begun", "auto", [A, B], {"u": {"made": "begun", "serial": "S1"}}, "", "raid0", "same size"),
    ("no md", "auto", [A, B], {}, "this kernel has no md driver", "each", "not striped: this kernel has no md driver"),
    ("sizes", "auto", [A, B._replace(size=SIZE // 2)], {}, "", "each", "not striped: the disks differ in size (1.92 TB, 3.84 TB)"),
    ("no serial", "auto", [A, B._replace(serial="")], {}, "", "each", "without a serial"),
]


@pytest.mark.parametrize(("wished", "disks", "records", "no_md", "layout", "why"), [case[1:] for case in CHOICES], ids=[case[0] for case in CHOICES])
def test_layouts(wished: str, disks: list[Disk], records: Mapping[str, Any], no_md: str, layout: str, why: str) -> None:
    found, said = choose(wished, disks, records, no_md)
    assert found == layout
    assert why in said


@pytest.mark.parametrize(
    ("disks", "no_md", "chunk", "says"),
    [
        ([A, B], "", 524288, ""), ([A, B], "no md", 524288, "cannot be had here: no md; choose layout each"), ([A], "", 524288, "at least two disks"),
        ([A, B._replace(size=1)], "", 524288, "disks of one size"), ([A, B._replace(serial="")], "", 524288, "disks with serials"),
        ([A, B], "", None, "power of two"), ([A, B], "", 1000, "power of two"), ([A, B], "", 512, "at least 4KiB"), ([A, B], "", 3 * 4096, "power of two"),
    ],
)
def test_what_cannot_be_striped(disks: list[Disk], no_md: str, chunk: int | None, says: str) -> None:
    problems = scratch_array.problems(disks, no_md, chunk)
    assert says in "; ".join(problems)
    assert len(problems) == bool(says)


def test_filesystems_know_their_stripes() -> None:
    record = {"fstype": "xfs", "label": "scratch", "chunk": 524288}
    assert scratch_make.mkfs_command(record, 4, "u", "/dev/md127") == [
        "mkfs.xfs", "-q", "-L", "scratch", "-m", "uuid=u", "-d", "su=524288,sw=4", "-l", "su=32k", "/dev/md127",
    ]
    assert "stride=128,stripe_width=512" in scratch_make.mkfs_command(dict(record, fstype="ext4"), 4, "u", "/dev/md127")
    alone = scratch_make.mkfs_command({"fstype": "xfs", "label": "scratch"}, 1, "u", "/dev/x")
    assert alone == ["mkfs.xfs", "-q", "-L", "scratch", "-m", "uuid=u", "/dev/x"]


def test_records_of_what_lay_there_before_are_superseded_only_when_the_new_is_done() -> None:
    records: dict[str, dict[str, Any]] = {"new": DONE, "old": dict(DONE, array=OLD), "single": {"serial": "S1"}, "other": {"serial": "S9"}, "set": {"serial": "S1+S2"}, "none": {"serial": ""}}
    assert scratch_make.superseded(records, "new") == ["old", "single", "set"]
    assert scratch_make.superseded({**records, "new": dict(DONE, made="begun")}, "new") == []
    assert scratch_make.superseded(records, "missing") == []


MINE = "8f4c8e59:69494fab:b8afa660:7ba5baee"
LINE = f"ARRAY /dev/md/scratch UUID={MINE}\n"
OTHER = "ARRAY /dev/md/0 metadata=1.2 UUID=11111111:22222222:33333333:44444444 name=n:0\n"


@pytest.mark.parametrize(
    ("text", "gone", "after"),
    [
        ("", set(), LINE),
        ("# by hand", set(), "# by hand\n" + LINE),
        (f"HOMEHOST <system>\n{OTHER}MAILADDR root\n", set(), f"HOMEHOST <system>\n{OTHER}MAILADDR root\n{LINE}"),
        (LINE, set(), LINE),
        (f"# a\nARRAY /dev/md127 metadata=1.2 name=any:scratch UUID={MINE.upper()}\n# b\n", set(), f"# a\n{LINE}# b\n"),
        (f"ARRAY /dev/md5 uuid={ARRAY}\n{OTHER}ARRAY /dev/md6 UUID={MINE}\n", set(), f"{LINE}{OTHER}"),
        (f"ARRAY /dev/md5\n   level=raid0 UUID={MINE}\n\tnum-devices=4\n# c\n", set(), f"{LINE}# c\n"),
        (f"array /dev/md5 UUID={MINE}\n", set(), LINE),
        (f"#ARRAY /dev/md5 UUID={MINE}\n", set(), f"#ARRAY /dev/md5 UUID={MINE}\n{LINE}"),
        ("ARRAY /dev/md5 devices=/dev/sda,/dev/sdb\n", set(), f"ARRAY /dev/md5 devices=/dev/sda,/dev/sdb\n{LINE}"),
        (OTHER, {"11111111-2222-2222-3333-333344444444"}, LINE),
        (f"ARRAY <ignore> UUID=11111111:22222222:33333333:44444444\n{LINE}", {"11111111-2222-2222-3333-333344444444"}, LINE),
    ],
)
def test_mdadm_conf(text: str, gone: set[str], after: str) -> None:
    found = md_conf.with_array(text, "/dev/md/scratch", ARRAY, gone)
    assert found == after
    assert md_conf.with_array(found, "/dev/md/scratch", ARRAY, gone) == after


def test_mdadm_conf_forgets_an_array_without_learning_one() -> None:
    assert md_conf.with_array(f"# x\n{LINE}{OTHER}", "/dev/md/", "", {ARRAY}) == f"# x\n{OTHER}"
    assert md_conf.with_array("", "/dev/md/", "", set()) == ""


@pytest.mark.parametrize(("name", "good"), [("scratch", True), ("data-1.b_c", True), ("", False), ("fast cache", False), ("../x", False), (".x", False), ("x" * 33, False), ("a\n", False)])
def test_names_of_arrays(name: str, good: bool) -> None:
    assert bool(md_conf.NAME.fullmatch(name)) == good
