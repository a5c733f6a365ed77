"""kill -9 of the agent at every act of scratch_disks: before it, in the middle of it, right after it. The next run finishes, or says why not yet."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.agent.modules_sys.conftest import DiskMaker, Inside

# A run of one disk acts seven times; more would be a loop.
MOST = 20


@pytest.mark.parametrize("moment", ["before", "while", "after"])
def test_a_killed_run_is_finished_by_the_next(inside: Inside, disk: DiskMaker, tmp_path: Path, moment: str) -> None:
    bystander = disk("ser-other")
    bystander.run("mkfs.ext4", "-q", "-L", "OTHER", "DEV")
    kept = bystander.sha256()
    seen = []
    for number in range(MOST):
        serial, point = f"ser-{number}", tmp_path / f"scratch-{number}"
        disk(serial).run("mkfs.ext4", "-q", "-L", "OLD", "DEV")
        wish = {"devices": [{"serial": serial}], "wipe": [{"serial": serial}], "fstype": "ext4", "mount": str(point)}
        act = inside.dies("scratch_disks", wish, number, moment)
        if act.startswith("lived through"):
            break
        seen.append(act.split(" /")[0])
        lines = [line for line in inside.sh("cat /etc/fstab").splitlines() if str(point) in line]
        assert all(len(line.split()) == 6 for line in lines), "a line is whole or not there"
        done = finished(inside, wish)
        assert not done["failed"], (act, done["msg"])
        assert inside.step("scratch_disks", wish)["changed"] is False, act
        assert inside.sh(f"findmnt -no FSTYPE {point}; grep -c {point} /etc/fstab").split() == ["ext4", "1"], act
        inside.sh(f"umount {point}")
    assert [word for word in ("write", "wipefs", "mkfs.ext4", "mount") if not any(act.startswith(word) for act in seen)] == []
    assert bystander.sha256() == kept


def finished(inside: Inside, wish: dict[str, Any]) -> dict[str, Any]:
    """The first run that is not refused because the killed run's program is still at work on the disk."""
    end = time.monotonic() + 20.0
    while True:
        done = inside.step("scratch_disks", wish)
        still = done["failed"] and ("has it open for writing" in done["msg"] or "holds it exclusively" in done["msg"])
        if not still or time.monotonic() > end:
            return done
        time.sleep(0.1)
