"""The kernel's arguments in each boot loader's files: only what is wished changes, a second look finds nothing to do, hostile words are refused."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.agent.contract import Failed
from nodectl.agent.modules.kernel_cmdline import diff, edited, entry, grub_default, missing, name_of, values

LINES = [
    # before, present, absent, after
    ("", ["iommu=pt"], [], "iommu=pt"),
    ("ro quiet", ["iommu=pt"], [], "ro quiet iommu=pt"),
    ("ro  quiet\tiommu=pt", ["iommu=pt"], [], "ro  quiet\tiommu=pt"),
    ("iommu=off ro", ["iommu=pt"], [], "ro iommu=pt"),
    ("init-on-alloc=1", ["init_on_alloc=0"], [], "init_on_alloc=0"),
    ("console=tty0 console=ttyS0", ["console=ttyS1"], [], "console=tty0 console=ttyS0 console=ttyS1"),
    ("hugepages=4 ro", ["hugepagesz=1G", "hugepages=8"], [], "ro hugepagesz=1G hugepages=8"),
    ("hugepages=8 hugepagesz=1G", ["hugepagesz=1G", "hugepages=8"], [], "hugepagesz=1G hugepages=8"),
    ('dyndbg="file a.c +p" ro', ["iommu=pt"], [], 'dyndbg="file a.c +p" ro iommu=pt'),
    ("quiet splash", [], ["quiet"], "splash"),
    ("mitigations=off ro", [], ["mitigations"], "ro"),
    ("console=tty0 console=ttyS0", [], ["console=ttyS0"], "console=tty0"),
    ("iommupt=1 iommu.passthrough=0", ["iommu=pt"], [], "iommupt=1 iommu.passthrough=0 iommu=pt"),
    ("ro", [], ["quiet"], "ro"),
]


@pytest.mark.parametrize(("before", "present", "absent", "after"), LINES)
def test_a_line_and_nothing_to_do_afterwards(before: str, present: list[str], absent: list[str], after: str) -> None:
    assert edited(before, present, absent) == after
    assert missing(after, present, absent) == []
    assert edited(after, present, absent) == after
    assert (missing(before, present, absent) == []) == (before == after)


def test_names() -> None:
    assert name_of("init-on-alloc=1") == name_of("init_on_alloc") == "init_on_alloc"


GRUB = [
    # before, present, after
    ('GRUB_CMDLINE_LINUX=""\n', ["a=1"], 'GRUB_CMDLINE_LINUX="a=1"\n'),
    ("GRUB_CMDLINE_LINUX=\n", ["a=1"], 'GRUB_CMDLINE_LINUX="a=1"\n'),
    ("GRUB_CMDLINE_LINUX='ro' # why\nX=1", ["a=1"], "GRUB_CMDLINE_LINUX='ro a=1' # why\nX=1"),
    ('GRUB_CMDLINE_LINUX_DEFAULT="quiet a=2"\nGRUB_CMDLINE_LINUX="b"\n', ["a=1"], 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="b a=1"\n'),
    ('GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"', ["a=1"], 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="a=1"\n'),
    ('#GRUB_CMDLINE_LINUX="x"\n', ["a=1"], '#GRUB_CMDLINE_LINUX="x"\nGRUB_CMDLINE_LINUX="a=1"\n'),
    ('GRUB_CMDLINE_LINUX="crashkernel=1G-4G:192M,4G-:256M rd.lvm.lv=r/s"\n', ["a=1"],
     'GRUB_CMDLINE_LINUX="crashkernel=1G-4G:192M,4G-:256M rd.lvm.lv=r/s a=1"\n'),
    ("", ["a=1"], 'GRUB_CMDLINE_LINUX="a=1"\n'),
    ('GRUB_CMDLINE_LINUX="a=1"\nGRUB_CMDLINE_LINUX_DEFAULT=quiet\n', ["a=1"], 'GRUB_CMDLINE_LINUX="a=1"\nGRUB_CMDLINE_LINUX_DEFAULT=quiet\n'),
]  # fmt: skip


@pytest.mark.parametrize(("before", "present", "after"), GRUB)
def test_grub(before: str, present: list[str], after: str) -> None:
    assert grub_default(before, present, []) == after
    assert grub_default(after, present, []) == after


@pytest.mark.parametrize("line", ['GRUB_CMDLINE_LINUX="a', 'GRUB_CMDLINE_LINUX="a" && rm -f /', 'GRUB_CMDLINE_LINUX+=" a"', "GRUB_CMDLINE_LINUX=a\\ b"])
def test_what_cannot_be_changed_safely_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(Failed, match=r"/etc/default/grub:2: "):
        grub_default(f"A=1\n{line}\n", ["a=1"], [])


ENTRIES = [
    ("title Debian\nlinux /vmlinuz\noptions root=UUID=1 ro\ninitrd /i\n", "title Debian\nlinux /vmlinuz\noptions root=UUID=1 ro a=1\ninitrd /i\n"),
    ("title X\nlinux /v\n", "title X\nlinux /v\noptions a=1\n"),
    ("options $kernelopts a=2\n", "options $kernelopts a=1\n"),
]


@pytest.mark.parametrize(("before", "after"), ENTRIES)
def test_entries(before: str, after: str) -> None:
    assert entry(before, ["a=1"], []) == after
    assert entry(after, ["a=1"], []) == after


def state(running: str = "ro", **files: str) -> dict[str, Any]:
    menus = {"/boot/grub/grub.cfg": files.pop("menu")} if "menu" in files else {}
    names = {"grub": "/etc/default/grub", "future": "/etc/kernel/cmdline", "entry": "/boot/loader/entries/a.conf"}
    return {"texts": {names[name]: text for name, text in files.items()}, "menus": menus, "running": running}


ASKED = {"present": ["a=1"], "absent": []}
STATES = [
    # state, what is done, whether a reboot is needed (afterwards)
    (state(), [], False),
    (state(grub='GRUB_CMDLINE_LINUX=""\n', menu="linux /boot/vmlinuz-6 ro\n"), ["write /etc/default/grub", "generate /boot/grub/grub.cfg"], True),
    (state(grub='GRUB_CMDLINE_LINUX="a=1"\n', menu="\tlinux\t/boot/vmlinuz-6 ro\n"), ["generate /boot/grub/grub.cfg"], True),
    (state(grub='GRUB_CMDLINE_LINUX="a=1"\n', menu="linux /boot/vmlinuz-6 ro a=1\nlinux16 /memtest\n"), [], True),
    (state("ro a=1", grub='GRUB_CMDLINE_LINUX="a=1"\n', menu="linux /boot/vmlinuz-6 ro a=1\n"), [], False),
    (state(entry="options ro\n", future="ro\n"), ["write /boot/loader/entries/a.conf", "write /etc/kernel/cmdline"], True),
    (state("a=1 ro", entry="options a=1 ro\n", future="ro a=1"), [], False),
]


@pytest.mark.parametrize(("found", "actions", "reboot"), STATES)
def test_what_is_done_and_whether_a_reboot_is_needed(found: dict[str, Any], actions: list[str], reboot: bool) -> None:
    change = diff(ASKED, found)
    assert sorted(change.actions) == sorted(actions)
    assert values(ASKED, found, change)["reboot_needed"] is reboot


def test_without_a_boot_loader_it_is_said_and_nothing_is_claimed() -> None:
    told = values(ASKED, state(), diff(ASKED, state()))
    assert (told["files"], told["reboot_needed"], told["missing"]) == ([], False, ["a=1 is missing"])
    assert "a=1 is missing" in told["warnings"][0]


HOSTILE = ['a="b c"', "$(reboot)", "a=`id`", "a b", "", "a=1\nb", "a=$x", "a=\\", "'", '"', "-x", "a=1;reboot;\n"]


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("key", ["present", "absent"])
def test_words_that_a_shell_would_read_are_refused(word: str, key: str) -> None:
    with pytest.raises(Failed, match="no argument of a kernel"):
        diff({"present": [], "absent": [], key: [word]}, state())


def test_one_argument_wished_both_ways_is_refused() -> None:
    with pytest.raises(Failed, match="both present and absent"):
        diff({"present": ["iommu=pt"], "absent": ["iommu"]}, state())
