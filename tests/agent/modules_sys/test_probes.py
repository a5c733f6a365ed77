from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from nodectl.agent import as_user, rclone_rc
from nodectl.agent.contract import Failed
from nodectl.agent.modules import object_flush
from nodectl.agent.probes import (
    probe_clock,
    probe_limits,
    probe_machine,
    probe_mounts,
    probe_object_mount,
    probe_route,
    probe_storage_target,
)
from nodectl.agent.system import Mount, System
from tests.agent.modules_sys.scripted import Scripted, filled, reason


def test_clock() -> None:
    before = time.time_ns()
    values = probe_clock.act(System(), {}, False).values
    assert before <= values["time_ns"] <= time.time_ns()
    assert len(values["boot_id"]) == 36


def test_limits_are_those_of_this_process() -> None:
    import resource

    values = probe_limits.act(System(), filled(probe_limits.SPEC, unit=False), False).values
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert values["login"]["nofile"]["soft"] == (-1 if soft == resource.RLIM_INFINITY else soft)
    assert values["unit"] is None
    assert values["unit_error"] == "not asked for"


def test_limits_of_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda path: True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    args = filled(probe_limits.SPEC)
    good = Scripted({"systemd-run": (0, '{"memlock": {"soft": 8, "hard": 8}}', "")})
    assert probe_limits.act(good, args, False).values["unit"] == {"memlock": {"soft": 8, "hard": 8}}
    bad = Scripted({"systemd-run": (1, "", "no bus")})
    assert probe_limits.act(bad, args, False).values["unit_error"] == "no bus"
    odd = Scripted({"systemd-run": (0, "what", "")})
    assert "no answer" in probe_limits.act(odd, args, False).values["unit_error"]


def test_mounts_compares_fstab_with_the_table(tmp_path: Path) -> None:
    (tmp_path / "fstab").write_text("x /dev/shm/ tmpfs defaults 0 0\ny /not/there xfs nofail 0 0\nz /later xfs noauto 0 0\nw none swap sw 0 0\n")
    values = probe_mounts.act(System(), filled(probe_mounts.SPEC, fstab=str(tmp_path / "fstab")), False).values
    assert [(m["path"], m["present"], m["answers"]) for m in values["mounts"]] == [("/dev/shm", True, True), ("/not/there", False, False)]
    assert values["all_present"] is False
    assert values["mounts"][1]["reason"] == "nothing is mounted on /not/there"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to try as another account")
def test_mounts_tries_to_write_as_the_user() -> None:
    values = probe_mounts.act(System(), filled(probe_mounts.SPEC, paths=["/dev/shm", "/proc"], user="nobody"), False).values
    assert [m["writable"] for m in values["mounts"]] == [True, False]
    assert "nobody cannot write" in values["mounts"][1]["reason"]


def test_unknown_user_is_named() -> None:
    assert "no user who-is-this" in reason(lambda: as_user.command("who-is-this", "", []))


ROUTE = json.dumps([{"dst": "10.0.0.2", "dev": "ib0", "prefsrc": "10.0.0.1"}])


def test_route(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "n1.rack")
    hosts = b"127.0.0.1 localhost\n127.0.1.1 n1 # debian\n10.0.0.9 n1.rack\n"
    answers: dict[str, Any] = {
        "ip -j route get 10.0.0.2": (0, ROUTE, ""), "ip -j route get 10.0.0.3": (2, "", "RTNETLINK answers: Network is unreachable"),
        "ip -j route get 10.0.0.1": (0, json.dumps([{"type": "local", "dev": "lo", "prefsrc": "10.0.0.1"}]), ""),
        "getent ahosts n2": (0, "10.0.0.2 STREAM n2\n", ""), "getent ahosts n9": (2, "", ""),
    }
    system = Scripted(answers, {"/etc/hosts": hosts, "/sys/class/net/ib0/mtu": b"2044\n", "/sys/class/net/ib0/speed": b"400000\n"})
    outcome = probe_route.act(system, filled(probe_route.SPEC, peers=["10.0.0.2", "n2", "10.0.0.3", "n9", "10.0.0.1"]), False)
    assert (outcome.values["interface"], outcome.values["source"], outcome.values["mtu"], outcome.values["speed"]) == ("ib0", "10.0.0.1", 2044, 400000)
    assert [bool(r["error"]) for r in outcome.values["routes"]] == [False, False, True, True, True]
    assert "own name n1 to 127.0.1.1" in outcome.warnings[0]
    assert len(outcome.warnings) == 4


def test_storage_target(tmp_path: Path) -> None:
    values = probe_storage_target.act(System(), filled(probe_storage_target.SPEC, path="/dev/shm/not/yet"), False).values
    assert (values["target"], values["is_tmpfs"], values["exists"]) == ("/dev/shm", True, False)
    assert 0 < values["free_bytes"] <= values["total_bytes"]
    assert values["mem_total_bytes"] > 2**28


class Rc(BaseHTTPRequestHandler):
    """vfs/stats as rclone 1.60 answers; ``queue`` is what it shows, one entry per question, the last one for ever."""

    queue: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        good = self.headers.get("Authorization") == "Basic dTpw"
        stats = self.queue.pop(0) if len(self.queue) > 1 else self.queue[0]
        body = json.dumps(stats if good else {"error": "no"}).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return None


@pytest.fixture
def rc(tmp_path: Path) -> Iterator[dict[str, Any]]:
    server = HTTPServer(("127.0.0.1", 0), Rc)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    env = tmp_path / "rc.env"
    env.write_text("RCLONE_RC_USER=u\nRCLONE_RC_PASS=p\n")
    env.chmod(0o600)
    yield {"url": f"http://127.0.0.1:{server.server_port}", "env_file": str(env), "interval": 0.01, "timeout": 0.2}
    server.shutdown()
    server.server_close()


def cache(queued: int = 0, uploading: int = 0, errored: int = 0, **more: Any) -> dict[str, Any]:
    return {"diskCache": dict({"uploadsQueued": queued, "uploadsInProgress": uploading, "erroredFiles": errored}, **more)}


def flush(rc: dict[str, Any], queue: list[dict[str, Any]], **more: Any) -> Any:
    Rc.queue = queue
    return object_flush.act(System(), filled(object_flush.SPEC, **dict(rc, **more)), False)


def test_flush_waits_for_the_queue(rc: dict[str, Any]) -> None:
    outcome = flush(rc, [cache(2), cache(0, 1), cache(), cache(1), cache()], timeout=5)
    assert outcome.values["queued"] == 0
    assert len(Rc.queue) == 1


@pytest.mark.parametrize("stuck", [cache(2), cache(0, 1), cache(0, 0, 1)])
def test_flush_gives_up_and_says_what_is_left(rc: dict[str, Any], stuck: dict[str, Any]) -> None:
    with pytest.raises(Failed, match="not everything is in the object store") as raised:
        flush(rc, [stuck])
    assert sum(raised.value.values[key] for key in ("queued", "uploading", "errored")) > 0
    assert " u " not in raised.value.msg


def test_flush_believes_the_cache_records(rc: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "a").write_text('{"Size": 1, "Dirty": true}')
    (tmp_path / "meta" / "b").write_text('{"Size": 1, "Dirty": false}')
    assert "1 not uploaded" in reason(lambda: flush(rc, [cache(pathMeta=str(tmp_path / "meta"))]))


def test_flush_without_a_cache_is_done(rc: dict[str, Any]) -> None:
    assert flush(rc, [{"fs": "x"}]).values["dirty"] == 0


def test_flush_unknown_is_not_done(rc: dict[str, Any], tmp_path: Path) -> None:
    assert "cannot be known" in reason(lambda: flush(rc, [{"diskCache": {"uploadsQueued": 0}}]))
    (tmp_path / "rc.env").write_text("RCLONE_RC_USER=u\nRCLONE_RC_PASS=wrong\n")
    assert "401" in reason(lambda: flush(rc, [cache()]))
    (tmp_path / "rc.env").chmod(0o644)
    said = reason(lambda: flush(rc, [cache()]))
    assert "set 0600" in said
    assert "wrong" not in said
    assert "does not answer" in reason(lambda: rclone_rc.call(System(), "http://127.0.0.1:9", "", "vfs/stats", 1.0))
    assert "this node only" in reason(lambda: rclone_rc.call(System(), "http://10.0.0.1:9", "", "vfs/stats", 1.0))
    assert "there is no" in reason(lambda: rclone_rc.credentials(System(), str(tmp_path / "none")))


def object_mount(table: list[Mount], **args: Any) -> Any:
    return probe_object_mount.act(Scripted({}, {}, table), filled(probe_object_mount.SPEC, **args), False)


def test_object_mount_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "stray").touch()
    values = object_mount([], path=str(tmp_path)).values
    assert (values["mounted"], values["answers"], values["usable"], values["hidden_entries"]) == (False, False, False, 1)
    assert "1 entries that were written beside the store" in values["reason"]
    assert "nothing is mounted" in reason(lambda: object_mount([], path="/no/where", require=True))
    wrong = [Mount("/dev/x", str(tmp_path), "xfs", "rw", "/", "1:1")]
    assert "xfs is mounted on" in object_mount(wrong, path=str(tmp_path)).values["reason"]


def test_a_real_object_mount_is_used_and_flushed(rclone_mount: dict[str, Any]) -> None:
    asked = {key: rclone_mount[key] for key in ("path", "url", "env_file")}
    values = probe_object_mount.act(System(), filled(probe_object_mount.SPEC, **asked), False).values
    assert (values["reason"], values["mounted"], values["answers"], values["usable"], values["written"]) == ("", True, True, True, True)
    assert values["fstype"] == "fuse.rclone"
    assert values["stats"]["errored"] == 0
    Path(rclone_mount["path"], "kept").write_bytes(b"kept" * 1000)
    done = object_flush.act(System(), filled(object_flush.SPEC, url=asked["url"], env_file=asked["env_file"], timeout=20, interval=0.1), False)
    assert not done.failed
    assert (rclone_mount["remote"] / "kept").read_bytes() == b"kept" * 1000


def machine_tree(root: Path, cpus: list[tuple[int, int]], **files: str) -> str:
    """A root folder whose processors are ``cpus``: (package, core) of each."""
    for number, (package, core) in enumerate(cpus):
        topology = root / f"sys/devices/system/cpu/cpu{number}/topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{package}\n")
        (topology / "core_id").write_text(f"{core}\n")
    for name, text in {"proc/meminfo": "MemFree: 1 kB\nMemTotal:       2048 kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


# (package, core) of each logical processor; cpus, sockets, cores per socket, threads per core
TOPOLOGIES: list[tuple[list[tuple[int, int]], tuple[int, int, int, int]]] = [
    ([(0, 0), (0, 1)], (2, 1, 2, 1)),
    ([(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 0), (1, 1), (1, 1)], (8, 2, 2, 2)),
    ([(-1, 0), (-1, 1), (-1, 2)], (3, 1, 3, 1)),
    ([(0, 0), (0, 0), (0, 1)], (3, 1, 2, 0)),
    ([(0, 0), (0, 1), (1, 0)], (3, 2, 0, 1)),
    ([(36, 4), (40, 4)], (2, 2, 1, 1)),
    ([], (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("cpus", "wanted"), TOPOLOGIES)
def test_processors_as_a_scheduler_counts_them(cpus: list[tuple[int, int]], wanted: tuple[int, int, int, int], tmp_path: Path) -> None:
    root = machine_tree(tmp_path, cpus)
    values = probe_machine.act(System(), filled(probe_machine.SPEC, root=root), False).values
    assert (values["cpus"], values["sockets"], values["cores_per_socket"], values["threads_per_core"]) == wanted
    assert values["memory"] == 2048 * 1024


def test_files_of_gpus_in_their_order_and_of_nccl_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"dev/nvidia{name}": "" for name in ("10", "2", "0", "ctl", "-uvm", "0x")}
    root = machine_tree(tmp_path, [], **files, **{"etc/nccl.conf": "A=1\n", "home/ops/.nccl.conf": "A=2\n", "mine": "A=3\n"})
    monkeypatch.setenv("HOME", "/home/ops")
    values = probe_machine.act(System(), filled(probe_machine.SPEC, root=root), False).values
    assert values["gpu_files"] == ["/dev/nvidia0", "/dev/nvidia2", "/dev/nvidia10"]
    assert [file["path"] for file in values["nccl_conf"]] == ["/home/ops/.nccl.conf", "/etc/nccl.conf"]
    monkeypatch.setenv("NCCL_CONF_FILE", "/mine")
    values = probe_machine.act(System(), filled(probe_machine.SPEC, root=root), False).values
    assert values["nccl_conf"] == [{"path": "/mine", "text": "A=3\n"}, {"path": "/etc/nccl.conf", "text": "A=1\n"}]


SLURMD = shutil.which("slurmd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@pytest.mark.skipif(SLURMD is None, reason="needs Slurm as oracle: apt-get install slurmd")
def test_this_machine_as_slurmd_sees_it() -> None:
    """slurmd -C prints the line that it would want for the machine it runs on."""
    line = subprocess.run([str(SLURMD), "-C"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    said = dict(word.split("=", 1) for word in line.split())
    values = probe_machine.act(System(), filled(probe_machine.SPEC), False).values
    assert [values["cpus"], values["sockets"], values["cores_per_socket"], values["threads_per_core"], values["memory"] // 2**20] == [
        int(said[key]) for key in ("CPUs", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore", "RealMemory")
    ]
