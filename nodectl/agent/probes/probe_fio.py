"""probe_fio: bandwidth, operations and latency of the disk under a folder, with fio or, without it, in plain Python."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Optional

from nodectl.agent import fio_job, io_proof, rclone_store
from nodectl.agent.contract import Args, Failed
from nodectl.agent.measured_folder import measured_folder, mount_of
from nodectl.agent.sizes import size_of
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Measure a filesystem with fio jobs on a file of its own; never on a raw device.",
    params={
        "path": Param("path", "folder on the filesystem", required=True),
        "rw": Param("str", "kind of access; fsync writes and syncs each request", default="write", choices=fio_job.WAYS),
        "ways": Param("list", "several kinds of access one after the other, instead of rw", default=[], elements="str"),
        "bs": Param("str", "bytes per request in sequence", default="1MiB"),
        "random_bs": Param("str", "bytes per request at random, and per synced write", default="4KiB"),
        "size": Param("str", "bytes per job", default="256MiB"),
        "iodepth": Param("int", "requests in flight per job", default=16),
        "numjobs": Param("int", "jobs at once", default=1),
        "runtime": Param("float", "seconds of measuring, for each kind", default=5.0),
        "ramp_time": Param("float", "seconds before measuring starts", default=0.0),
        "user": Param("str", "measure as this account", default=""),
        "direct": Param("bool", "bypass the page cache where the filesystem lets us", default=True),
        "any_filesystem": Param("bool", "also measure memory (tmpfs) and overlays, which are no disks", default=False),
        "timeout": Param("float", "seconds for everything; not given: for each kind three times the runtime and a minute"),
    },
    returns={
        "bytes_per_second": "bandwidth in B/s", "iops": "operations per second", "latency_s": "completion latency in seconds: p50, p99, p99.9",
        "sync_latency_s": "latency of each fsync in seconds: p50, p99, p99.9; empty for other kinds",
        "bytes": "bytes moved", "seconds": "time measured", "method": "tool and version", "direct": "whether the page cache was bypassed",
        "direct_reason": "why not",
        "proof": "why these bytes did not come from a cache: device (its counters were compared), memory (the file is larger), direct, "
        "store (it counted them), mount (of writes: its cache is what is measured), \"\" for none",
        "proof_text": "what was seen", "fstype": "filesystem type",
        "conditions": "rw, bs, size, iodepth, numjobs, runtime, engine", "notes": "other lines that fio printed", "raw": "fio's JSON",
        "ways": "with ways: the above for each of them, or error; then nothing of it stands beside",
    },
    example="- probe_fio:\n    path: /scratch\n    ways: [write, read, randread, randwrite, fsync]\n    size: 4GiB\n    runtime: 10\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    if check:
        return Outcome(skipped=True, msg="nothing is measured in check mode: it would write")
    info = system.stat(args["path"], follow=True)
    if info is None or not os.path.isdir(args["path"]):
        raise Failed(f"{args['path']} is no folder: the test writes a file of its own below a folder, never to a device")
    wrong = sorted(set(args["ways"]) - set(fio_job.WAYS))
    if wrong:
        raise Failed(f"ways: {', '.join(wrong)} is unknown; expected some of {', '.join(fio_job.WAYS)}")
    jobs = [_job(args, way) for way in args["ways"] or [args["rw"]]]
    timeout = args["timeout"] or len(jobs) * (args["runtime"] * 3 + args["ramp_time"] + 60.0)
    with measured_folder(system, args["path"], 3 * jobs[0].size * args["numjobs"], args["user"], args["any_filesystem"]) as folder:
        if not args["ways"]:
            return Outcome(values=fio_job.measure(system, jobs[0], folder, timeout, args["user"]))
        inside = _Inside(system, folder, args["user"], time.monotonic() + timeout)
        return Outcome(values={"ways": {job.rw: inside.one(job) for job in jobs}})


class _Inside:
    """Several kinds of access in one folder. Where an object store is mounted, files are read that no cache on this node has seen."""

    def __init__(self, system: System, folder: str, user: str, ends: float) -> None:
        self.system = system
        self.folder = folder
        self.user = user
        self.ends = ends
        self.live = mount_of(system.mounts(), folder)
        self.daemon, self.why_not = rclone_store.behind(system, self.live)

    @property
    def timeout(self) -> float:
        """What is left of the time for all kinds together: a slow one may take more of it than a fast one."""
        return max(1.0, self.ends - time.monotonic())

    def one(self, job: fio_job.Job) -> Dict[str, Any]:
        """What one kind gave; its error does not take the other figures away."""
        try:
            if self.daemon is None:
                return fio_job.measure(self.system, job, self.folder, self.timeout, self.user)
            return self.writing(self.daemon, job) if job.writes else self.reading(self.daemon, job)
        except Failed as failed:
            self.system.stopper.check()
            return {"error": failed.msg}

    def writing(self, daemon: rclone_store.Daemon, job: fio_job.Job) -> Dict[str, Any]:
        """As whoever writes sees it: a mount with a cache has the bytes before its store has. What lies in sequence is followed to the store."""
        found = fio_job.measure(self.system, job, self.folder, self.timeout, self.user)
        if job.rw != "write":
            return dict(found, proof="mount", proof_text="what the mount took; when its store has it, the checkpoint of probe_phases says")
        seconds = self.stored(daemon, job)
        return dict(found, proof="store", proof_text=f"the store listed the file with its size {seconds:.1f} s after it was closed")

    def stored(self, daemon: rclone_store.Daemon, job: fio_job.Job) -> float:
        files = {f"data.{number}": (job.size, "") for number in range(job.jobs)}
        return rclone_store.until_durable(self.system, daemon, self.inside(), files, self.timeout)

    def inside(self) -> str:
        return os.path.relpath(self.folder, self.live.target if self.live else "/")

    def reading(self, daemon: rclone_store.Daemon, job: fio_job.Job) -> Dict[str, Any]:
        """A copy that was made within the store, read once."""
        here = self.inside()
        if not os.path.exists(os.path.join(self.folder, "data.0")):
            raise Failed(f"{job.rw} reads what write has written: name write before it")
        rclone_store.copy(self.system, daemon, here, f"{here}/{job.rw}", self.timeout)
        rclone_store.refresh(self.system, daemon, here)
        before = rclone_store.fetched(self.system, daemon)
        # One request at a time: rclone serves a file's requests one after the other, and each at random may be a request to the store.
        cold = job._replace(file=os.path.join(self.folder, job.rw, "data.0"), jobs=1, depth=1 if job.rw == "randread" else job.depth)
        found = fio_job.measure(self.system, cold, self.folder, self.timeout, self.user)
        return dict(found, **_counted(before, rclone_store.fetched(self.system, daemon), found["bytes"]))


def _counted(before: Optional[int], after: Optional[int], read: int) -> Dict[str, Any]:
    """rclone fetches ahead, and whole pieces of a file: what it moved is never less than what was read from the store."""
    if before is None or after is None:
        return {"proof": "", "proof_text": "rclone does not tell how much it fetched"}
    text = f"{after - before} bytes came from the store by rclone's own count, {read} were read"
    return {"proof": "store" if after - before >= io_proof.ENOUGH * read else "", "proof_text": text}


def _job(args: Args, way: str) -> fio_job.Job:
    """Requests in sequence are large, at random small, as given; with one kind alone ``bs`` counts for it whatever it is."""
    name = "bs" if way in ("read", "write") or not args["ways"] else "random_bs"
    block = size_of(name, args[name])
    if args["direct"] and block % 512:
        raise Failed(f"{name} {args[name]} is {block} bytes: direct I/O needs a multiple of the sector size (512), better 4096")
    size = size_of("size", args["size"])
    return fio_job.Job(way, block, size, args["iodepth"], args["numjobs"], args["runtime"], args["ramp_time"], args["direct"])
