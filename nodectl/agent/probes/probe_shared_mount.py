"""probe_shared_mount: does this node see what other nodes write into a file mount that all share? One node writes names, the others look for them."""

from __future__ import annotations

import json
import os
from typing import List

from nodectl.agent import as_user
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

PREFIX = ".nodectl-shared-"
# Seconds that a cache gets to upload what was written (rclone begins after one): who looks too soon remembers that nothing is there.
UPLOADED = 3.0

SPEC = Spec(
    summary="Write a small file into a mount, look for files that other nodes have written there, or remove them; each with a bound.",
    params={
        "path": Param("path", "mount point", required=True),
        "write": Param("str", f"name of a file to write, whose content is its name; begins with {PREFIX}", default=""),
        "look": Param("list", "names of such files that must appear here", default=[]),
        "remove": Param("str", "name of the file to remove", default=""),
        "within": Param("float", "seconds in which they must appear", default=30.0),
        "timeout": Param("float", "seconds for everything else", default=20.0),
    },
    returns={"missing": "names that did not appear here with their content in time"},
    example="- probe_shared_mount:\n    path: /data\n    look: [.nodectl-shared-1a2b-gpu-1]\n",
)
# What a run left behind that was killed is removed by the next one, an hour later: nobody looks for it any more.
_WRITE = """\
folder, name, prefix = sys.argv[1:]
with os.scandir(folder) as found:
    for entry in itertools.islice(found, 10000):
        with contextlib.suppress(OSError):
            if entry.name.startswith(prefix) and time.time() - entry.stat().st_mtime > 3600: os.unlink(entry.path)
with open(os.path.join(folder, name), "x") as file: file.write(name)
"""
_LOOK = """\
folder, until, missing = sys.argv[1], time.monotonic() + float(sys.argv[2]), sys.argv[3:]
def seen(name):
    try:
        with open(os.path.join(folder, name)) as file: return file.read() == name
    except FileNotFoundError: return False
while True:
    missing = [name for name in missing if not seen(name)]
    if not missing or time.monotonic() > until: break
    time.sleep(0.5)
print(json.dumps(missing))
"""
_REMOVE = "with contextlib.suppress(FileNotFoundError): os.unlink(os.path.join(*sys.argv[1:]))\n"


def act(system: System, args: Args, check: bool) -> Outcome:
    """Raises Failed where the mount refuses, or does not answer."""
    path = os.path.normpath(args["path"])
    for name in [args["write"], args["remove"], *args["look"]]:
        if name and (not name.startswith(PREFIX) or "/" in name):
            raise Failed(f"{name!r} is no name of this probe's files: expected {PREFIX} and no slash")
    if args["write"] and not check:
        _run(system, _WRITE, [path, args["write"], PREFIX], args["timeout"])
        system.sleep(UPLOADED)
    missing = json.loads(_run(system, _LOOK, [path, str(args["within"]), *args["look"]], args["within"] + args["timeout"])) if args["look"] else []
    if args["remove"] and not check:
        _run(system, _REMOVE, [path, args["remove"]], args["timeout"])
    return Outcome(values={"missing": missing})


def _run(system: System, program: str, arguments: List[str], timeout: float) -> str:
    done = system.run(as_user.command("", program, arguments), timeout=timeout)
    if done.rc != 0:
        raise Failed(f"{arguments[0]}: {as_user.last_line(done.stderr, done.rc)}")
    return done.stdout
