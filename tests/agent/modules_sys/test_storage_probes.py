"""Measuring storage: fio's figures, proof that no cache answered, folders that never stay behind, object stores asked past their mount."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent import direct_io, fio_job, io_proof, measured_folder, rclone_store
from nodectl.agent.contract import Failed
from nodectl.agent.io_proof import Counters
from nodectl.agent.probes import probe_fio, probe_phases, probe_storage_target
from nodectl.agent.system import Mount, System
from tests.agent.modules_sys.scripted import Scripted, filled, reason

pytestmark = pytest.mark.servers

MIB = 2**20


def left(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".nodectl")]


# -- fio's JSON


def fio_json(**job: Any) -> dict[str, Any]:
    side = {"io_bytes": 4096000, "bw": 2000000, "bw_bytes": 2048000000, "iops": 500.0, "runtime": 2, "clat_ns": {"percentile": {"50.000000": 1000, "99.000000": 2000}}}
    sync = {"lat_ns": {"percentile": {"99.000000": 5_000_000, "99.900000": 9_000_000}}}
    return {"fio version": "fio-3.33", "jobs": [dict({"error": 0, "read": side, "write": side, "sync": sync}, **job)]}


def test_fio_json_between_other_lines() -> None:
    data, notes = fio_job.cut_json('note: both iodepth >= 1 {and} psync\n{"a": {"b": 1}}\nfio: io_u error\n')
    assert data == {"a": {"b": 1}}
    assert notes == ["note: both iodepth >= 1 {and} psync", "fio: io_u error"]
    assert "no JSON" in reason(lambda: fio_job.cut_json("nothing { here"))


def test_fio_figures_are_bytes_and_seconds() -> None:
    values = fio_job.judge_fio(fio_json(), "fsync", 0, [])
    assert values["bytes_per_second"] == 2.048e9
    assert values["latency_s"] == {"p50": 1e-6, "p99": 2e-6}
    assert values["sync_latency_s"] == {"p99": 0.005, "p99.9": 0.009}
    assert values["method"] == "fio-3.33"
    assert fio_job.judge_fio(fio_json(sync={}), "write", 0, [])["sync_latency_s"] == {}


@pytest.mark.parametrize(
    ("data", "rc", "says"),
    [
        (fio_json(error=28), 1, "No space left on device (error 28)"),
        (fio_json(error=5), 0, "error 5"),
        ({"jobs": []}, 1, "exit code 1"),
        (fio_json(write={"io_bytes": 0, "runtime": 0}), 0, "moved no data"),
    ],
)
def test_fio_that_failed_is_no_figure(data: dict[str, Any], rc: int, says: str) -> None:
    assert says in reason(lambda: fio_job.judge_fio(data, "write", rc, []))


JOB = fio_job.Job("write", MIB, 64 * MIB)
COMMANDS: list[tuple[fio_job.Job, list[str], list[str]]] = [
    (JOB, ["--rw=write", "--end_fsync=1", "--time_based=1", "--runtime=5000ms", "--directory=/f"], ["--fsync=1", "--readonly"]),
    (JOB._replace(rw="fsync"), ["--rw=write", "--fsync=1"], ["--end_fsync=1"]),
    (JOB._replace(rw="randread"), ["--rw=randread", "--invalidate=1"], ["--end_fsync=1", "--fsync=1"]),
    (JOB._replace(rw="read", file="/f/cold/data.0"), ["--filename=/f/cold/data.0", "--readonly", "--runtime=5000ms"], ["--time_based=1", "--directory=/f"]),
    (JOB._replace(seconds=0.5), ["--runtime=500ms"], []),
    (JOB._replace(ramp=2.0), ["--ramp_time=2000ms"], []),
]


@pytest.mark.parametrize(("job", "there", "absent"), COMMANDS)
def test_fio_command(job: fio_job.Job, there: list[str], absent: list[str]) -> None:
    argv = fio_job.command(job, "/f", "libaio", 16, True)
    assert set(there) <= set(argv)
    assert not set(absent) & set(argv)
    assert not [word for word in argv if word.startswith("--filename=/dev")]


# -- proof


BEFORE, SAID = Counters("nvme0n1", 1000, 2000, 0.0), {"direct": True, "direct_reason": "", "fstype": "xfs", "size": 10, "memory": 100}
# writes, bytes, counters after, changes of what is said, kind, words
PROOFS: list[tuple[bool, int, Counters | None, dict[str, Any], str, str]] = [
    (False, 100, Counters("nvme0n1", 1100, 2000, 0.0), {}, "device", "100 of 100 bytes went through nvme0n1"),
    (False, 100, Counters("nvme0n1", 1090, 2000, 0.0), {}, "device", "90 of 100"),
    (False, 100, Counters("nvme0n1", 1089, 9000, 0.0), {}, "", "the rest came from a cache"),
    (True, 100, Counters("nvme0n1", 9000, 2100, 0.0), {}, "device", "100 of 100"),
    (True, 100, Counters("nvme0n1", 9000, 2001, 0.0), {}, "", "only 1 of 100"),
    (False, 100, None, {"fstype": "nfs4"}, "direct", "nfs4 took O_DIRECT"),
    (False, 100, None, {"fstype": "nfs4", "direct": False, "direct_reason": "Invalid argument"}, "", "not bypassed: Invalid argument"),
    (False, 100, None, {"fstype": "nfs4", "direct": False, "size": 101}, "memory", "the file has 101 bytes, the memory 100"),
    (False, 100, None, {"fstype": "nfs4", "direct": False, "size": 101, "memory": 0}, "", "not bypassed"),
    (False, 100, None, {"fstype": "tmpfs"}, "", "tmpfs is no disk"),
    (False, 100, None, {"fstype": "overlay", "size": 101}, "", "overlay is no disk"),
    (False, 100, None, {"fstype": "fuse.s3fs"}, "", "cache of its own"),
    (False, 100, None, {"fstype": "fuse"}, "", "cache of its own"),
]


@pytest.mark.parametrize(("writes", "moved", "after", "changes", "kind", "words"), PROOFS)
def test_proof(writes: bool, moved: int, after: Counters | None, changes: dict[str, Any], kind: str, words: str) -> None:
    found = io_proof.proof(writes, moved, BEFORE if after else None, after, {**SAID, **changes})
    assert found.kind == kind
    assert words in found.text


def test_counters_of_a_device(tmp_path: Path) -> None:
    (tmp_path / "sdb").mkdir()
    (tmp_path / "sdb/stat").write_text("  10 0 16 4 20 0 32 8 0 1500 12 0 0 0 0 1 2\n")
    assert io_proof.read_counters(str(tmp_path / "sdb")) == Counters("sdb", 16 * 512, 32 * 512, 1.5)
    (tmp_path / "sdb/stat").write_text("10 0 x\n")
    assert io_proof.read_counters(str(tmp_path / "sdb")) is None
    assert io_proof.read_counters(str(tmp_path / "none")) is None


def test_counters_need_a_device() -> None:
    table = [Mount("store:", "/data", "fuse.rclone", "rw", "/", "0:99"), Mount("/dev/no-such-disk", "/b", "btrfs", "rw", "/", "0:98")]
    assert io_proof.counters(table, "/data/x") is None
    assert io_proof.counters(table, "/b/x") is None
    assert io_proof.counters([], "/b/x") is None


# -- for real


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")
@pytest.mark.parametrize("rw", ["write", "randread", "fsync"])
def test_fio_for_real(tmp_path: Path, rw: str) -> None:
    values = probe_fio.act(System(), filled(probe_fio.SPEC, path=str(tmp_path), rw=rw, bs="4k", size="1MiB", runtime=0.2, any_filesystem=True), False).values
    assert values["method"].startswith("fio-")
    assert values["bytes_per_second"] > 0
    assert values["conditions"]["bs"] == 4096
    assert (values["sync_latency_s"] != {}) == (rw == "fsync")
    assert json.loads(values["raw"])["jobs"][0]["error"] == 0
    assert left(tmp_path) == []


@pytest.mark.parametrize("rw", ["write", "randwrite", "read", "randread", "fsync"])
def test_without_fio_python_measures_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rw: str) -> None:
    system = System()
    monkeypatch.setattr(system, "which", lambda name: None if name == "fio" else shutil.which(name))
    args = filled(probe_fio.SPEC, path=str(tmp_path), rw=rw, bs="64KiB", size="1MiB", runtime=0.1, any_filesystem=True)
    values = probe_fio.act(system, args, False).values
    assert "fio is not installed" in values["method"]
    assert values["bytes_per_second"] > 0
    assert values["conditions"]["iodepth"] == 1
    assert (values["sync_latency_s"] != {}) == (rw == "fsync")
    assert left(tmp_path) == []


def test_several_ways_stand_side_by_side_and_one_that_fails_takes_none_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fio_job.measure

    def measure(system: System, job: fio_job.Job, *rest: Any) -> dict[str, Any]:
        if job.rw == "read":
            raise Failed("fio failed: Input/output error (error 5)")
        return real(system, job, *rest)

    monkeypatch.setattr(fio_job, "measure", measure)
    args = filled(probe_fio.SPEC, path=str(tmp_path), ways=["write", "read", "randread"], size="1MiB", runtime=0.1, any_filesystem=True)
    ways = probe_fio.act(System(), args, False).values["ways"]
    assert ways["read"] == {"error": "fio failed: Input/output error (error 5)"}
    assert (ways["write"]["conditions"]["bs"], ways["randread"]["conditions"]["bs"]) == (MIB, 4096)
    assert left(tmp_path) == []


def test_fio_refuses_before_writing(tmp_path: Path) -> None:
    def said(**more: Any) -> str:
        return reason(lambda: probe_fio.act(System(), filled(probe_fio.SPEC, **{"path": str(tmp_path), "any_filesystem": True, **more}), False))

    assert "is no folder" in said(path="/dev/null")
    assert "bytes free; the test needs" in said(size="900TB")
    assert "multiple of the sector size" in said(bs="1000")
    assert "multiple of the sector size" in said(ways=["randread"], random_bs="1000")
    assert "ways: writes is unknown" in said(ways=["writes"])
    assert "is tmpfs, no disk" in said(path="/dev/shm", any_filesystem=False)
    assert probe_fio.act(System(), filled(probe_fio.SPEC, path=str(tmp_path)), True).skipped
    assert left(tmp_path) == left(Path("/dev/shm")) == []


def small_phases(folder: str, **more: Any) -> dict[str, Any]:
    return filled(probe_phases.SPEC, path=folder, batches=2, batch_size="64KiB", samples=4, model_size="1MiB", checkpoint_size="1MiB", **more)


def test_phases_on_a_disk(tmp_path: Path) -> None:
    values = probe_phases.act(System(), small_phases(str(tmp_path)), False).values
    assert values["batch_read"]["bytes"] == 2 * 65536
    assert values["model_load"]["bytes"] == values["checkpoint_write"]["bytes"] == MIB
    for phase in ("batch_read", "model_load", "checkpoint_write"):
        assert values[phase]["bytes_per_second"] == pytest.approx(values[phase]["bytes"] / values[phase]["seconds"])
    assert values["content"] == {"wrong": []}
    assert values["durable"] is None
    assert values["conditions"]["samples"] == 4
    assert left(tmp_path) == []
    assert probe_phases.act(System(), small_phases(str(tmp_path)), True).skipped


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to measure as another account")
def test_phases_as_a_user_on_memory() -> None:
    values = probe_phases.act(System(), small_phases("/dev/shm", user="nobody"), False).values
    assert values["conditions"]["fstype"] == "tmpfs"
    assert left(Path("/dev/shm")) == []
    assert "cannot make a folder" in reason(lambda: probe_phases.act(System(), small_phases("/sys", user="nobody"), False))


def test_content_that_changed_is_named(tmp_path: Path) -> None:
    order = {"folder": str(tmp_path), "batch_size": 8, "samples": 2, "batches": 2, "model_size": 3 * MIB, "threads": 2}
    files = direct_io.place(order)["files"]
    assert direct_io.compare({"folder": str(tmp_path), "files": files}) == {"wrong": []}
    with (tmp_path / "model").open("r+b") as model:
        model.seek(2 * MIB)
        model.write(b"\xff" * 8)
    (tmp_path / "sample-1-0").unlink()
    wrong = direct_io.compare({"folder": str(tmp_path), "files": files})["wrong"]
    assert wrong == ["model: other bytes than were written", "sample-1-0: No such file or directory"]


def test_no_two_blocks_of_a_file_are_equal(tmp_path: Path) -> None:
    direct_io.write_file(str(tmp_path / "model"), 3 * MIB, False)
    data = (tmp_path / "model").read_bytes()
    assert len({data[at : at + MIB] for at in range(0, 3 * MIB, MIB)}) == 3


def test_storage_target_says_whether_it_can_be_written(tmp_path: Path) -> None:
    values = probe_storage_target.act(System(), filled(probe_storage_target.SPEC, path=str(tmp_path), write=True), False).values
    assert (values["writable"], values["write_reason"], values["read_only"]) == (True, "", False)
    values = probe_storage_target.act(System(), filled(probe_storage_target.SPEC, path="/sys", write=True), False).values
    assert values["writable"] is False
    assert values["write_reason"] != ""
    assert probe_storage_target.act(System(), filled(probe_storage_target.SPEC, path=str(tmp_path)), False).values["writable"] is None
    assert os.listdir(tmp_path) == []


def test_the_topmost_mount_holds_a_path() -> None:
    table = [Mount("a", "/", "ext4", "rw", "/", "1:1"), Mount("b", "/data", "xfs", "rw", "/", "1:2"), Mount("c", "/data", "fuse.x", "rw", "/", "0:9"), Mount("d", "/data2", "xfs", "rw", "/", "1:3")]
    found = measured_folder.mount_of(table, "/data/x")
    assert found is not None
    assert found.source == "c"


# -- nothing stays behind


def test_folder_is_removed_when_the_test_fails(tmp_path: Path) -> None:
    def broken_off() -> None:
        with measured_folder.measured_folder(System(), str(tmp_path), 1) as folder:
            (Path(folder) / "data").write_bytes(b"x")
            raise Failed("stopped")

    assert reason(broken_off) == "stopped"
    assert left(tmp_path) == []


_HOLD = """\
import sys, time
sys.path.insert(0, sys.argv[2])
from nodectl.agent import as_user
from nodectl.agent.measured_folder import measured_folder
from nodectl.agent.system import System
with measured_folder(System(), sys.argv[1], 1) as folder:
    open(folder + "/data", "wb").write(b"x")
    print(folder, flush=True)
    if sys.argv[3:]:
        System().run(as_user.command("", "os.execvp('sleep', ['sleep', sys.argv[1]])", ["61.7"]), timeout=70.0)
    time.sleep(60)
"""


def until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def test_a_killed_agent_leaves_nothing(tmp_path: Path) -> None:
    """SIGKILL: nothing of the agent runs any more, its janitor does."""
    root = Path(__file__).resolve().parents[3]
    holder = subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path), str(root)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    folder = holder.stdout.readline().strip()
    assert os.listdir(folder) == ["data"]
    holder.send_signal(signal.SIGKILL)
    holder.wait(10)
    holder.stdout.close()
    assert until(lambda: left(tmp_path) == [])


def test_what_measures_ends_with_a_killed_agent(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    holder = subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path), str(root), "sleeps"], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    holder.stdout.readline()

    def sleeper() -> list[str]:
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
        return [pid for pid in children if Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x0061.7\0"]

    assert until(lambda: sleeper() != [])
    pid = sleeper()[0]
    holder.send_signal(signal.SIGKILL)
    holder.wait(10)
    holder.stdout.close()
    assert until(lambda: not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text())


def name_of(node: str, pid: int, start: str) -> str:
    return f"{measured_folder.PREFIX}{node}-{pid}-{start}-{'a' * 12}"


def test_leftovers_of_a_killed_run_are_removed_and_no_others(tmp_path: Path) -> None:
    me, mine = measured_folder._node(), measured_folder._started(os.getpid())
    kept = [
        name_of(me, os.getpid(), mine),  # of a process that lives
        name_of("0" * 8, 1, "1"),  # of another node that sees the same mount
        f"{measured_folder.PREFIX}somebody", "data", f".nodectl-probe-{'b' * 12}",
    ]
    gone = [name_of(me, os.getpid(), "1"), name_of(me, 2**22 + 5, "77")]  # the number was given again; nobody has it
    for name in kept + gone:
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").touch()
    (tmp_path / name_of(me, 2**22 + 6, "1")).symlink_to(tmp_path / "data")
    assert sorted(measured_folder.remove_leftovers(System(), str(tmp_path))) == sorted(gone)
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, name_of(me, 2**22 + 6, "1")])
    assert os.listdir(tmp_path / "data") == ["data"]


def test_child_that_fails_says_why(tmp_path: Path) -> None:
    said = reason(lambda: measured_folder.in_child(System(), "", {"what": "batch_read", "folder": str(tmp_path / "gone"), "samples": 1, "batches": 1, "threads": 1}, 10.0))
    assert "No such file" in said


def test_quantiles() -> None:
    assert [direct_io.quantile([4, 1, 3, 2], share) for share in (0.25, 0.5, 0.75, 1.0)] == [1, 2, 3, 4]
    assert direct_io.quantile([7.0], 0.99) == 7.0


def test_threads_raise_the_first_error() -> None:
    def work(item: int) -> int:
        if item == 3:
            raise OSError("three")
        return item * 2

    assert direct_io.on_threads(4, [1, 2], work) == [2, 4]
    with pytest.raises(OSError, match="three"):
        direct_io.on_threads(2, [1, 2, 3, 4], work)


# -- the store behind a mount


def test_fio_and_phases_read_from_the_store_and_wait_for_it(rclone_mount: dict[str, Any]) -> None:
    values = probe_phases.act(System(), small_phases(rclone_mount["path"]), False).values
    for phase in ("batch_read", "model_load", "checkpoint_write"):
        assert values[phase].get("proof") == "store", values
    assert values["durable"]["seconds"] >= values["checkpoint_write"]["seconds"]
    assert values["content"] == {"wrong": []}
    args = filled(probe_fio.SPEC, path=rclone_mount["path"], ways=["write", "read", "randread"], size="1MiB", runtime=0.1)
    ways = probe_fio.act(System(), args, False).values["ways"]
    assert [ways[way].get("proof") for way in ("write", "read", "randread")] == ["store"] * 3, ways
    assert left(Path(rclone_mount["path"])) == []
    assert until(lambda: left(rclone_mount["remote"]) == [])


def test_a_store_that_changes_content_is_found(rclone_mount: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    real = rclone_store.until_durable

    def corrupting(system: System, daemon: rclone_store.Daemon, folder: str, files: rclone_store.Files, timeout: float) -> float:
        took = real(system, daemon, folder, files, timeout)
        for name in files:
            if name.startswith("shard-2") or name == "model":
                with (rclone_mount["remote"] / folder / name).open("r+b") as file:
                    file.write(b"\0\0\0\1\0\0\0\1")
        return took

    monkeypatch.setattr(rclone_store, "until_durable", corrupting)
    values = probe_phases.act(System(), small_phases(rclone_mount["path"]), False).values
    assert values["content"] == {"wrong": ["model: other bytes than were written"]}
    assert values["durable"]["corrupt"] is True
    assert "other bytes than were written: shard-2 (SHA-256 differs)" in values["durable"]["error"]


def test_what_the_store_does_not_take_is_named_and_bounded(rclone_mount: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    system = System()
    monkeypatch.setattr(rclone_store, "not_uploaded", lambda *_: (1, {"uploadsQueued": 1, "erroredFiles": 2, "outOfSpace": 1}))
    began = time.monotonic()
    said = reason(lambda: rclone_store.until_durable(system, rclone_store.find(rclone_mount["path"]), "x", {"a": (1, "")}, 0.2))
    assert time.monotonic() - began < 10
    assert "1 of 1 files are in the cache of this node and not in the object store" in said
    assert "1 queued, 0 uploading, 2 with errors, the cache is out of space" in said


def test_what_holds_a_mount_is_read_from_its_own_command_line(rclone_mount: dict[str, Any]) -> None:
    found = rclone_store.find(rclone_mount["path"])
    assert (found.remote, found.options["vfs-cache-mode"], found.url) == (str(rclone_mount["remote"]), "full", rclone_mount["url"])
    assert "no rclone process" in reason(lambda: rclone_store.find("/no/such/mount"))


OPTIONS: list[tuple[list[str], dict[str, str]]] = [
    (["rclone", "mount", "a:", "/m", "--rc", "--rc-addr", "127.0.0.1:1"], {"rc": "true", "rc-addr": "127.0.0.1:1"}),
    (["rclone", "mount", "--config=/c", "a:", "/m", "--rc"], {"config": "/c", "rc": "true"}),
    (["rclone", "mount", "a:b", "/m"], {}),
]


@pytest.mark.parametrize(("words", "options"), OPTIONS)
def test_options_of_a_daemon(words: list[str], options: dict[str, str]) -> None:
    assert rclone_store._options(words) == options


@pytest.mark.parametrize(("options", "url"), [
    ({}, ""), ({"rc": "true"}, "http://localhost:5572"), ({"rc": "true", "rc-addr": ":5999"}, "http://127.0.0.1:5999"), ({"rc-addr": "127.0.0.1:1"}, ""),
])
def test_where_a_daemon_is_asked(options: dict[str, str], url: str) -> None:
    assert rclone_store.Daemon(1, "rclone", "/m", "a:", options, {}).url == url


@pytest.mark.parametrize(("size", "mode", "bytes_"), [
    ("512M", "full", 512 * MIB), ("2G", "full", 2048 * MIB), ("512M", "writes", None), ("", "full", None), ("off", "full", None), ("1.5G", "full", None),
])
def test_what_a_cache_may_hold(size: str, mode: str, bytes_: int | None) -> None:
    options = {"vfs-cache-max-size": size, "vfs-cache-mode": mode}
    assert rclone_store.Daemon(1, "rclone", "/m", "a:", options, {}).cache_bytes == bytes_


CAUSES = [
    ("2026/01/02 10:00:00 ERROR : S3 bucket x: error reading: 403 Forbidden\n2026/01/02 10:00:00 Failed to lsjson: AccessDenied: denied\n\tstatus code: 403\n",
     "Failed to lsjson: AccessDenied: denied"),
    ("2026/01/02 NOTICE : hm\n2026/01/02 ERROR : a : dial tcp 10.0.0.1:9000: connect: connection refused\n", "connection refused"),
    ("something else\n", "something else"), ("", "nothing"),
]


@pytest.mark.parametrize(("stderr", "words"), CAUSES)
def test_the_cause_in_the_stores_own_words(stderr: str, words: str) -> None:
    assert words in rclone_store.cause(stderr)


def test_no_secret_of_the_daemon_is_in_argv_or_in_messages() -> None:
    daemon = rclone_store.Daemon(1, "/usr/bin/rclone", "/m", "a:b", {"config": "/c"}, {"AWS_SECRET_ACCESS_KEY": "hush", "RCLONE_RC_PASS": "quiet", "PATH": "/x"})
    system = Scripted({"/usr/bin/rclone": (1, "", "2026/01/02 Failed to lsjson: 403 Forbidden\n")})
    said = reason(lambda: rclone_store.listing(system, daemon, "f"))
    assert said == "the object store behind /m says: Failed to lsjson: 403 Forbidden"
    assert system.ran == ["/usr/bin/rclone --config=/c --contimeout=5s --timeout=20s --retries=1 --low-level-retries=1 lsjson --files-only a:b/f"]
    assert "hush" not in said + system.ran[0]


def test_other_filesystems_are_not_asked() -> None:
    assert rclone_store.behind(System(), Mount("/dev/x", "/s", "xfs", "rw", "/", "1:1")) == (None, "")
    assert rclone_store.behind(System(), None) == (None, "")
    found, why = rclone_store.behind(System(), Mount("x", "/s", "fuse.s3fs", "rw", "/", "0:1"))
    assert found is None
    assert "not behind fuse.s3fs" in why
    found, why = rclone_store.behind(System(), Mount("x", "/no/such", "fuse.rclone", "rw", "/", "0:1"))
    assert found is None
    assert "no rclone process" in why
