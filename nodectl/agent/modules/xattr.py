"""Extended attributes of a file."""

from __future__ import annotations

import errno
import os
from typing import Dict, Optional

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Set, remove or read an extended attribute",
    params={
        "path": Param("path", required=True, aliases=("name",), help="the file or folder"),
        "namespace": Param(default="user", help="user, trusted, security"),
        "key": Param(help="the attribute, without its namespace"),
        "value": Param(help="its value"),
        "state": Param(default="read", choices=("absent", "all", "keys", "present", "read"), help="read one, all, all keys; or set, or remove"),
        "follow": Param("bool", default=True, help="where path is a link, mean what it points to"),
    },
    required_if=(("state", "present", ("key", "value")), ("state", "absent", ("key",))),
    returns={"xattr": "name to value, as it was before a change"},
    example="- xattr: {path: /scratch/set, key: dataset, value: v3, state: present}\n",
)


def read(system: System, args: Args) -> State:
    path = os.path.expanduser(args["path"])
    if system.stat(path, follow=True) is None:
        raise Failed("path not found or not accessible!")
    key = args["key"]
    if key is not None and args["namespace"] and not (args["namespace"] == "user" and key.startswith("user.")):
        key = f"{args['namespace']}.{key}"
    return {"path": path, "key": key, "there": _there(path, args["follow"])}


def _there(path: str, follow: bool) -> Dict[str, str]:
    try:
        names = os.listxattr(path, follow_symlinks=follow)
        return {name: _text(os.getxattr(path, name, follow_symlinks=follow)) for name in names}
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise Failed(f"cannot read the attributes of {path}: {error.strerror}") from None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def diff(args: Args, state: State) -> Change:
    path, key, there = state["path"], state["key"], state["there"]
    before, after = there.get(key), _wished(args, there.get(key))
    if before == after:
        return Change(data={"first": there})
    action = f"set {key} of {path} to {after}" if after is not None else f"remove {key} of {path}"
    return Change([action], _shown(key, before), _shown(key, after), path, path, {"first": there, "after": after})


def _wished(args: Args, current: Optional[str]) -> Optional[str]:
    if args["state"] == "present" or args["value"] is not None:
        return None if args["value"] is None else str(args["value"])
    return None if args["state"] == "absent" else current


def _shown(key: str, value: Optional[str]) -> str:
    return "" if value is None else f"{key}={value}\n"


def write(system: System, args: Args, state: State, change: Change) -> None:
    path, key, after = state["path"], state["key"], change.data["after"]
    try:
        if after is None:
            os.removexattr(path, key, follow_symlinks=args["follow"])
        else:
            os.setxattr(path, key, after.encode("utf-8", "surrogateescape"), follow_symlinks=args["follow"])
    except OSError as error:
        why = "this filesystem, or this kind of file, has no such attributes" if error.errno in (errno.ENOTSUP, errno.EPERM) else error.strerror
        raise Failed(f"cannot change {key} of {path}: {why}") from None


def values(args: Args, state: State, change: Change) -> Args:
    first = {name: value for name, value in change.data["first"].items() if name.startswith("user.") or name == state["key"]}
    if args["state"] == "keys":
        return {"xattr": dict.fromkeys(first, "")}
    if args["state"] == "all" or state["key"] is None:
        return {"xattr": first}
    return {"xattr": {name: value for name, value in first.items() if name == state["key"]}}
