"""Access control lists of files."""

from __future__ import annotations

import os
from typing import List, NamedTuple, Optional

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

# A tree of a million files takes setfacl under a minute.
LIMIT = 3600.0
TYPES = {"u": "user", "g": "group", "m": "mask", "o": "other"}

SPEC = Spec(
    summary="Set, remove or read an entry of a file's access control list",
    params={
        "path": Param("path", required=True, aliases=("name",), help="the file or folder"),
        "state": Param(default="query", choices=("absent", "present", "query"), help="set, remove or read"),
        "etype": Param(choices=("group", "mask", "other", "user"), help="whom the entry is for"),
        "entity": Param(default="", help="which user or group"),
        "permissions": Param(help="letters of rwxX"),
        "entry": Param(help="all three in one: user:joe:rw, with default: before it for a folder's default"),
        "default": Param("bool", default=False, help="the folder's default for what is made in it"),
        "recursive": Param("bool", default=False, aliases=("recurse",), help="for everything below too"),
        "recalculate_mask": Param(default="default", choices=("default", "mask", "no_mask"), help="whether the mask is worked out anew"),
        "follow": Param("bool", default=True, help="follow links"),
    },
    returns={"acl": "the list, as getfacl shows it", "msg": "what was done"},
    example="- acl: {path: /scratch/shared, etype: group, entity: users, permissions: rwx, default: true, state: present}\n",
)


class _Entry(NamedTuple):
    text: str
    default: bool


def read(system: System, args: Args) -> State:
    path = os.path.expanduser(args["path"])
    if system.stat(path, follow=True) is None:
        raise Failed("Path not found or not accessible.")
    entry = _entry(args)
    state: State = {"path": path, "entry": entry.text if entry else "", "changes": []}
    if entry is not None:
        state["argv"] = _argv(args, path, entry)
        tried = _run(system, [state["argv"][0], "--test", *state["argv"][1:]])
        state["changes"] = [line for line in tried if not line.endswith("*,*")]
    state["acl"] = _run(system, ["getfacl", *(["-d"] if entry and entry.default else []), "--absolute-names", "--omit-header", *_walk(args), path])
    return state


def _entry(args: Args) -> Optional[_Entry]:
    """The entry that is wished; None for a question. Raises Failed for what does not fit together."""
    if args["state"] == "query":
        wrong = [name for name in ("recursive", "entry") if args[name]] + ["recalculate_mask"] * (args["recalculate_mask"] != "default")
        if wrong:
            raise Failed(f"'{wrong[0]}' MUST NOT be set when 'state=query'.")
        return None
    if args["entry"]:
        return _written(args)
    if not args["etype"]:
        raise Failed(f"'etype' MUST be set when 'state={args['state']}'.")
    if args["state"] == "absent" and (args["permissions"] or not args["entity"]):
        raise Failed("'permissions' MUST NOT be set when 'state=absent'." if args["permissions"] else "'entity' MUST be set when 'state=absent'.")
    return _Entry(_joined(args["etype"], args["entity"], args["permissions"] if args["state"] == "present" else None), args["default"])


def _written(args: Args) -> _Entry:
    if args["etype"] or args["entity"] or args["permissions"]:
        raise Failed("'entry' MUST NOT be set when 'entity', 'etype' or 'permissions' are set.")
    parts = args["entry"].split(":")
    default = parts[0].lower().startswith("d")
    parts = parts[1:] if default else parts
    present = args["state"] == "present"
    if len(parts) != (3 if present else 2) or parts[0][:1].lower() not in TYPES:
        wanted = "user:NAME:PERMISSIONS" if present else "user:NAME"
        raise Failed(f"entry is to be like {wanted}, perhaps with default: before it, not {args['entry']!r}")
    return _Entry(_joined(TYPES[parts[0][0].lower()], parts[1], parts[2] if present else None), default or args["default"])


def _joined(etype: str, entity: str, permissions: Optional[str]) -> str:
    return f"{etype}:{entity}:{permissions}" if permissions else f"{etype}:{entity}"


def _argv(args: Args, path: str, entry: _Entry) -> List[str]:
    mask = {"mask": ["--mask"], "no_mask": ["--no-mask"]}.get(args["recalculate_mask"], [])
    what = ["-m" if args["state"] == "present" else "-x", entry.text]
    return ["setfacl", *(["-d"] if entry.default else []), *what, *_walk(args), *mask, path]


def _walk(args: Args) -> List[str]:
    return [*(["--recursive"] if args["recursive"] else []), *([] if args["follow"] else ["--physical"])]


def _run(system: System, argv: List[str]) -> List[str]:
    done = system.run(argv, timeout=LIMIT)
    if done.rc != 0:
        raise Failed((done.stderr or done.stdout).strip() or f"{argv[0]} ended with {done.rc}", rc=done.rc, cmd=argv)
    lines = [line.strip() for line in done.stdout.splitlines() if not line.startswith("#")]
    return lines[:-1] if lines and not lines[-1] else lines


def diff(args: Args, state: State) -> Change:
    if not state["changes"]:
        return Change()
    action = f"{'set' if args['state'] == 'present' else 'remove'} {state['entry']} of {state['path']}"
    return Change([action], "".join(f"{line}\n" for line in state["acl"]), "".join(f"{line}\n" for line in state["changes"]), state["path"], state["path"])


def write(system: System, args: Args, state: State, change: Change) -> None:
    _run(system, state["argv"])


def values(args: Args, state: State, change: Change) -> Args:
    return {"acl": state["acl"]}
