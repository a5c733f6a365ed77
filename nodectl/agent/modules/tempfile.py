"""A temporary file or folder of its own name."""

from __future__ import annotations

import os
import tempfile

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Make a temporary file or folder that only its owner can read",
    params={
        "state": Param(default="file", choices=("file", "directory"), help="which of the two"),
        "path": Param("path", help="the folder to make it in; without it, the node's own for such files"),
        "prefix": Param(default="ansible.", help="how the name begins"),
        "suffix": Param(default="", help="how the name ends"),
    },
    returns={"path": "what was made"},
    example="- tempfile: {state: directory, suffix: build}\n  register: scratch\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    for name in ("prefix", "suffix"):
        if args[name] != os.path.basename(args[name]):
            raise Failed(f"{name} must be a valid file name component, got {args[name]!r}")
    if check:
        return Outcome(skipped=True, msg="the name is only known once it is made: skipped in check mode")
    folder = os.path.expanduser(args["path"]) if args["path"] else None
    if args["state"] == "directory":
        return Outcome(changed=True, values={"path": tempfile.mkdtemp(args["suffix"], args["prefix"], folder)})
    handle, path = tempfile.mkstemp(args["suffix"], args["prefix"], folder)
    os.close(handle)
    return Outcome(changed=True, values={"path": path})
