"""Shared storage on a host whose kernel has none of it: stand-in mount helpers that take the real ones' options (simulated), real
mount(8), fstab, mount table and proofs; and every wait with its bound.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.roles.stage import Played, Stages
from tests.roles.test_object_cache import secrets_of

pytestmark = pytest.mark.lab
HELPERS = ("usr/sbin/mount.nfs4", "usr/sbin/mount.lustre", "usr/sbin/mount.wekafs", "usr/lpp/mmfs/bin/mmmount", "usr/local/sbin/findmnt")
MOUNTS: dict[str, Any] = {
    "/shared": {"type": "nfs", "source": "SERVER:/export", "options": ["sec=sys"]},
    "/lustre": {"type": "lustre", "source": "10.0.0.1@o2ib:/scratch"},
    "/weka": {"type": "weka", "source": "backend1/fs1", "options": ["num_cores=2"]},
    "/gpfs": {"type": "gpfs", "source": "fs1", "write": False},
}


class Shared:
    """``shared(**variables)`` runs the role, with the server's port taken by something that answers."""

    def __init__(self, stages: Stages) -> None:
        self.stages, self.server = stages, stages.lab.address(stages.host)
        nfs = {**MOUNTS["/shared"], "source": f"{self.server}:/export"}
        self.mounts = {**MOUNTS, "/shared": nfs}

    def __call__(self, *words: str, **variables: Any) -> Played:
        return self.stages("shared_storage", *words, **{"shared_storage_mounts": self.mounts, "shared_storage_simulated": True, **variables})

    def refused(self, mount: dict[str, Any]) -> str:
        done = self(shared_storage_mounts={**self.mounts, **mount}, shared_storage_answer_timeout=2)
        assert (done.code, done.changed) == (2, set()), done.out
        return done.out


@pytest.fixture(scope="module")
def shared(stages: Stages, first: dict[str, Any]) -> Iterator[Shared]:
    """The host with all four mounted; afterwards without."""
    root, found = stages.lab.root(stages.host), Shared(stages)
    stages.inside("apt-get", "install", "-y", "-q", "s3fs", "nfs-common")
    stages.shell("dpkg-divert --quiet --rename /sbin/mount.nfs4; mkdir -p /usr/lpp/mmfs/bin")
    for place in HELPERS:
        shutil.copy(Path(__file__).parent / "stand_ins" / "mount_helper", root / place)
        (root / place).chmod(0o755)
    keys = secrets_of(stages)
    store = {"access": keys["object_cache_access_key"], "secret": keys["object_cache_secret_key"], "endpoint": keys["object_cache_endpoint"]}
    stages.shell(f"umask 077; echo {shlex.quote(json.dumps(store))} > /run/stand-ins.json")
    stages.shell("systemd-run -q --unit nfs-stand-in python3 -m http.server 2049 --directory /run/systemd/seats")
    try:
        yield found
        gone = found(shared_storage_mounts={})
        assert (gone.code, gone.stats(stages.host)["changed"]) == (0, 1), gone.out
        assert "x-nodectl" not in stages.inside("cat", "/etc/fstab")
    finally:
        stages.shell("umount -l /shared /lustre /weka /gpfs 2>/dev/null; systemctl stop nfs-stand-in; rm -rf /usr/lpp /run/stand-ins*; "
                     + "; ".join(f"rm -f /{place}" for place in HELPERS) + "; dpkg-divert --quiet --rename --remove /sbin/mount.nfs4")  # fmt: skip


def test_it_is_foretold_mounted_with_its_options_and_settled(shared: Shared) -> None:
    check, real, again = shared("--check"), shared(), shared()
    assert (check.code, real.code) == (0, 0), check.out + real.out
    assert check.changed == real.changed
    assert (again.code, again.changed) == (0, set()), again.out
    assert "simulated: stand-ins mounted /shared /lustre /weka /gpfs" in real.out
    lines = {line.split()[1]: line.split() for line in shared.stages.inside("cat", "/etc/fstab").splitlines() if "x-nodectl.shared" in line}
    end = "_netdev,nofail,x-systemd.mount-timeout=60,x-nodectl.shared"
    nfs = "vers=4.2,hard,timeo=600,retrans=2,retry=0,rsize=1048576,wsize=1048576,noatime,proto=tcp,nconnect=8,sec=sys"
    assert lines == {
        "/shared": [f"{shared.server}:/export", "/shared", "nfs4", f"{nfs},{end}", "0", "0"],
        "/lustre": ["10.0.0.1@o2ib:/scratch", "/lustre", "lustre", f"flock,noatime,{end}", "0", "0"],
        "/weka": ["backend1/fs1", "/weka", "wekafs", f"noatime,num_cores=2,{end}", "0", "0"],
    }


def test_a_mount_that_lacks_what_was_asked_for_is_refused(shared: Shared) -> None:
    shared.stages.shell("echo vers=4.2,proto=tcp,hard > /run/stand-ins/options-shared")
    done = shared()
    assert done.code == 2
    assert "/shared is mounted without nconnect=8 (it has vers=4.2,proto=tcp,hard)" in done.reason
    shared.stages.shell("echo vers=4.2,proto=tcp,nconnect=8 > /run/stand-ins/options-shared")


def test_what_cannot_be_mounted_is_refused_with_its_reason_and_in_time(shared: Shared) -> None:
    shared.stages.shell("mkdir -p /full /used && touch /full/mine && mount -t tmpfs none /used")
    nfs = {"type": "nfs", "source": f"{shared.server}:/export"}
    try:
        for mount, reason in (
            ({"/x": {"type": "nfs4", "source": "a:/b"}}, "/x: "),
            ({"/x": {"type": "nfs", "source": "nowhere"}}, "is no mount. Expected"),
            ({"/x": {"type": "lustre", "source": "10.0.0.1:/fs", "rdma": True}}, "rdma: true or false (nfs alone)"),
            ({"/x": {**nfs, "optoins": ["ro"]}}, "is no mount. Expected"),
            ({"/full": nfs}, "/full holds 1 entries that a mount would hide"),
            ({"/used": nfs}, "/used has tmpfs from none mounted already"),
        ):
            assert reason in shared.refused(mount)
        away = shared(shared_storage_mounts={**shared.mounts, "/x": {"type": "nfs", "source": "10.255.255.1:/export"}}, shared_storage_answer_timeout=2)
        assert (away.code, away.seconds < 60) == (2, True)
        assert "10.255.255.1 does not answer on port 2049 within 2 s" in away.reason
        assert shared.stages.lab.inside(shared.stages.host, "mountpoint", "-q", "/x").returncode != 0
    finally:
        shared.stages.shell("umount /used; rm -rf /full /used /x")


def test_a_mount_that_hangs_is_named_and_left_alone(shared: Shared) -> None:
    pid = shared.stages.shell("for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q 'subtype=lustre' && echo ${p#/proc/}; done; true").split()[0]
    shared.stages.inside("kill", "-STOP", pid)
    try:
        done = shared(shared_storage_answer_timeout=2)
        assert (done.code, done.changed, done.seconds < 60) == (2, set(), True)
        assert "/lustre: the mount does not answer" in done.reason
    finally:
        shared.stages.inside("kill", "-CONT", pid)
    assert shared().changed == set()
