"""probe_storage_target: what lies under a path, so that a figure measured there can be read rightly."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, List

from nodectl.agent import as_user, blocks, io_proof
from nodectl.agent.contract import Args, Failed
from nodectl.agent.measured_folder import mount_of
from nodectl.agent.system import Mount, System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Filesystem, device and free space under a path; a path that does not exist yet counts as its nearest parent.",
    params={
        "path": Param("path", "file or folder", required=True),
        "write": Param("bool", "make and remove a small file in the folder", default=False),
        "user": Param("str", "as this account", default=""),
        "timeout": Param("float", "seconds for each answer of the filesystem", default=10.0),
    },
    returns={
        "path": "as asked", "exists": "whether it is there", "target": "mount point", "fstype": "filesystem type", "source": "source", "device": "major:minor",
        "free_bytes": "free for ordinary users", "total_bytes": "size", "is_tmpfs": "memory, not disk", "is_overlay": "an overlay", "is_fuse": "a FUSE mount",
        "kind": "nvme, disk, loop (stands in for a disk), md, device mapper, \"\"", "serial": "of the device", "disks": "names of what is below it",
        "mem_total_bytes": "memory of the node",
        "read_only": "by the mount table", "writable": "a small file was written and synced (null: not tried)", "write_reason": "why not",
    },
    example="- probe_storage_target:\n    path: /scratch\n",
)
_ASK = "import json,os,sys\nv=os.statvfs(sys.argv[1])\nprint(json.dumps([v.f_bavail*v.f_frsize,v.f_blocks*v.f_frsize]))"

# Synced: a full or read-only disk may take the bytes and say so only then.
_TRY = """\
handle, name = tempfile.mkstemp(prefix='.nodectl-probe-', dir=sys.argv[1])
os.unlink(name)
os.write(handle, b'probe' * 1000)
os.fsync(handle)
"""


def act(system: System, args: Args, check: bool) -> Outcome:
    path = os.path.abspath(args["path"])
    live = mount_of(system.mounts(), path)
    if live is None:
        raise Failed(f"no mount holds {path} (is it below a mount point of another namespace?)")
    values: Dict[str, Any] = {
        "path": path, "target": live.target, "fstype": live.fstype, "source": live.source, "device": live.device, "options": live.options,
        "is_tmpfs": live.fstype in ("tmpfs", "ramfs", "devtmpfs"), "is_overlay": live.fstype == "overlay", "is_fuse": live.fstype.startswith("fuse"),
        "mem_total_bytes": io_proof.memory(system), "read_only": "ro" in live.options.split(","), "writable": None, "write_reason": "", **_device(live),
    }
    free, total, exists = _space(system, path, live, args["timeout"])
    if args["write"] and exists and not check:
        values["write_reason"] = _write(system, args, path)
        values["writable"] = not values["write_reason"]
    return Outcome(values=dict(values, free_bytes=free, total_bytes=total, exists=exists))


def _write(system: System, args: Args, path: str) -> str:
    """ "" or why nothing can be written there."""
    try:
        done = system.run(as_user.command(args["user"], _TRY, [path]), timeout=args["timeout"])
    except Failed as failed:
        system.stopper.check()
        return failed.msg
    return "" if done.rc == 0 else as_user.last_line(done.stderr, done.rc)


def _space(system: System, path: str, live: Mount, timeout: float) -> "tuple[int, int, bool]":
    """(free, total, whether the path exists). Asked in a child, which a dead FUSE mount may hang."""
    silent = system.probe(live.target, timeout)
    if silent:
        raise Failed(f"{live.target} ({live.fstype}) does not answer: {silent}")
    done = system.run([sys.executable or "python3", "-I", "-S", "-c", _ASK, live.target], timeout=timeout)
    if done.rc != 0:
        raise Failed(f"{live.target} does not tell its size: {done.stderr.strip()[-200:]}")
    free, total = json.loads(done.stdout)
    return free, total, os.path.exists(path)


def _device(live: Mount) -> Dict[str, Any]:
    folder = os.path.realpath(f"/sys/dev/block/{live.device}")
    if not os.path.isdir(folder):
        return {"kind": "", "serial": "", "disks": []}
    below = _below(folder)
    disk = blocks.describe(live.source, live.device, folder)
    if disk.parent:
        disk = blocks.describe(live.source, live.device, os.path.dirname(folder))
    return {"kind": "loop" if disk.kind == blocks.LOOP else disk.kind, "serial": disk.serial, "disks": below}


def _below(folder: str) -> List[str]:
    """What an array or a logical volume is built of, down to the disks."""
    slaves = os.path.join(folder, "slaves")
    return [one for part in blocks.names(slaves) for one in _below(os.path.realpath(os.path.join(slaves, part)))] or [os.path.basename(folder)]
