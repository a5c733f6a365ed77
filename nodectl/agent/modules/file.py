"""Files, directories, links: that they are there or not, and whose they are."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any, Dict, List, Optional

from nodectl.agent import attributes
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

STATES = ("file", "directory", "link", "hard", "touch", "absent")

SPEC = Spec(
    summary="See that a path is a file, directory or link with the wished owner and mode, or that it is not there",
    params={
        "path": Param("path", required=True, aliases=("dest", "name"), help="the path"),
        "state": Param(choices=STATES, help="what it shall be; without it, what is there keeps its kind"),
        "src": Param("path", help="what the link points to"),
        "force": Param("bool", default=False, help="make a link although its target is not there, or in place of a file"),
        "follow": Param("bool", default=True, help="where path is a link, mean what it points to"),
        "recurse": Param("bool", default=False, help="owner, group and mode for everything inside too"),
        "modification_time": Param(help="now, preserve, or a time"),
        "modification_time_format": Param(default="%Y%m%d%H%M.%S", help="how that time is written"),
        "access_time": Param(help="now, preserve, or a time"),
        "access_time_format": Param(default="%Y%m%d%H%M.%S", help="how that time is written"),
        **attributes.PARAMS,
    },
    required_if=(("state", "hard", ("src",)),),
    returns={
        "path": "the path (dest for links, both for touch)", "state": "what it is now", "mode": "as '0755'", "owner": "name", "group": "name",
        "uid": "number", "gid": "number", "size": "bytes",
    },
    example="- file: {path: /scratch/cache, state: directory, mode: '0755'}\n",
)


def read(system: System, args: Args) -> State:
    path = os.path.expanduser(args["path"]).rstrip("/") or "/"
    there = attributes.look(system.stat(path))
    wanted = args["state"] or ("directory" if args["recurse"] else _kept(system, path, there))
    target = os.path.realpath(path) if there["kind"] == "link" and args["follow"] else path
    state: State = {"path": path, "there": there, "wanted": wanted, "target": target, "began": system.began, "ids": attributes.wished(args)}
    if wanted not in ("link", "absent"):
        state["path"], state["there"] = target, attributes.look(system.stat(target))
    state["missing"] = _missing(system, state["path"]) if wanted == "directory" else []
    if args["recurse"] and state["there"]["kind"] == "directory":
        state["inside"] = _inside(state["path"])
    if wanted in ("link", "hard"):
        state.update(_link_state(system, args, state))
    if wanted == "absent":
        state["mounts"] = _mounts_in(system, path, there)
    return state


def _kept(system: System, path: str, there: Dict[str, Any]) -> str:
    if there["kind"] in ("directory", "link"):
        return str(there["kind"])
    return "file"


def _missing(system: System, path: str) -> List[str]:
    """The folders that have to be made, outermost first."""
    missing: List[str] = []
    while system.stat(path) is None and path not in ("", "/"):
        missing.insert(0, path)
        path = os.path.dirname(path)
    return missing


def _inside(path: str) -> List[Dict[str, Any]]:
    """Everything below a directory; links are named, not followed."""
    found = []
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            full = os.path.join(folder, name)
            found.append(dict(attributes.look(os.lstat(full)), path=full))
    return found


def _link_state(system: System, args: Args, state: State) -> Dict[str, Any]:
    path = state["path"]
    is_link = state["there"]["kind"] == "link"
    current = os.readlink(path) if is_link else None
    src = args["src"] if args["src"] is not None else current
    full = os.path.join(os.path.dirname(path), src) if src is not None else ""
    filled = state["there"]["kind"] == "directory" and bool(os.listdir(path))
    seen = attributes.look(system.stat(full)) if full else {"kind": "absent"}
    followed = attributes.look(system.stat(full, follow=True)) if full else {"kind": "absent"}
    return {"src": src, "points_to": current, "source": seen, "followed": followed, "full": full, "filled": filled}


def _mounts_in(system: System, path: str, there: Dict[str, Any]) -> List[str]:
    if there["kind"] != "directory":
        return []
    real = os.path.realpath(path)
    return [mount.target for mount in system.mounts() if mount.target == real or mount.target.startswith(real.rstrip("/") + "/")]


def diff(args: Args, state: State) -> Change:
    actions = _DIFF[state["wanted"]](args, state)
    kind, path = state["there"]["kind"], state["path"]
    wanted = "file" if state["wanted"] == "touch" else state["wanted"]
    if not actions:
        return Change()
    before = _shown(path, state["there"])
    after = before if wanted == kind else f"path: {path}\nstate: {wanted}\n"
    return Change(actions, before, after, path, path)


def _shown(path: str, there: Dict[str, Any]) -> str:
    return f"path: {path}\nstate: {there['kind']}\n"


def _diff_absent(args: Args, state: State) -> List[str]:
    if state["mounts"]:
        raise Failed(f"will not remove {state['path']}: {', '.join(state['mounts'])} is mounted there, and its content would go too; unmount it first")
    return [] if state["there"]["kind"] == "absent" else [f"remove {state['there']['kind']} {state['path']}"]


def _diff_file(args: Args, state: State) -> List[str]:
    path, there = state["path"], state["there"]
    if there["kind"] == "absent":
        raise Failed(f"file ({path}) is absent, cannot continue", path=path, state="absent")
    if there["kind"] not in ("file", "other"):
        raise Failed(f"file ({path}) is {there['kind']}, cannot continue", path=path, state=there["kind"])
    return attributes.differences(path, args, state["ids"], there)


def _diff_directory(args: Args, state: State) -> List[str]:
    path, there = state["path"], state["there"]
    if there["kind"] == "absent":
        return [f"make directory {folder}" for folder in state["missing"]]
    if there["kind"] != "directory":
        raise Failed(f"{path} already exists as a {there['kind']}", path=path, state=there["kind"])
    actions = attributes.differences(path, args, state["ids"], there)
    for entry in state.get("inside", []):
        actions += attributes.differences(entry["path"], args, state["ids"], entry)
    return actions


def _diff_touch(args: Args, state: State) -> List[str]:
    path, there = state["path"], state["there"]
    if there["kind"] == "absent":
        return [f"create {path}"]
    if there["kind"] not in ("file", "directory", "other"):
        raise Failed(f"cannot touch {path}: it is a {there['kind']}", path=path, state=there["kind"])
    actions = [] if _times(args, state) == (there["atime"], there["mtime"]) else [f"set the times of {path}"]
    return actions + attributes.differences(path, args, state["ids"], there)


def _times(args: Args, state: State) -> "tuple[float, float]":
    """(access, modification) as wished, in seconds. A time after the step began counts as now."""
    there = state["there"]
    return _time(args, "access_time", there.get("atime", 0.0), state["began"]), _time(args, "modification_time", there.get("mtime", 0.0), state["began"])


def _time(args: Args, name: str, current: float, began: float) -> float:
    text = args[name] or "now"
    if text == "preserve":
        return current
    if text == "now":
        return max(current, began)
    try:
        return time.mktime(time.strptime(text, args[f"{name}_format"]))
    except ValueError as error:
        raise Failed(f"{name}: {error}") from None


def _diff_link(args: Args, state: State) -> List[str]:
    path, src, kind = state["path"], state["src"], state["there"]["kind"]
    if src is None:
        raise Failed(f"src is needed to make the link {path}", path=path)
    if kind == "link" and state["points_to"] == src:
        return _followed(args, state)
    if kind == "directory" and (not args["force"] or state["filled"]):
        why = "it is not empty" if state["filled"] else "say force: true"
        raise Failed(f"refusing to make a link of the directory {path}: {why}", path=path)
    if kind in ("file", "other") and not args["force"]:
        raise Failed(f"refusing to make a link of the {kind} {path}: say force: true", path=path)
    if state["followed"]["kind"] == "absent" and not args["force"]:
        raise Failed(f"src file does not exist, use \"force=yes\" if you really want to create the link: {state['full']}", path=path, src=src)
    return [f"make {path} a link to {src}"]


def _followed(args: Args, state: State) -> List[str]:
    """With follow, owner and mode are those of what the link points to."""
    if not args["follow"]:
        return attributes.differences(state["path"], args, state["ids"], state["there"])
    return attributes.differences(state["full"], args, state["ids"], state["followed"]) if state["followed"]["kind"] != "absent" else []


def _diff_hard(args: Args, state: State) -> List[str]:
    path, kind = state["path"], state["there"]["kind"]
    if state["followed"]["kind"] != "file":
        raise Failed(f"src does not exist as a file: {state['full']}", path=path, src=state["src"])
    if kind == "file" and state["there"]["inode"] == state["followed"]["inode"]:
        return attributes.differences(path, args, state["ids"], state["there"])
    if kind == "directory" or (kind != "absent" and not args["force"]):
        raise Failed(f"Cannot link, {path} exists as a {kind} at destination: say force: true", path=path)
    return [f"make {path} a hard link to {state['src']}"]


_DIFF = {"absent": _diff_absent, "file": _diff_file, "directory": _diff_directory, "touch": _diff_touch, "link": _diff_link, "hard": _diff_hard}


def write(system: System, args: Args, state: State, change: Change) -> None:
    wanted, path = state["wanted"], state["path"]
    if wanted == "absent":
        _remove(path, state["there"]["kind"])
        return
    attributes.known(args, state["ids"])
    if wanted == "directory":
        for folder in state["missing"]:
            os.mkdir(folder)
            attributes.apply(folder, args, state["ids"])
    elif wanted in ("link", "hard"):
        path = _make_link(args, state)
    elif wanted == "touch":
        _touch(args, state)
    if os.path.lexists(path):
        attributes.apply(path, args, state["ids"])
    for entry in state.get("inside", []):
        attributes.apply(entry["path"], args, state["ids"])


def _remove(path: str, kind: str) -> None:
    if kind == "directory":
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _make_link(args: Args, state: State) -> str:
    """Beside it and renamed over it, so that there is no moment without; returns whose owner and mode are meant."""
    path: str = state["path"]
    src: str = state["src"]
    hard = state["wanted"] == "hard"
    done = state["there"].get("inode") == state["followed"].get("inode") if hard else state["points_to"] == src
    if not done:
        if state["there"]["kind"] == "directory":
            os.rmdir(path)
        beside = f"{path}.nodectl-{os.getpid()}"
        if hard:
            os.link(state["full"], beside)
        else:
            os.symlink(src, beside)
        os.rename(beside, path)
    return os.path.realpath(path) if args["follow"] and not hard else path


def _touch(args: Args, state: State) -> None:
    if state["there"]["kind"] == "absent":
        os.close(os.open(state["path"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        state = dict(state, there={})
    access, modification = _times(args, state)
    now = time.time()
    access = max(access, now) if _is_now(args["access_time"]) else access
    modification = max(modification, now) if _is_now(args["modification_time"]) else modification
    os.utime(state["path"], (access, modification))


def _is_now(text: Optional[str]) -> bool:
    return text in (None, "now")


def values(args: Args, state: State, change: Change) -> Args:
    names = {"link": ("dest",), "hard": ("dest",), "touch": ("path", "dest")}.get(state["wanted"], ("path",))
    result: Args = {**dict.fromkeys(names, state["path"]), **attributes.returned(state["path"], state["there"])}
    result.setdefault("state", "absent")
    if state.get("src") is not None:
        result["src"] = state["src"]
    return result
