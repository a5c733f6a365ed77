"""probe_mounts: is everything mounted that fstab says, does it answer, and may the user write there?"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from nodectl.agent import as_user, fstab, fstab_file
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import Mount, System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Compare fstab with the mount table; each mount must answer within a deadline.",
    params={
        "paths": Param("list", "only these mount points; they need not be in fstab", default=[], elements="str"),
        "user": Param("str", "try writing as this account", default=""),
        "timeout": Param("float", "seconds for each mount", default=5.0),
        "fstab": Param("path", "another file than /etc/fstab", default=fstab.PATH),
    },
    returns={
        "mounts": "per mount point: path, in_fstab, wanted_fstype, present, fstype, source, options, answers, writable (null: not tried), reason",
        "all_present": "whether all of them are mounted",
    },
    example="- probe_mounts:\n    paths: [/scratch]\n    user: ops\n",
)
_TRY = "import os, tempfile\nhandle, name = tempfile.mkstemp(prefix='.nodectl-probe-', dir=sys.argv[1])\nos.unlink(name)\nos.write(handle, b'probe')\n"
_LATER = ("noauto", "x-systemd.automount")  # these are not expected to be mounted all the time


def act(system: System, args: Args, check: bool) -> Outcome:
    entries = {os.path.normpath(e.point): e for e in _entries(fstab_file.load(system, args["fstab"]))}
    points = [os.path.normpath(path) for path in args["paths"]] or [p for p, e in entries.items() if not set(e.opts.split(",")) & set(_LATER)]
    table = {mount.target: mount for mount in system.mounts()}
    found = [_one(system, args, point, entries.get(point), table.get(os.path.realpath(point)), check) for point in points]
    return Outcome(values={"mounts": found, "all_present": all(m["present"] for m in found)})


def _entries(text: str) -> List[fstab.Entry]:
    parsed = (fstab.parse(line) for line in text.splitlines())
    return [entry for entry in parsed if entry is not None and fstab.is_point(entry.point)]


def _one(system: System, args: Args, point: str, entry: Optional[fstab.Entry], live: Optional[Mount], check: bool) -> Dict[str, Any]:
    facts: Dict[str, Any] = {
        "path": point, "in_fstab": entry is not None, "wanted_fstype": entry.fstype if entry else "", "present": live is not None,
        "fstype": live.fstype if live else "", "source": live.source if live else "", "options": live.options if live else "",
        "answers": False, "writable": None, "reason": "" if live else f"nothing is mounted on {point}",
    }
    if live is None:
        return facts
    facts["reason"] = system.probe(point, args["timeout"])
    facts["answers"] = not facts["reason"]
    if facts["answers"] and args["user"] and not check:
        facts["reason"] = _write(system, args, point)
        facts["writable"] = not facts["reason"]
    return facts


def _write(system: System, args: Args, point: str) -> str:
    """ "" or why the user cannot write there."""
    try:
        done = system.run(as_user.command(args["user"], _TRY, [point]), timeout=args["timeout"])
    except Failed as failed:
        system.stopper.check()
        return failed.msg
    return "" if done.rc == 0 else f"{args['user']} cannot write: {as_user.last_line(done.stderr, done.rc)}"
