from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.agent import blocks, fstab
from nodectl.agent.fstab import Entry

TEXT = """# made by hand\r
UUID=aaaa  /      ext4\terrors=remount-ro 0 1
/dev/sdb1 none swap sw 0 0
/dev/sdc1 none swap sw 0 0
LABEL=old /data/ xfs defaults
UUID=bbbb /data xfs noatime 0 2
# the end"""


def test_exactly_one_line_per_mount_point_and_the_rest_byte_for_byte() -> None:
    new = fstab.with_entry(TEXT, Entry("UUID=cccc", "/data", "xfs", "noatime,nofail"))
    kept = [line for line in TEXT.splitlines(keepends=True) if "/data" not in line]
    assert [line for line in new.splitlines(keepends=True) if "/data" not in line] == kept
    assert fstab.find(new, "/data") == [Entry("UUID=cccc", "/data", "xfs", "noatime,nofail")]
    assert new.index("UUID=cccc") < new.index("# the end")


def test_swap_lines_are_not_duplicates_of_each_other() -> None:
    new = fstab.with_entry(TEXT, Entry("/dev/sdd1", "none", "swap", "sw"))
    assert new.count("swap") == 3
    assert fstab.with_entry(new, Entry("/dev/sdb1", "none", "swap", "pri=5")).count("swap") == 3
    assert fstab.without(TEXT, "none", "/dev/sdb1").count("swap") == 1


def test_same_meaning_in_other_spacing_is_left_alone() -> None:
    line = "UUID=aaaa  /      ext4\terrors=remount-ro 0 1"
    assert fstab.with_entry(TEXT, Entry("UUID=aaaa", "/", "ext4", "errors=remount-ro", "0", "1")) == TEXT
    assert line in TEXT


def test_appends_after_a_last_line_without_newline() -> None:
    assert fstab.with_entry("a /a ext4", Entry("b", "/b", "xfs", "defaults")) == "a /a ext4\nb /b xfs defaults 0 0\n"


def test_without_takes_all_spellings() -> None:
    assert "/data" not in fstab.without(TEXT, "/data/")


@pytest.mark.parametrize(("point", "written"), [("/my data", "/my\\040data"), ("/tab\there", "/tab\\011here"), ("/back\\slash", "/back\\134slash"), ("#odd", "\\043odd")])
def test_escapes(point: str, written: str) -> None:
    assert fstab.escape(point) == written
    assert blocks.unescape(written) == point


@given(st.text(alphabet="ab/ \t\\#0134", min_size=1), st.text(alphabet="xy=, \\", min_size=1))
def test_what_is_written_is_read_back(point: str, opts: str) -> None:
    entry = Entry("src", "/" + point, "xfs", opts)
    assert fstab.parse(fstab.render(entry)) == entry


@given(st.lists(st.sampled_from(["# note", "", "UUID=a /a xfs defaults 0 0", "b /b/ ext4 ro", "x none swap sw 0 0", "rubbish"])))
def test_writing_twice_is_writing_once(lines: list[str]) -> None:
    entry = Entry("UUID=n", "/b", "xfs", "noatime")
    once = fstab.with_entry("\n".join(lines), entry)
    assert fstab.with_entry(once, entry) == once
    assert fstab.find(once, "/b") == [entry]
