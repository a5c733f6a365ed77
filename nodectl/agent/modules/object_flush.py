"""object_flush: wait until everything that was written through an object store's mount is in the store."""

from __future__ import annotations

import json
import time
from typing import Any, Dict

from nodectl.agent import rclone_rc
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Wait, within a deadline, until a mount has nothing queued, uploading or failed; a restart before that would leave data on the node.",
    params={
        "path": Param("path", "mount point of the role object_cache, whatever its client"),
        "url": Param("str", "of any other rclone mount: address of its control interface on this node"),
        "env_file": Param("path", "file of mode 0600 with RCLONE_RC_USER and RCLONE_RC_PASS", default=""),
        "timeout": Param("float", "seconds to wait", default=300.0),
        "interval": Param("float", "seconds between two looks", default=1.0),
    },
    required_one_of=(("path", "url"),),
    mutually_exclusive=(("path", "url"),),
    returns={
        "files": "names of what is left, 20 at most", "count": "how many are left", "waited": "seconds",
        "queued": "with url: files that wait", "uploading": "with url: files under way", "errored": "with url: files that failed",
        "dirty": "with url: files not uploaded by the cache's records",
    },
    example="- object_flush:\n    path: /ckpt\n    timeout: 600\n",
)
ANSWER_SECONDS = 10.0
# The program looks into every process for open files, and asks the client: 10 s at the most for one that is slow, with room.
LOOK_SECONDS = 30.0
# An upload ends before the next file of the queue is taken: nothing must be left in two looks in a row.
LOOKS = 2
# What the role object_cache brought; it knows each client, and the units use it too.
PROGRAM = "/usr/local/lib/nodectl/object-mount"


def act(system: System, args: Args, check: bool) -> Outcome:
    if check and args["path"] and system.stat(PROGRAM, follow=True) is None:
        return Outcome(msg=f"there is no {PROGRAM} yet: what is left cannot be known in check mode")
    began = time.monotonic()
    quiet = 0
    while True:
        left = _by_path(system, args["path"]) if args["path"] else _by_url(system, args)
        values = dict(left, waited=round(time.monotonic() - began, 1))
        quiet = quiet + 1 if not left["count"] else 0
        if quiet >= LOOKS or check:
            return Outcome(values=values, msg="" if quiet else f"{_said(left)} (check mode does not wait)")
        if values["waited"] >= args["timeout"]:
            raise Failed(
                f"not everything is in the object store after {values['waited']:g} s: {_said(left)}. The mount was left as it is; its cache holds the data. "
                "Look at its journal for the reason, and do not stop it or remove its cache", **values,
            )
        if left["count"]:
            system.progress(f"waiting for uploads: {_said(left)}")
        system.sleep(args["interval"])


def _by_path(system: System, path: str) -> Dict[str, Any]:
    done = system.run(["/usr/bin/python3", "-I", PROGRAM, "left", path], timeout=LOOK_SECONDS)
    try:
        found = json.loads(done.stdout)
        trouble, left = str(found["trouble"]), {"files": [str(name) for name in found["files"]], "count": int(found["count"])}
    except (ValueError, KeyError, TypeError):
        raise Failed(f"{PROGRAM} did not tell what is left of {path}: {done.stderr.strip()[-300:] or done.stdout[-300:]}") from None
    if trouble:
        raise Failed(f"it cannot be known what of {path} is not in the object store: {trouble}")
    return left


def _by_url(system: System, args: Args) -> Dict[str, Any]:
    stats = rclone_rc.cache_stats(system, args["url"], args["env_file"], ANSWER_SECONDS)
    left = {key: stats[key] for key in ("queued", "uploading", "errored", "dirty")}
    return dict(left, bytes=stats["bytes"], out_of_space=stats["out_of_space"], files=[], count=sum(left.values()))


def _said(left: Dict[str, Any]) -> str:
    if "queued" in left:
        return f"{left['queued']} queued, {left['uploading']} uploading, {left['errored']} with errors, {left['dirty']} not uploaded by the cache's records"
    more = [f"and {left['count'] - len(left['files'])} more"] if left["count"] > len(left["files"]) else []
    return f"{left['count']} files are left: {', '.join([*left['files'], *more])}"
