"""One fio job in a folder, and the same in plain Python where there is no fio: figures in bytes and seconds, with proof that a disk was measured."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Dict, List, NamedTuple, Tuple

from nodectl.agent import as_user, io_proof
from nodectl.agent.contract import Failed
from nodectl.agent.direct_io import direct_reason
from nodectl.agent.measured_folder import in_child, mount_of, python_method
from nodectl.agent.own_folder import own_folder
from nodectl.agent.processes import Completed
from nodectl.agent.system import System

WAYS = ("read", "write", "randread", "randwrite", "fsync")
# The percentiles that are shown, as fio names them.
_SHARES = (("50.000000", "p50"), ("99.000000", "p99"), ("99.900000", "p99.9"))
_EXEC = "os.execvp(sys.argv[1], sys.argv[1:])"


class Job(NamedTuple):
    """``rw`` is one of WAYS; fsync writes and syncs each request. ``block`` and ``size`` in bytes; ``size`` is per job of ``jobs``.

    ``file`` is an existing one that is read, at most once: the second time some cache would have it.
    """

    rw: str
    block: int
    size: int
    depth: int = 16
    jobs: int = 1
    seconds: float = 5.0
    ramp: float = 0.0
    direct: bool = True
    file: str = ""

    @property
    def writes(self) -> bool:
        return "write" in self.rw or self.rw == "fsync"


def measure(system: System, job: Job, folder: str, timeout: float, user: str = "") -> Dict[str, Any]:
    """bytes_per_second, iops, bytes, seconds, latency_s, sync_latency_s, direct, direct_reason, proof, proof_text, method, conditions, notes, raw.

    Raises Failed when fio, or any of its jobs, had an error.
    """
    table = system.mounts()
    live = mount_of(table, folder)
    before = io_proof.counters(table, folder)
    found = _in_python(system, job, folder, timeout, user) if system.which("fio") is None else _with_fio(system, job, folder, timeout, user)
    said = {
        "direct": found["direct"], "direct_reason": found["direct_reason"], "fstype": live.fstype if live else "", "size": job.size * job.jobs,
        "memory": io_proof.memory(system),
    }
    seen = io_proof.proof(job.writes, found["bytes"], before, io_proof.counters(table, folder), said)
    return dict(found, proof=seen.kind, proof_text=seen.text, fstype=said["fstype"])


def _in_python(system: System, job: Job, folder: str, timeout: float, user: str) -> Dict[str, Any]:
    order = {
        "what": "transfer", "folder": folder, "rw": job.rw, "bs": job.block, "size": job.size, "runtime": job.seconds, "direct": job.direct, "file": job.file,
    }
    found = in_child(system, user, order, timeout)
    method = f"{python_method()}, fio is not installed (one request at a time: below what fio with a queue shows)"
    return dict(found, method=method, conditions=_conditions(job, "one request at a time", 1, 1), notes=[], raw="")


def _with_fio(system: System, job: Job, folder: str, timeout: float, user: str) -> Dict[str, Any]:
    reason = "each write is synced instead" if job.rw == "fsync" else direct_reason_as(system, folder, user) if job.direct else "not asked for"
    engine = "psync" if reason else "libaio"
    depth = job.depth if engine == "libaio" else 1
    with own_folder() as output:
        if user:
            shutil.chown(output, user)
        path = os.path.join(output, "fio.json")
        argv = [*command(job, folder, engine, depth, not reason), f"--output={path}"]
        done = _run(system, job, as_user.command(user, _EXEC, argv), timeout)
        text = (system.read(path) or b"").decode("utf-8", "replace")
    if not text and done.rc != 0:
        raise Failed(f"fio failed: {as_user.last_line(done.stderr or done.stdout, done.rc)}", rc=done.rc)
    data, notes = cut_json(text or done.stdout)
    notes += [line for line in done.stderr.splitlines() if line.strip()]
    values = judge_fio(data, job.rw, done.rc, notes)
    raw = json.dumps(data, sort_keys=True)
    return dict(values, direct=not reason, direct_reason=reason, conditions=_conditions(job, engine, depth, job.jobs), notes=notes[:20], raw=raw)


def _run(system: System, job: Job, argv: List[str], timeout: float) -> Completed:
    try:
        return system.run(argv, timeout=timeout)
    except Failed as failed:
        system.stopper.check()
        late = "did not end" in failed.msg
        raise Failed(f"fio ({job.rw}) did not end within {timeout:.0f} s: the storage is far too slow, or hangs" if late else failed.msg) from None


def direct_reason_as(system: System, folder: str, user: str) -> str:
    """Why files in ``folder`` cannot be read and written with O_DIRECT, "" when they can; tried by ``user``."""
    if not user:
        return direct_reason(folder)
    return str(in_child(system, user, {"what": "direct", "folder": folder}, 30.0)["reason"])


def _conditions(job: Job, engine: str, depth: int, jobs: int) -> Dict[str, Any]:
    return {
        "rw": job.rw, "bs": job.block, "size": job.size, "iodepth": depth, "numjobs": jobs, "runtime": job.seconds, "engine": engine, "ramp_time": job.ramp,
    }


def command(job: Job, folder: str, engine: str, depth: int, direct: bool) -> List[str]:
    """All jobs of one folder share a file, so that it is laid out once.

    Times are whole milliseconds: of "0.5s" fio takes the 0, which is no limit at all. Without fallocate: what is reserved and was never
    written is read as zeros, and no disk is asked for them.
    """
    where = [f"--filename={job.file}", "--readonly"] if job.file else [f"--directory={folder}", "--filename_format=data.$jobnum"]
    argv = [
        "fio", "--name=nodectl", *where, f"--rw={'write' if job.rw == 'fsync' else job.rw}", f"--bs={job.block}", f"--size={job.size}",
        f"--iodepth={depth}", f"--numjobs={job.jobs}", f"--ioengine={engine}", f"--direct={int(direct)}", "--group_reporting=1", "--refill_buffers=1",
        "--invalidate=1", "--fallocate=none", "--eta=never", "--output-format=json", "--thread=1",
    ]
    argv += [f"--runtime={round(job.seconds * 1000)}ms", *([] if job.file else ["--time_based=1"])]
    argv += [f"--ramp_time={round(job.ramp * 1000)}ms"] if job.ramp else []
    return argv + (["--fsync=1"] if job.rw == "fsync" else ["--end_fsync=1"] if job.writes else [])


def cut_json(text: str) -> Tuple[Dict[str, Any], List[str]]:
    """(the JSON object within ``text``, the other lines): fio prints notes and errors before and after it. Raises Failed without one."""
    start = text.find("{")
    while start >= 0:
        try:
            data, length = json.JSONDecoder().raw_decode(text[start:])
        except ValueError:
            start = text.find("{", start + 1)
            continue
        rest = text[:start] + "\n" + text[start + length :]
        return data, [line for line in rest.splitlines() if line.strip()]
    raise Failed(f"fio gave no JSON: {text.strip()[-300:] or 'no output'}")


def judge_fio(data: Dict[str, Any], rw: str, rc: int, notes: List[str]) -> Dict[str, Any]:
    """Figures from bytes only (fio's `bw` is KiB/s). Raises Failed when fio or any of its jobs had an error."""
    jobs = data.get("jobs") or []
    errors = sorted({int(job.get("error", 0)) for job in jobs} - {0})
    if rc != 0 or errors or not jobs:
        why = ", ".join(f"{os.strerror(number)} (error {number})" for number in errors) or "; ".join(notes[-3:]) or f"exit code {rc}"
        raise Failed(f"fio failed: {why}", rc=rc, notes=notes[:20])
    side = [job["write" if "write" in rw or rw == "fsync" else "read"] for job in jobs]
    seconds = max(float(part.get("runtime", 0)) for part in side) / 1000.0
    moved = sum(int(part.get("io_bytes", 0)) for part in side)
    if not moved or not seconds:
        raise Failed("fio moved no data: nothing was measured", notes=notes[:20])
    return {
        "bytes_per_second": sum(float(part["bw_bytes"]) for part in side) if all("bw_bytes" in part for part in side) else moved / seconds,
        "iops": sum(float(part.get("iops", 0.0)) for part in side), "bytes": moved, "seconds": seconds,
        "latency_s": _percentiles(side[0].get("clat_ns")), "sync_latency_s": _percentiles((jobs[0].get("sync") or {}).get("lat_ns")),
        "method": str(data.get("fio version", "fio")),
    }


def _percentiles(part: Any) -> Dict[str, float]:
    """In seconds; older versions name the unit otherwise, and absent ones stay absent."""
    found = (part or {}).get("percentile") or {}
    return {name: float(found[key]) / 1e9 for key, name in _SHARES if key in found}
