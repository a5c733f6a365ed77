"""probe_fio: bandwidth, operations and latency of the disk under a folder, with fio or, without it, in plain Python."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any, Dict, List, Tuple

from nodectl.agent.contract import Args, Failed
from nodectl.agent.direct_io import direct_reason
from nodectl.agent.measured_folder import in_child, measured_folder, python_method
from nodectl.agent.sizes import size_of
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Measure a filesystem with one fio job on a file of its own; never on a raw device.",
    params={
        "path": Param("path", "folder on the filesystem", required=True),
        "rw": Param("str", "kind of access", default="write", choices=("read", "write", "randread", "randwrite")),
        "bs": Param("str", "bytes per request", default="1MiB"),
        "size": Param("str", "bytes per job", default="256MiB"),
        "iodepth": Param("int", "requests in flight per job", default=16),
        "numjobs": Param("int", "jobs at once", default=1),
        "runtime": Param("float", "seconds of measuring", default=5.0),
        "ramp_time": Param("float", "seconds before measuring starts", default=0.0),
        "direct": Param("bool", "bypass the page cache where the filesystem lets us", default=True),
        "timeout": Param("float", "seconds for everything; not given: three times the runtime and a minute"),
    },
    returns={
        "bytes_per_second": "bandwidth in B/s", "iops": "operations per second", "latency_s": "completion latency in seconds: p50, p99, p99.9",
        "bytes": "bytes moved", "seconds": "time measured", "method": "tool and version", "direct": "whether the page cache was bypassed",
        "direct_reason": "why not",
        "conditions": "rw, bs, size, iodepth, numjobs, runtime, engine", "notes": "other lines that fio printed",
    },
    example="- probe_fio:\n    path: /scratch\n    rw: write\n    bs: 1MiB\n    size: 4GiB\n    runtime: 10\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    if check:
        return Outcome(skipped=True, msg="nothing is measured in check mode: it would write")
    info = system.stat(args["path"], follow=True)
    if info is None or not os.path.isdir(args["path"]):
        raise Failed(f"{args['path']} is no folder: the test writes a file of its own below a folder, never to a device")
    size, block = size_of("size", args["size"]), size_of("bs", args["bs"])
    if args["direct"] and block % 512:
        raise Failed(f"bs {args['bs']} is {block} bytes: direct I/O needs a multiple of the sector size (512), better 4096")
    timeout = args["timeout"] or args["runtime"] * 3 + args["ramp_time"] + 60.0
    with measured_folder(system, args["path"], size * args["numjobs"]) as folder:
        if system.which("fio") is None:
            values = _in_python(system, args, folder, size, block, timeout)
        else:
            values = _with_fio(system, args, folder, size, block, timeout)
    return Outcome(values=values)


def _in_python(system: System, args: Args, folder: str, size: int, block: int, timeout: float) -> Dict[str, Any]:
    order = {"what": "transfer", "folder": folder, "rw": args["rw"], "bs": block, "size": size, "runtime": args["runtime"], "direct": args["direct"]}
    found = in_child(system, "", order, timeout)
    conditions = {"rw": args["rw"], "bs": block, "size": size, "iodepth": 1, "numjobs": 1, "runtime": args["runtime"], "engine": "one request at a time"}
    method = f"{python_method()}, fio is not installed (one request at a time: below what fio with a queue shows)"
    return dict(found, method=method, conditions=conditions, notes=[])


def _with_fio(system: System, args: Args, folder: str, size: int, block: int, timeout: float) -> Dict[str, Any]:
    reason = direct_reason(folder) if args["direct"] else "not asked for"
    engine = "psync" if reason else "libaio"
    depth = args["iodepth"] if engine == "libaio" else 1
    output = tempfile.mkdtemp(prefix="nodectl-fio-")
    try:
        argv = [*_command(args, folder, size, block, engine, depth, not reason), f"--output={os.path.join(output, 'fio.json')}"]
        done = system.run(argv, timeout=timeout)
        text = (system.read(os.path.join(output, "fio.json")) or b"").decode("utf-8", "replace")
    finally:
        shutil.rmtree(output, ignore_errors=True)
    data, notes = cut_json(text or done.stdout)
    notes += [line for line in done.stderr.splitlines() if line.strip()]
    values = judge_fio(data, args["rw"], done.rc, notes)
    conditions = {
        "rw": args["rw"], "bs": block, "size": size, "iodepth": depth, "numjobs": args["numjobs"], "runtime": args["runtime"], "engine": engine,
        "ramp_time": args["ramp_time"],
    }
    return dict(values, direct=not reason, direct_reason=reason, conditions=conditions, notes=notes[:20])


def _command(args: Args, folder: str, size: int, block: int, engine: str, depth: int, direct: bool) -> List[str]:
    argv = [
        "fio", "--name=nodectl", f"--directory={folder}", f"--rw={args['rw']}", f"--bs={block}", f"--size={size}", f"--iodepth={depth}",
        f"--numjobs={args['numjobs']}", f"--ioengine={engine}", f"--direct={int(direct)}", "--time_based=1", f"--runtime={args['runtime']:g}s",
        "--group_reporting=1", "--refill_buffers=1", "--invalidate=1", "--eta=never", "--output-format=json", "--thread=1",
    ]
    argv += [f"--ramp_time={args['ramp_time']:g}s"] if args["ramp_time"] else []
    return argv + (["--end_fsync=1"] if "write" in args["rw"] else [])


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
    side = [job["write" if "write" in rw else "read"] for job in jobs]
    seconds = max(float(part.get("runtime", 0)) for part in side) / 1000.0
    moved = sum(int(part.get("io_bytes", 0)) for part in side)
    if not moved or not seconds:
        raise Failed("fio moved no data: nothing was measured", notes=notes[:20])
    return {
        "bytes_per_second": sum(float(part["bw_bytes"]) for part in side) if all("bw_bytes" in part for part in side) else moved / seconds,
        "iops": sum(float(part.get("iops", 0.0)) for part in side), "bytes": moved, "seconds": seconds, "latency_s": _latency(side[0]),
        "method": str(data.get("fio version", "fio")),
    }


def _latency(part: Dict[str, Any]) -> Dict[str, float]:
    """Percentiles in seconds; older versions name the unit otherwise, and absent ones stay absent."""
    found = (part.get("clat_ns") or {}).get("percentile") or {}
    names = (("50.000000", "p50"), ("99.000000", "p99"), ("99.900000", "p99.9"))
    return {name: float(found[key]) / 1e9 for key, name in names if key in found}
