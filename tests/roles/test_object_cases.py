"""What happens to mounts of an object store while somebody writes: a file of object_cases/ each; and every client behind one variable.

One run sets up all mounts. rclone and s3fs are real, against a real store; the clients that no package brings are stand-ins that take the
real ones' options (simulated).
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodectl.inventory import tiers
from nodectl.shipped import shipped
from tests.conftest import Lab
from tests.roles.object_case import ObjectCase, case_files
from tests.roles.stage import Played, Stages, until
from tests.roles.test_object_cache import MOUNTS, secrets_of

pytestmark = pytest.mark.lab
META = "redis://10.0.0.5:6379/1"
# Client of each further mount, and where its program lies.
STAND_INS = {"mountpoint-s3": "usr/bin/mount-s3", "goofys": "usr/local/bin/goofys", "geesefs": "usr/local/bin/geesefs", "juicefs": "usr/local/bin/juicefs"}
FOLDERS = {"mountpoint-s3": "/mp", "goofys": "/goofys", "geesefs": "/geesefs", "juicefs": "/jfs"}
ALL: dict[str, Any] = {
    **MOUNTS,
    "/s3": {"source": "s3://ckpt/s3", "client": "s3fs", "profile": "checkpoint_rw"},
    "/mp": {"source": "s3://dataset/mp", "client": "mountpoint-s3", "mode": "MOUNT_CACHED", "profile": "DATASET_RO"},
    "/goofys": {"source": "s3://ckpt/goofys", "client": "goofys"},
    "/geesefs": {"source": "s3://ckpt/geesefs", "client": "geesefs"},
    "/jfs": {"source": META, "client": "juicefs", "mode": "MOUNT_CACHED", "profile": "MODEL_CHECKPOINT_RW", "credentials": "jfs"},
    "/scratch/set": {"source": "s3://dataset/set", "mode": "COPY"},
}
BUCKETS = {"/ckpt": "ckpt", "/data": "dataset", "/s3": "ckpt/s3"}
PASSWORD = "not the store's"


@pytest.fixture(scope="module")
def clients(stages: Stages, first: dict[str, Any]) -> Iterator[Stages]:
    """The host with all mounts; afterwards as it was."""
    store = stages.lab.dir / "store"
    # Through the store: it does not see at once what is put behind its back.
    stages.as_user("mkdir -p /data/set/deep && head -c 100000 /dev/urandom > /data/set/deep/one.bin")
    until((store / "dataset/set/deep/one.bin").is_file, 20, "the source of the copy is in the store")
    _bring_stand_ins(stages.lab, stages.host, secrets_of(stages))
    try:
        check, real = stages.rehearsed("cache", **VARIABLES)
        assert (check.code, real.code) == (0, 0), check.out + real.out
        assert check.changed == real.changed
        yield stages
    finally:
        stages.lab.lift_all()
        last = stages("cache")
        stages.shell("rm -rf /scratch/set /etc/stand-ins.json /usr/bin/mount-s3 /usr/local/bin/goofys /usr/local/bin/geesefs /usr/local/bin/juicefs")
        shutil.rmtree(store / "dataset" / "set")
    assert last.code == 0, last.out


# Two seconds instead of ten minutes: each case that stops a mount while its store is away waits so long.
VARIABLES: dict[str, Any] = {
    "file_mounts": ALL, "object_cache_flush_timeout": 2, "object_cache_answer_timeout": 15, "object_cache_retry": 1,
    "object_cache_credentials": {"jfs": {"access_key": "", "secret_key": PASSWORD}},
}  # fmt: skip


def _bring_stand_ins(lab: Lab, host: str, keys: dict[str, str]) -> None:
    for place in STAND_INS.values():
        shutil.copy(Path(__file__).parent / "stand_ins" / "client", lab.root(host) / place)
        (lab.root(host) / place).chmod(0o755)
    endpoint = keys["object_cache_endpoint"]
    volume = {"password": PASSWORD, "meta": META, "bucket": "ckpt:/jfs", "endpoint": endpoint}
    secret = {"access": keys["object_cache_access_key"], "secret": keys["object_cache_secret_key"]}
    lab.inside(host, "sh", "-c", f"umask 077; echo {shlex.quote(json.dumps({**volume, **secret}))} > /etc/stand-ins.json")


def test_the_clients_of_the_role_are_those_of_hosts_yaml() -> None:
    role = shipped("roles") / "object_cache"
    table = yaml.safe_load((role / "vars" / "main.yml").read_text())
    mounting = {name for name, client in table["object_cache_clients"].items() if client["modes"] != ["COPY"]}
    choices = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]["object_cache_client"]["choices"]
    assert mounting == set(tiers.CLIENTS) == set(choices)
    assert set(table["object_cache_arguments"]) == set(table["object_cache_clients"])
    assert set(table["object_cache_profiles"]) == {*tiers.PROFILES, "none"}


@pytest.mark.parametrize("path", case_files(), ids=lambda path: path.stem)
def test_nothing_that_was_called_safe_is_lost(clients: Stages, path: Path) -> None:
    ObjectCase(clients, path, BUCKETS).play()


def test_each_client_is_given_its_options_and_no_secret(clients: Stages) -> None:
    endpoint = secrets_of(clients)["object_cache_endpoint"]
    seen = json.loads(clients.shell("cd /run/stand-ins; python3 -c 'import json,glob; print(json.dumps({n: json.load(open(n)) for n in glob.glob(\"*[!d]\")}))'"))
    cache = "/scratch/.object-cache"
    owner = ["--uid=1000", "--gid=1000"]
    limit = next(word for word in seen["mount-s3"] if word.startswith("--max-cache-size="))
    # A third of half the disk: three caches of equal weight.
    total = int(clients.inside("stat", "-f", "-c", "%b", "/scratch")) * int(clients.inside("stat", "-f", "-c", "%S", "/scratch"))
    assert int(limit.partition("=")[2]) == total // 2 // 3 // 1048576
    assert seen == {
        "mount-s3": [
            *("dataset", "/mp", "--foreground", "--allow-other", *owner, "--file-mode=0644", "--dir-mode=0755", "--prefix=mp/"),
            *(f"--endpoint-url={endpoint}", "--force-path-style", "--allow-delete", "--allow-overwrite", f"--cache={cache}/mp", limit, "--metadata-ttl=300"),
        ],
        "goofys": [
            *("-f", "-o", "allow_other", *owner, "--file-mode=0644", "--dir-mode=0755", f"--endpoint={endpoint}"),
            *("--stat-cache-ttl=5s", "--type-cache-ttl=5s", "ckpt:goofys", "/goofys"),
        ],
        "geesefs": [
            *("-f", "-o", "allow_other", *owner, "--setuid=0", "--setgid=0", "--file-mode=0644", "--dir-mode=0755", "--fsync-on-close"),
            *("--shared-config=/etc/nodectl/object-cache/geesefs.keys", f"--endpoint={endpoint}", "ckpt:geesefs", "/geesefs"),
        ],
        "juicefs": [
            *("mount", META, "/jfs", "--no-syslog", "-o", "allow_other", f"--cache-dir={cache}/jfs", f"--cache-size={limit.partition('=')[2]}"),
            *("--free-space-ratio=0.1", "--writeback", "--max-uploads=50"),
        ],
    }
    told = clients.shell("ps axwww -o args; systemctl cat 'nodectl-cache-*'; journalctl --no-pager -o cat")
    assert [word for word in (secrets_of(clients)["object_cache_secret_key"], PASSWORD) if word in told] == []


@pytest.mark.parametrize("client", sorted(FOLDERS))
def test_each_client_carries_files_and_is_flushed(clients: Stages, client: str) -> None:
    folder = FOLDERS[client]
    clients.as_user(f"echo {client} > {folder}/file")
    left = clients.do("object_flush", path=folder, timeout=10)
    assert (left.failed, left.values["count"]) == (False, 0), left.msg
    bucket = "dataset/mp" if client == "mountpoint-s3" else f"ckpt/{folder.strip('/')}"
    assert (clients.lab.dir / "store" / bucket / "file").read_text() == f"{client}\n"


def test_what_juicefs_has_staged_and_what_is_open_is_named(clients: Stages) -> None:
    staged = "/scratch/.object-cache/jfs/0b1/rawstaging/chunks/0/0/7_0_4194304"
    clients.shell(f"mkdir -p $(dirname {staged}) && touch {staged}")
    clients.as_user("setsid python3 -c 'import time; f = open(\"/geesefs/late\", \"w\"); time.sleep(30)' >/dev/null 2>&1 </dev/null & sleep 0.5")
    try:
        juicefs, geesefs = (clients.do("object_flush", path=path, timeout=0.1, interval=0.1) for path in ("/jfs", "/geesefs"))
        assert (juicefs.failed, juicefs.values["files"]) == (True, ["0b1/rawstaging/chunks/0/0/7_0_4194304"])
        assert (geesefs.failed, geesefs.values["count"]) == (True, 1)
        assert "/geesefs/late (open in process " in geesefs.msg
    finally:
        clients.shell(f"rm {staged}; kill $(fuser /geesefs/late 2>/dev/null) 2>/dev/null; for p in /proc/[0-9]*; do "
                      "readlink $p/fd/* 2>/dev/null | grep -q ^/geesefs/late && kill ${p#/proc/}; done; true")  # fmt: skip


def test_a_copy_is_made_once_and_left_alone(clients: Stages) -> None:
    assert clients.shell("stat -c '%U:%G %s' /scratch/set/deep/one.bin") == "ops:ops 100000\n"
    clients.as_user("echo changed > /scratch/set/deep/one.bin")
    clients.inside("systemctl", "restart", "nodectl-cache-scratch-set.service")
    assert clients.as_user("cat /scratch/set/deep/one.bin") == "changed\n"
    assert clients("cache", **VARIABLES).changed == set()


STEP = '[[step]]\nkind = "{}"\ndeadline = {}\n'


def checks_of(done: Played, host: str) -> dict[str, str]:
    return {str(check["name"]): str(check["verdict"]) for check in done.of(host)["checks"]}


def test_every_client_is_flushed_before_the_handoff(clients: Stages) -> None:
    done = clients.verify(STEP.format("mounts", 30) + STEP.format("flush", 30), **VARIABLES)
    wanted = {f"mount:{path}" for path in ALL}
    wanted |= {f"mount.flushed:{path}" for path, spec in ALL.items() if spec.get("mode") != "COPY"}
    assert {name: verdict for name, verdict in checks_of(done, clients.host).items() if name.startswith("mount")} == dict.fromkeys(wanted, "pass"), done.out
    assert done.code == 0, done.out


def test_a_node_whose_cache_holds_files_is_not_handed_off(clients: Stages) -> None:
    """The writer is a job that never closes its file."""
    mounts = {"/ckpt": ALL["/ckpt"]}
    clients.as_user("setsid sh -c 'exec sleep 60 > /ckpt/held' >/dev/null 2>&1 </dev/null & sleep 0.5")
    try:
        suite = STEP.format("mounts", 30) + STEP.format("flush", 1)
        done = clients.verify(suite, **{**VARIABLES, "file_mounts": mounts})
    finally:
        clients.shell("kill $(pgrep -f '[s]leep 60'); sleep 0.2; rm /ckpt/held")
    found = checks_of(done, clients.host)
    assert {name: verdict for name, verdict in found.items() if verdict != "pass"} == {"mount.flushed:/ckpt": "fail"}, done.out
    assert done.code == 3
    (event,) = [event for event in done.events if event["kind"] == "handoff"]
    assert event["hosts"] == []
    assert "ckpt/held" in str(event["excluded"][clients.host]), event


@pytest.mark.parametrize(
    ("mount", "reason"),
    [
        ({"/x": {"source": "s3://ckpt", "client": "goofys", "mode": "MOUNT_CACHED"}}, "goofys has no MOUNT_CACHED, only MOUNT"),
        ({"/x": {"source": "s3://ckpt", "client": "geesefs", "mode": "MOUNT_CACHED"}}, "geesefs has no MOUNT_CACHED, only MOUNT"),
        ({"/x": {"source": "redis://:geheim@10.0.0.5/1", "client": "juicefs"}}, "its source holds a password"),
        ({"/x": {"source": "redis://10.0.0.5/1", "client": "s3fs"}}, "for juicefs the URL of its database"),
        ({"/srv/set": {"source": "s3://dataset", "mode": "COPY"}}, "/srv/set lies on /, which a copy may fill"),
        ({"/scratch/full": {"source": "s3://dataset", "mode": "COPY"}}, "/scratch/full holds 1 entries"),
    ],
    ids=str,
)
def test_what_no_client_can_do_is_refused(clients: Stages, mount: dict[str, Any], reason: str) -> None:
    clients.shell("mkdir -p /scratch/full && touch /scratch/full/mine")
    done = clients("cache", **{**VARIABLES, "file_mounts": {**ALL, **mount}})
    clients.shell("rm -r /scratch/full")
    assert (done.code, done.changed) == (2, set())
    assert reason in done.out
