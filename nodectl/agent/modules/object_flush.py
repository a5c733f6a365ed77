"""object_flush: wait until everything that was written through an rclone mount is in the object store."""

from __future__ import annotations

import time

from nodectl.agent import rclone_rc
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Wait, within a deadline, until an rclone mount has nothing queued, uploading or failed; a restart before that would leave data on the node.",
    params={
        "url": Param("str", "address of rclone's control interface on this node", required=True),
        "env_file": Param("path", "file of mode 0600 with RCLONE_RC_USER and RCLONE_RC_PASS", default=""),
        "timeout": Param("float", "seconds to wait", default=300.0),
        "interval": Param("float", "seconds between two looks", default=1.0),
    },
    returns={
        "queued": "files that wait", "uploading": "files under way", "errored": "files that failed",
        "dirty": "files not uploaded by the cache's records", "waited": "seconds",
    },
    example="- object_flush:\n    url: http://127.0.0.1:5572\n    env_file: /etc/nodectl/object-cache/data.env\n    timeout: 600\n",
)
ANSWER_SECONDS = 10.0
# An upload ends before the next file of the queue is taken: nothing must be left in two looks in a row.
LOOKS = 2


def act(system: System, args: Args, check: bool) -> Outcome:
    began = time.monotonic()
    quiet = 0
    while True:
        left = rclone_rc.cache_stats(system, args["url"], args["env_file"], ANSWER_SECONDS)
        waited = round(time.monotonic() - began, 1)
        quiet = quiet + 1 if not any(left[key] for key in ("queued", "uploading", "errored", "dirty")) else 0
        if quiet >= LOOKS or check:
            return Outcome(values=dict(left, waited=waited), msg="" if quiet else f"{_said(left)} (check mode does not wait)")
        if waited >= args["timeout"]:
            raise Failed(
                f"not everything is in the object store after {waited:g} s: {_said(left)}. The mount was left as it is; its cache holds the data. "
                "Look at its journal for the reason, and do not stop it or remove its cache", **dict(left, waited=waited),
            )
        system.progress(f"waiting for uploads: {_said(left)}")
        system.sleep(args["interval"])


def _said(left: "dict[str, int]") -> str:
    return f"{left['queued']} queued, {left['uploading']} uploading, {left['errored']} with errors, {left['dirty']} not uploaded by the cache's records"
