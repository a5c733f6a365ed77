"""Object store mounts on a real host: nothing that was written is lost, and a mount that is claimed to be there is there."""

from __future__ import annotations

import hashlib
import secrets
import shlex
from typing import Any

import pytest
import yaml

from tests.roles.stage import Stages, Trial, until

pytestmark = pytest.mark.lab
MOUNTS: dict[str, Any] = {
    "/data": {"source": "s3://dataset", "mode": "MOUNT", "profile": "dataset_ro"},
    "/ckpt": {"source": "s3://ckpt", "mode": "MOUNT_CACHED", "profile": "checkpoint_rw"},
}
UNIT = "nodectl-cache-ckpt.service"
# What a run may take that finds the store or a daemon dead: each of its waits is bounded, this is their sum.
BOUND = 60.0


@pytest.fixture
def mounted(provisioned: Stages) -> Stages:
    return provisioned


def secrets_of(stages: Stages) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load((stages.lab.dir / "group_vars" / "all.yml").read_text())
    return found


def in_store(stages: Stages, name: str, bucket: str = "ckpt") -> str:
    """sha256 of an object as the store has it, "" while it has none."""
    path = stages.lab.dir / "store" / bucket / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def written(stages: Stages, path: str, kib: int = 300) -> str:
    """A file of random bytes, written by the account that trains; its sha256."""
    return stages.as_user(f"head -c {kib}K /dev/urandom > {shlex.quote(path)} && sha256sum < {shlex.quote(path)}").split()[0]


def arrives(stages: Stages, name: str, wrote: str, bucket: str = "ckpt") -> None:
    until(lambda: in_store(stages, name, bucket) == wrote, 20, f"{name} is in the store byte for byte")


def fresh(name: str) -> str:
    """A name that no earlier test on this lab's store has used: the store outlives its hosts."""
    return f"{name}-{secrets.token_hex(4)}"


def daemon(stages: Stages, unit: str = UNIT) -> str:
    return stages.inside("systemctl", "show", "-p", "MainPID", "--value", unit).strip()


def command_line(stages: Stages, unit: str = UNIT) -> str:
    return stages.shell(f"tr '\\0' ' ' < /proc/{daemon(stages, unit)}/cmdline")


def test_systemd_finds_nothing_wrong_with_the_units(mounted: Stages) -> None:
    assert mounted.shell("systemd-analyze verify /etc/systemd/system/nodectl-cache-*.service 2>&1") == ""


def test_files_belong_to_who_trains_and_arrive(mounted: Stages) -> None:
    for path, bucket in (("/ckpt", "ckpt"), ("/data", "dataset")):
        name = fresh("own")
        wrote = written(mounted, f"{path}/{name}")
        assert mounted.inside("stat", "-c", "%U:%G", f"{path}/{name}") == "ops:ops\n"
        arrives(mounted, name, wrote, bucket)


def test_the_cache_is_sized_by_the_scratch_disk(mounted: Stages) -> None:
    total = int(mounted.inside("stat", "-f", "-c", "%b %S", "/scratch").split()[0]) * int(mounted.inside("stat", "-f", "-c", "%S", "/scratch"))
    assert f"--vfs-cache-max-size={total // 2 // 1048576}M" in command_line(mounted)


def test_the_secret_is_in_one_file_and_nowhere_else(mounted: Stages, first: dict[str, Trial]) -> None:
    secret = secrets_of(mounted)["object_cache_secret_key"]
    password = mounted.shell("sed -n 's/^RCLONE_RC_PASS=//p' /etc/nodectl/object-cache/ckpt.env").strip()
    assert len(secret) > 20
    assert len(password) > 20
    told = mounted.shell("ps axwww -o args; systemctl cat 'nodectl-cache-*'; journalctl --no-pager -o cat")
    said = [run.out + str(run.events) + str(run.report) for run in (first["cache"].check, first["cache"].real)]
    for word in (secret, password):
        assert word not in told
        assert [text for text in said if word in text] == []
    places = mounted.shell(f"grep -rlF -e {shlex.quote(secret)} /etc /usr/local /run /var/lib /var/log /tmp /root /home 2>/dev/null || true").split()
    assert places == ["/etc/nodectl/object-cache/rclone.conf"]
    assert set(mounted.shell("stat -c '%a %U' /etc/nodectl/object-cache/*").splitlines()) == {"600 root"}


@pytest.mark.parametrize("signal", ["KILL", "STOP"])
def test_a_daemon_that_is_dead_or_stopped_is_recovered(mounted: Stages, signal: str) -> None:
    drop_in = f"/run/systemd/system/{UNIT}.d"
    mounted.shell(f"mkdir -p {drop_in}; printf '[Service]\\nRestart=no\\n' > {drop_in}/no.conf; systemctl daemon-reload")
    old = daemon(mounted)
    mounted.inside("kill", f"-{signal}", old)
    done = mounted("cache", object_cache_hang_timeout=3)
    assert done.code == 0, done.out
    assert done.stats(mounted.host)["changed"] == 1
    assert "recovered /ckpt: " in done.out
    assert daemon(mounted) != old
    name = fresh("after")
    arrives(mounted, name, written(mounted, f"/ckpt/{name}"))
    assert mounted.shell("grep -c ' /ckpt ' /proc/mounts") == "1\n"
    mounted.shell(f"rm -r {drop_in}; systemctl daemon-reload")
    assert mounted("cache").changed == set()


def test_a_file_of_an_earlier_life_is_never_seen_empty(mounted: Stages) -> None:
    """rclone 1.60 shows a file that waited in the cache when it died as empty, from its upload until it lists the folder again."""
    name = fresh("life")
    wrote = written(mounted, f"/ckpt/{name}")
    mounted.shell(f"kill -9 {daemon(mounted)}; systemctl restart {UNIT}; ls /ckpt")
    arrives(mounted, name, wrote)
    assert mounted.as_user(f"sha256sum < /ckpt/{name}").split()[0] == wrote


def test_new_settings_wait_for_what_is_not_uploaded(mounted: Stages) -> None:
    slow = mounted("cache", object_cache_write_back=6)
    assert slow.code == 0, slow.out
    assert "--vfs-write-back=6s" in command_line(mounted)
    name = fresh("waiting")
    wrote = written(mounted, f"/ckpt/{name}")
    assert in_store(mounted, name) == ""
    done = mounted("cache")
    assert done.code == 0, done.out
    assert in_store(mounted, name) == wrote
    assert "--vfs-write-back=1s" in command_line(mounted)


def test_a_store_that_is_away_fails_the_task_with_rclones_words(mounted: Stages) -> None:
    late = {**MOUNTS, "/late": "s3://ckpt/late"}
    mounted.lab.fault("", "store-down")
    try:
        down = mounted("cache", file_mounts=late)
    finally:
        mounted.lab.lift("", "store-down")
    assert (down.code, down.seconds < BOUND) == (2, True), down.out
    assert "/data: the store does not show s3://dataset: " in down.reason
    assert "connection refused" in down.reason
    assert mounted.lab.inside(mounted.host, "mountpoint", "-q", "/late").returncode != 0
    up = mounted("cache", file_mounts=late)
    assert up.code == 0, up.out
    name = fresh("file")
    arrives(mounted, f"late/{name}", written(mounted, f"/late/{name}"))


def test_a_mount_that_nobody_asks_for_is_drained_and_taken_down(mounted: Stages) -> None:
    keys = secrets_of(mounted)
    own = {"endpoint": keys["object_cache_endpoint"], "credentials": "own"}
    odd = {**MOUNTS, "/srv/deep/odd": {"source": "s3://ckpt/my runs/100% $HOME", "mode": "MOUNT_CACHED", **own}}
    named = {"own": {"access_key": keys["object_cache_access_key"], "secret_key": keys["object_cache_secret_key"]}}
    made = mounted("cache", file_mounts=odd, object_cache_write_back=4, object_cache_credentials=named)
    assert made.code == 0, made.out
    assert mounted.inside("stat", "-c", "%a", "/srv/deep") == "755\n"
    name = fresh("file")
    wrote = written(mounted, f"/srv/deep/odd/{name}")
    untouched = daemon(mounted)
    check, real = mounted.rehearsed("cache", object_cache_write_back=4, file_mounts={**MOUNTS, "/ckpt": odd["/ckpt"]})
    assert (check.code, real.code) == (0, 0), real.out
    assert check.changed == real.changed
    assert in_store(mounted, f"my runs/100% $HOME/{name}") == wrote
    assert mounted.lab.inside(mounted.host, "mountpoint", "-q", "/srv/deep/odd").returncode != 0
    assert "odd" not in mounted.shell("ls /etc/systemd/system /etc/nodectl/object-cache /etc/systemd/system/multi-user.target.wants")
    assert daemon(mounted) != untouched  # its share of the disk is larger again
    assert mounted("cache").code == 0


def test_a_bucket_that_does_not_exist_is_not_mounted(mounted: Stages) -> None:
    """rclone itself mounts it, shows it empty and takes files that never arrive."""
    done = mounted("cache", file_mounts={**MOUNTS, "/typo": "s3://datasett"})
    assert done.code == 2
    assert "/typo: the store does not show s3://datasett: Failed to lsjson: directory not found" in done.reason
    assert mounted.lab.inside(mounted.host, "test", "-e", "/typo").returncode != 0


@pytest.mark.parametrize(
    ("mounts", "reason"),
    [
        ({"/a-b": "s3://ckpt/1", "/a/b": "s3://ckpt/2"}, "would share one unit name"),
        ({"/x": "gs://ckpt"}, "s3://"),
        ({"/x": {"source": "s3://ckpt", "mode": "CACHED"}}, "MOUNT_CACHED"),
        ({"x": "s3://ckpt"}, "x"),
        ({"/x": {"mode": "MOUNT"}}, "source"),
        ({"/x": {"source": "s3://ckpt", "credentials": "nobody"}}, "a name in object_cache_credentials"),
    ],
    ids=str,
)
def test_what_is_no_mount_is_refused_before_anything_is_done(mounted: Stages, mounts: dict[str, Any], reason: str) -> None:
    done = mounted("cache", file_mounts={**MOUNTS, **mounts})
    assert done.code in (1, 2)
    assert reason in done.out
    assert done.changed == set()


def test_a_folder_that_is_taken_is_refused(mounted: Stages) -> None:
    mounted.shell("mkdir -p /used /full; mount -t tmpfs -o mode=0755 none /used; touch /full/one /full/two")
    try:
        used = mounted("cache", file_mounts={**MOUNTS, "/used": "s3://ckpt/x"})
        full = mounted("cache", "--check", file_mounts={**MOUNTS, "/full": "s3://ckpt/x"})
        assert (used.code, full.code) == (2, 2)
        assert "/used has tmpfs from none mounted already" in used.reason
        assert "/full holds 2 entries that a mount would hide" in full.reason
        assert mounted.inside("stat", "-c", "%a", "/used", "/full") == "755\n755\n"
    finally:
        mounted.shell("umount /used; rm -r /used /full")


def test_no_cache_on_the_root_filesystem(mounted: Stages) -> None:
    done = mounted("cache", object_cache_scratch="/var")
    assert done.code == 2
    assert "/var/.object-cache lies on /, which a full cache would stop" in done.reason


def test_a_run_that_died_before_the_restart_is_made_good_by_the_next(mounted: Stages) -> None:
    unit = mounted.lab.root(mounted.host) / "etc/systemd/system" / UNIT
    mounted.killed("cache", lambda: "--vfs-write-back=7s" in unit.read_text(), object_cache_write_back=7)
    assert "--vfs-write-back=1s" in command_line(mounted)
    done = mounted("cache", object_cache_write_back=7)
    assert done.code == 0, done.out
    assert "--vfs-write-back=7s" in command_line(mounted)
