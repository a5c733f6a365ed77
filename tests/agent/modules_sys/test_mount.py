"""mount and filesystem: pure decisions on tables, the rest on loop devices in a private mount namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.modules import mount
from nodectl.agent.system import Mount
from tests.agent.modules_sys.conftest import DiskMaker, Inside
from tests.agent.modules_sys.scripted import Scripted, filled, reason


@pytest.mark.parametrize(
    ("opts", "live", "missing"),
    [
        ("defaults", "rw,relatime", []),
        ("noexec,nodev", "rw,nodev", ["noexec"]),
        ("noexec,exec", "rw", []),
        ("exec,noexec", "rw", ["noexec"]),
        ("ro,nofail,x-systemd.device-timeout=5s", "rw,relatime", ["ro"]),
        ("noatime", "rw,noatime,attr2", []),
    ],
)
def test_flags_that_are_not_in_effect(opts: str, live: str, missing: list[str]) -> None:
    assert mount.missing_flags(opts, live) == missing


def plan(fstab: str, table: list[Mount], **args: Any) -> Any:
    system = Scripted({"findfs": (1, "", "")}, {"/etc/fstab": fstab.encode()}, table)
    given = {"src": "store:", "fstype": "fuse.rclone", "path": "/srv/none", **args}
    return mount.act(system, filled(mount.SPEC, **given), True)


FUSE = Mount("store:", "/srv/none", "fuse.rclone", "rw,nosuid", "/", "0:99")
LINE = "store: /srv/none fuse.rclone defaults 0 0\n"


@pytest.mark.parametrize(
    ("fstab", "table", "args", "said"),
    [
        ("", [], {"state": "mounted"}, "mount store: on /srv/none; write the line for /srv/none into /etc/fstab"),
        (LINE, [FUSE], {"state": "mounted"}, ""),
        (LINE, [FUSE], {"state": "mounted", "fstype": "rclone"}, "remount /srv/none; write the line for /srv/none into /etc/fstab"),
        (LINE, [FUSE], {"state": "mounted", "opts": "noexec"}, "remount /srv/none (it lacks noexec); write the line for /srv/none into /etc/fstab"),
        ("", [FUSE], {"state": "ephemeral"}, ""),
        ("", [], {"state": "present"}, "write the line for /srv/none into /etc/fstab"),
        (LINE, [], {"state": "present"}, ""),
        ("", [], {"state": "present", "boot": False}, "write the line for /srv/none into /etc/fstab"),
        (LINE, [FUSE], {"state": "unmounted"}, "unmount /srv/none (fuse.rclone from store:)"),
        (LINE, [], {"state": "unmounted"}, ""),
        (LINE, [], {"state": "absent"}, "take the line for /srv/none out of /etc/fstab"),
        (LINE, [FUSE], {"state": "absent_from_fstab"}, "take the line for /srv/none out of /etc/fstab"),
        (LINE, [FUSE], {"state": "remounted"}, "remount /srv/none"),
    ],
)
def test_plan(fstab: str, table: list[Mount], args: dict[str, Any], said: str) -> None:
    outcome = plan(fstab, table, **args)
    assert outcome.msg == said
    assert outcome.changed == bool(said)


def test_plans_that_are_refused() -> None:
    other = FUSE._replace(source="other:", fstype="xfs")
    assert "has xfs from other: mounted" in reason(lambda: plan("", [other], state="mounted"))
    assert "nothing is mounted there" in reason(lambda: plan("", [], state="remounted"))
    assert "needs an absolute path" in reason(lambda: plan("", [], state="mounted", path="none"))


def test_mounts_by_uuid_once(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-m")
    one.run("mkfs.ext4", "-q", "-U", "6e1f7f2e-0000-4000-8000-000000000001", "-L", "mdata", "DEV")
    inside.sh(f"printf '# mine\\nLABEL=mdata {tmp_path}/my\\\\040data/ ext4 ro 0 0\\n' > /etc/fstab")
    wish = {"path": str(tmp_path / "my data"), "src": "UUID=6e1f7f2e-0000-4000-8000-000000000001", "fstype": "ext4", "opts": "noatime,nofail", "state": "mounted", "backup": True}
    assert inside.step("mount", wish, check=True)["changed"]
    assert inside.sh("ls /etc/fstab*").split() == ["/etc/fstab"]
    done = inside.step("mount", wish)
    assert not done["failed"], done["msg"]
    line = f"UUID=6e1f7f2e-0000-4000-8000-000000000001 {tmp_path}/my\\040data ext4 noatime,nofail 0 0\n"
    assert inside.sh("cat /etc/fstab") == "# mine\n" + line
    assert done["values"]["backup_file"].startswith("/etc/fstab.")
    assert inside.step("mount", wish)["changed"] is False
    assert inside.step("mount", dict(wish, src="LABEL=mdata"))["msg"].startswith("remount")
    more = inside.step("mount", dict(wish, opts="noatime,noexec"))
    assert "it lacks noexec" in more["msg"]
    assert "noexec" in inside.sh(f"findmnt -no OPTIONS '{tmp_path}/my data'")
    gone = inside.step("mount", dict(wish, state="absent"))
    assert not gone["failed"], gone["msg"]
    assert inside.sh("cat /etc/fstab") == "# mine\n"
    assert not (tmp_path / "my data").exists()


def test_failed_mount_leaves_fstab_as_it_was(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-m")
    one.run("mkfs.ext4", "-q", "DEV")
    inside.sh("echo '# mine' > /etc/fstab")
    done = inside.step("mount", {"path": str(tmp_path / "m"), "src": one.path, "fstype": "xfs", "state": "mounted"})
    assert done["failed"]
    assert "could not be mounted" in done["msg"]
    assert inside.sh("cat /etc/fstab") == "# mine\n"


def test_other_states_for_real(inside: Inside, tmp_path: Path) -> None:
    base = {"path": str(tmp_path / "t"), "src": "tmpfs", "fstype": "tmpfs", "opts": "size=1m"}
    assert not inside.step("mount", dict(base, state="ephemeral"))["failed"]
    assert inside.sh("cat /etc/fstab") == ""
    assert not inside.step("mount", dict(base, state="remounted", opts="size=2m"))["failed"]
    assert "2048k" in inside.sh(f"findmnt -no OPTIONS {tmp_path}/t")
    assert not inside.step("mount", dict(base, state="unmounted"))["failed"]
    assert inside.step("mount", dict(base, state="unmounted"))["changed"] is False
    (tmp_path / "from").mkdir()
    bind = {"path": str(tmp_path / "to"), "src": str(tmp_path / "from"), "fstype": "none", "opts": "bind", "state": "mounted"}
    assert not inside.step("mount", bind)["failed"]
    assert inside.step("mount", bind)["changed"] is False
    inside.sh(f"umount {tmp_path}/to")


def test_filesystem_made_once(inside: Inside, disk: DiskMaker) -> None:
    one = disk("ser-f")
    wish = {"dev": one.path, "fstype": "ext4", "opts": "-L mine"}
    before = one.sha256()
    assert inside.step("filesystem", wish, check=True)["changed"]
    assert one.sha256() == before
    done = inside.step("filesystem", wish)
    assert (done["failed"], done["values"]["label"]) == (False, "mine")
    assert inside.step("filesystem", wish)["changed"] is False


def test_filesystem_keeps_what_is_there(inside: Inside, disk: DiskMaker, tmp_path: Path) -> None:
    one = disk("ser-f")
    one.run("mkswap", "-L", "keep", "DEV")
    before = one.sha256()
    refused = inside.step("filesystem", {"dev": one.path, "fstype": "ext4"})
    assert "carries swap (label keep" in refused["msg"]
    assert one.sha256() == before
    inside.sh(f"mkfs.ext4 -q -F {one.path} && mkdir {tmp_path}/m && mount -o ro {one.path} {tmp_path}/m")
    used = inside.step("filesystem", {"dev": one.path, "fstype": "btrfs", "force": True})
    assert "is in use (mounted on" in used["msg"]
    inside.sh(f"umount {tmp_path}/m")
    assert not inside.step("filesystem", {"dev": one.path, "fstype": "swap", "force": True})["failed"]


def test_filesystem_on_what_is_no_device(inside: Inside) -> None:
    assert "there is no device" in inside.step("filesystem", {"dev": "/dev/nope", "fstype": "xfs"})["msg"]
    assert "neither a block device" in inside.step("filesystem", {"dev": "/etc", "fstype": "xfs"})["msg"]
