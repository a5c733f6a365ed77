"""Shared storage on a real host whose kernel has no NFS and no Lustre: every refusal as it is, and one run from end to end over a stand-in.

The stand-in for mount.lustre serves a folder of the lab's object store through s3fs, under Lustre's name in the mount table (simulated).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.roles.stage import Stages
from tests.roles.test_object_cache import secrets_of

pytestmark = pytest.mark.lab
HELPER = "/sbin/mount.lustre"
LUSTRE = {"type": "lustre", "source": "10.0.0.1@o2ib:/fs"}
NFS = {"type": "nfs", "source": "127.0.0.1:/export"}
SIMULATED: dict[str, Any] = {"shared_storage_mounts": {"/shared": LUSTRE}, "shared_storage_simulated": True, "shared_storage_answer_timeout": 3}
# A refusal is said at once, or when the role's own wait of 2 s is over; a run takes a second or two besides.
BOUND = 20.0


@pytest.fixture
def bare(provisioned: Stages) -> Stages:
    return provisioned


@pytest.fixture
def lustre(bare: Stages) -> Iterator[Stages]:
    """The host with the stand-in; afterwards without it and its mount."""
    keys = secrets_of(bare)
    options = f"subtype=lustre,noatime,allow_other,uid=1000,gid=1000,umask=0022,mp_umask=0022,passwd_file=/run/lustre.keys,use_path_request_style,url={keys['object_cache_endpoint']}"
    pair = f"{keys['object_cache_access_key']}:{keys['object_cache_secret_key']}"
    script = f'#!/bin/sh\nexec s3fs ckpt "$2" -o "fsname=$1,{options}"\n'
    bare.shell("command -v s3fs >/dev/null || apt-get install -qq -y s3fs >/dev/null")
    bare.shell(f"umask 077; echo {shlex.quote(pair)} > /run/lustre.keys; umask 022; printf %s {shlex.quote(script)} > {HELPER}; chmod 755 {HELPER}")
    try:
        yield bare
    finally:
        bare.shell(f"kill -CONT $(pgrep -f '[f]sname=10.0.0.1'); umount -l /shared 2>/dev/null; sed -i /x-nodectl.shared/d /etc/fstab; rm -f {HELPER} /run/lustre.keys; rmdir /shared 2>/dev/null; true")


def fstab(stages: Stages) -> list[str]:
    return [line for line in stages.shell("cat /etc/fstab").splitlines() if "x-nodectl.shared" in line]


def test_every_mistake_is_told_in_one_run(bare: Stages) -> None:
    wrong = {
        "relative": NFS, "/cifs": {**NFS, "type": "cifs"}, "/no-export": {**NFS, "source": "server"}, "/typo": {**NFS, "nconect": 8},
        "/rdma": {**LUSTRE, "rdma": True}, "/blank": {**NFS, "source": "a b:/x"}, "/text": "server:/export",
    }  # fmt: skip
    done = bare("shared_storage", shared_storage_mounts={**wrong, "/right": NFS})
    assert (done.code, done.changed) == (2, set())
    assert [path for path in wrong if f"shared_storage_mounts: {path}: " not in done.out] == []
    assert "shared_storage_mounts: /right: " not in done.out


def test_a_folder_that_is_taken_is_refused(bare: Stages) -> None:
    bare.shell("mkdir -p /used /full; mount -t tmpfs -o mode=0755 none /used; touch /full/one /full/two")
    try:
        done = bare("shared_storage", shared_storage_mounts={"/used": LUSTRE, "/full": LUSTRE})
        assert (done.code, done.changed) == (2, set())
        assert "/used has tmpfs from none mounted already" in done.out
        assert "/full holds 2 entries that a mount would hide" in done.out
        assert bare.inside("stat", "-c", "%a", "/used", "/full") == "755\n755\n"
    finally:
        bare.shell("umount /used; rm -r /used /full")


def test_a_client_that_is_not_there_is_named(bare: Stages) -> None:
    done = bare("shared_storage", shared_storage_mounts={"/shared": LUSTRE, "/weka": {"type": "weka", "source": "w1/fs"}})
    assert (done.code, done.changed) == (2, set())
    for program in ("/sbin/mount.lustre: install the client of lustre", "/sbin/mount.wekafs: install the client of weka"):
        assert f"there is no {program} as its maker says, for this kernel" in done.out


def test_a_server_that_does_not_answer_is_named_before_anything_waits_for_it(bare: Stages) -> None:
    done = bare("shared_storage", shared_storage_mounts={"/nfs": NFS}, shared_storage_answer_timeout=2)
    assert (done.code, fstab(bare)) == (2, [])
    assert "/nfs: 127.0.0.1 does not answer on port 2049 within 2 s" in done.reason
    assert bare.lab.inside(bare.host, "test", "-e", "/nfs").returncode != 0
    again = bare("shared_storage", shared_storage_mounts={"/nfs": NFS}, shared_storage_answer_timeout=2)
    assert (again.code, again.changed, again.seconds < BOUND) == (2, set(), True)


def test_mounted_proven_left_alone_and_taken_down(lustre: Stages) -> None:
    check, real = lustre.rehearsed("shared_storage", **SIMULATED)
    assert (check.code, real.code) == (0, 0), check.out + real.out
    assert check.changed == real.changed
    assert "simulated: stand-ins mounted /shared" in real.out
    (line,) = fstab(lustre)
    assert line.split()[:4] == [LUSTRE["source"], "/shared", "lustre", "flock,noatime,_netdev,nofail,x-systemd.mount-timeout=60,x-nodectl.shared"]
    lustre.as_user("echo kept > /shared/from-shared")
    assert (lustre.lab.dir / "store/ckpt/from-shared").read_text() == "kept\n"
    assert lustre("shared_storage", **SIMULATED).changed == set()
    other = lustre("shared_storage", **{**SIMULATED, "shared_storage_mounts": {"/shared": {**LUSTRE, "source": "10.0.0.2@o2ib:/fs"}}})
    assert (other.code, other.changed) == (2, set())
    assert f"/shared has fuse.lustre from {LUSTRE['source']} mounted already" in other.reason
    check, real = lustre.rehearsed("shared_storage", shared_storage_mounts={})
    assert (check.code, real.code, fstab(lustre)) == (0, 0, [])
    assert check.changed == real.changed != set()
    assert lustre.lab.inside(lustre.host, "mountpoint", "-q", "/shared").returncode != 0
    assert lustre("shared_storage", shared_storage_mounts={}).changed == set()
    (lustre.lab.dir / "store/ckpt/from-shared").unlink()


def test_a_mount_that_hangs_is_named_and_left_alone(lustre: Stages) -> None:
    assert lustre("shared_storage", **SIMULATED).code == 0
    lustre.shell("kill -STOP $(pgrep -f '[f]sname=10.0.0.1')")
    done = lustre("shared_storage", **SIMULATED)
    assert (done.code, done.changed, done.seconds < BOUND) == (2, set(), True)
    assert "the mount does not answer: /shared did not answer within 3 s: look at the server 10.0.0.1@o2ib" in done.reason
    lustre.shell("kill -CONT $(pgrep -f '[f]sname=10.0.0.1')")
    again = lustre("shared_storage", **SIMULATED)
    assert (again.code, again.changed) == (0, set())
