"""group: local groups."""

from __future__ import annotations

import grp
from typing import Any, Dict, List

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Local groups present or absent.",
    params={
        "name": Param("str", "group name", required=True),
        "gid": Param("int", "group id"),
        "system": Param("bool", "a system group (only when it is made)", default=False),
        "non_unique": Param("bool", "allow a gid that another group has", default=False),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    returns={"name": "group name", "gid": "group id", "system": "the wish", "state": "the wish"},
    example="- group:\n    name: training\n    gid: 2000\n",
)


def read(system: System, args: Args) -> State:
    try:
        return {"gid": grp.getgrnam(args["name"]).gr_gid}
    except KeyError:
        return {"gid": None}


def diff(args: Args, state: State) -> Change:
    name, gid = args["name"], state["gid"]
    if not name or name.startswith("-") or set(name) & set(":,\n/ \t"):
        raise Failed(f"{name!r} is no group name")
    steps: List[str] = []
    if args["state"] == "absent":
        steps += [f"remove group {name}"] if gid is not None else []
    elif gid is None:
        steps.append(f"make group {name}")
    elif args["gid"] is not None and args["gid"] != gid:
        steps.append(f"change the gid of {name} from {gid} to {args['gid']}")
    return Change(actions=steps)


def write(system: System, args: Args, state: State, change: Change) -> None:
    flags = [] if args["gid"] is None else ["-g", str(args["gid"])]
    flags += ["-o"] if args["non_unique"] and flags else []
    if args["state"] == "absent":
        argv = ["groupdel", args["name"]]
    elif state["gid"] is None:
        argv = ["groupadd", *flags, *(["-r"] if args["system"] else []), args["name"]]
    else:
        argv = ["groupmod", *flags, args["name"]]
    done = system.run(argv)
    if done.rc != 0:
        raise Failed(f"{argv[0]} {args['name']}: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {"name": args["name"], "gid": state["gid"], "system": args["system"], "state": args["state"]}
