"""probe_object_mount: is an object store really mounted here, does it answer, and can the account that trains use it?"""

from __future__ import annotations

import os
import secrets
from typing import Any, Dict, Optional

from nodectl.agent import as_user, rclone_rc, rclone_store, units
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import Mount, System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="An object store's mount: in the mount table with the right type, answering in time, readable and writable by the account that trains.",
    params={
        "path": Param("path", "mount point", required=True),
        "user": Param("str", "list and write as this account", default=""),
        "write": Param("bool", "write, read back and delete a small file", default=True),
        "require": Param("bool", "fail the step when anything is wrong", default=False),
        "fstype": Param("str", "expected type, or the start of it", default="fuse"),
        "unit": Param("str", "the systemd unit that holds the mount", default=""),
        "url": Param("str", "address of rclone's control interface", default=""),
        "env_file": Param("path", "file with RCLONE_RC_USER and RCLONE_RC_PASS", default=""),
        "store": Param("bool", "ask the store itself instead, past the mount, which is left alone: it may hang; only root can", default=False),
        "timeout": Param("float", "seconds for each answer", default=20.0),
    },
    returns={
        "mounted": "in the mount table with the expected type", "answers": "a listing came in time", "usable": "the account could do all that was asked",
        "written": "the small file came back byte for byte (null: not tried)", "reason": "what is wrong, \"\" when nothing",
        "fstype": "type", "source": "source", "store": "what the store says when it is asked past the mount, \"\" when it answers or was not asked",
        "store_answers": "the store answered past the mount (null: not asked, or it cannot be asked from here)",
        "unit_state": "of the unit", "stats": "of rclone's cache", "hidden_entries": "entries in the bare folder while nothing is mounted",
    },
    example="- probe_object_mount:\n    path: /data\n    user: ops\n",
)
_LIST = "import itertools\nwith os.scandir(sys.argv[1]) as found: print(sum(1 for _ in itertools.islice(found, 1000)))\n"
_WRITE = """\
path, data = sys.argv[1], sys.argv[2].encode()
try:
    with open(path, "xb") as handle: handle.write(data)
    with open(path, "rb") as handle: back = handle.read()
finally:
    if os.path.exists(path): os.unlink(path)
if back != data: sys.exit("what was read back is not what was written")
"""


def act(system: System, args: Args, check: bool) -> Outcome:
    real = os.path.realpath(args["path"]) if args["path"] == "/" else os.path.normpath(args["path"])
    found = [m for m in system.mounts() if m.target == real]
    live = found[-1] if found else None
    values: Dict[str, Any] = {
        "mounted": False, "answers": False, "usable": False, "written": None, "fstype": live.fstype if live else "", "source": live.source if live else "",
        "unit_state": "", "stats": None, "hidden_entries": 0, "store": "", "store_answers": None,
    }
    values["reason"] = _store(system, args, real, values) if args["store"] else _look(system, args, real, live, values, check)
    _unit_and_stats(system, args, values)
    if values["reason"] and args["require"]:
        raise Failed(f"{args['path']}: {values['reason']}{units.last_lines(system, args['unit'])}", **values)
    return Outcome(values=values, msg=values["reason"])


def _look(system: System, args: Args, real: str, live: Optional[Mount], values: Dict[str, Any], check: bool) -> str:
    """What is wrong first, "" when nothing is; fills ``values`` as far as it comes."""
    if live is None:
        values["hidden_entries"] = _entries(real)
        rest = f"; the bare folder holds {values['hidden_entries']} entries that were written beside the store" if values["hidden_entries"] else ""
        return f"nothing is mounted on {args['path']}{rest}"
    if not live.fstype.startswith(args["fstype"]):
        return f"{live.fstype} is mounted on {args['path']}, not {args['fstype']}"
    values["mounted"] = True
    silent = system.probe(real, args["timeout"])
    if silent:
        return f"the mount does not answer: {silent}"
    values["answers"] = True
    refused = _try(system, args, _LIST, [real])
    if refused:
        return _who(args, live, refused)
    if args["write"] and not check:
        refused = _try(system, args, _WRITE, [os.path.join(real, f".nodectl-probe-{secrets.token_hex(6)}"), secrets.token_hex(64)])
        values["written"] = not refused
        if refused:
            return f"the account {args['user'] or 'of this login'} can list {args['path']} but not write, read and delete a file there: {refused}"
    values["usable"] = True
    return ""


def _store(system: System, args: Args, real: str, values: Dict[str, Any]) -> str:
    try:
        values["store"] = rclone_store.trouble(system, rclone_store.find(real), args["timeout"])
        values["store_answers"] = not values["store"]
    except Failed as failed:
        values["store"] = failed.msg
    return str(values["store"])


def _entries(path: str) -> int:
    try:
        return len(os.listdir(path))
    except OSError:
        return 0


def _try(system: System, args: Args, program: str, arguments: "list[str]") -> str:
    try:
        done = system.run(as_user.command(args["user"], program, arguments), timeout=args["timeout"])
    except Failed as failed:
        system.stopper.check()
        return failed.msg
    return "" if done.rc == 0 else as_user.last_line(done.stderr, done.rc)


def _who(args: Args, live: Mount, refused: str) -> str:
    """Root saw the mount; the account does not: which of the usual reasons is it?"""
    shared = "allow_other" in live.options
    hint = "" if shared else "; the mount lacks allow_other: only the account that mounted it may look (user_allow_other in /etc/fuse.conf, --allow-other)"
    return f"{args['user'] or 'this login'} cannot list {args['path']}: {refused}{hint}"


def _unit_and_stats(system: System, args: Args, values: Dict[str, Any]) -> None:
    try:
        if args["unit"]:
            now = units.show(system, units.full_name(args["unit"]))
            values["unit_state"] = f"{now['ActiveState']}/{now['SubState']}"
        if args["url"]:
            values["stats"] = rclone_rc.cache_stats(system, args["url"], args["env_file"], args["timeout"])
    except Failed as failed:
        system.stopper.check()
        values["reason"] = values["reason"] or failed.msg
