"""A file's content on the node; `template` ends here too, after the controller rendered it."""

from __future__ import annotations

import io
import json
import os
from typing import Any, BinaryIO, Dict, List, Optional

from nodectl.agent import attributes, replace
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Put a file (or, with remote_src, a folder) in place on the node",
    params={
        "src": Param("path", help="file on the controller, or on the node with remote_src"),
        "content": Param("raw", help="the content itself, in place of src"),
        "dest": Param("path", required=True, help="where to; a folder (or a path ending in /) takes the name of src"),
        "remote_src": Param("bool", default=False, help="src is on the node"),
        "force": Param("bool", default=True, help="replace a file whose content differs; false: only where there is none"),
        "follow": Param("bool", default=False, help="where dest is a link, write what it points to"),
        "directory_mode": Param("mode", help="mode of folders that are made on the way"),
        "content_blob": Param(help="set by nodectl: name of the bytes that came with the step"),
        "checksum": Param(help="SHA-1 that the content must have"),
        **replace.PARAMS,
        **attributes.PARAMS,
    },
    mutually_exclusive=(("content", "content_blob"),),
    returns={
        "dest": "the path", "src": "where the content came from", "checksum": "SHA-1 of the content", "backup_file": "the kept old file", "mode": "as '0644'",
        "owner": "name", "group": "name", "uid": "number", "gid": "number", "size": "bytes", "state": "file or directory",
    },
    example="- copy: {src: limits.conf, dest: /etc/security/limits.d/90-memlock.conf, mode: '0644'}\n",
)


def read(system: System, args: Args) -> State:
    dest = _dest(system, args)
    there = attributes.look(system.stat(dest))
    if there["kind"] == "link" and (args["follow"] or os.path.isdir(dest)):
        dest = os.path.realpath(dest)
        there = attributes.look(system.stat(dest))
    state: State = {"dest": dest, "there": there, "ids": attributes.wished(args), "missing": _missing(os.path.dirname(dest)) if _is_folder(args) else []}
    if args["remote_src"] and args["src"] and os.path.isdir(args["src"]):
        # What Ansible returns as dest: where the folder went, or what was written when that was not there before.
        state.update(tree=_tree(system, args, dest), told=dest if os.path.isdir(os.path.expanduser(args["dest"])) else os.path.expanduser(args["dest"]))
        return state
    if there["kind"] in ("file", "link"):
        state["checksum"] = replace.sha1_of(dest)
    state.update(_source(system, args))
    if there["kind"] == "file" and state["source"] != state.get("checksum"):
        with open(dest, "rb") as file:
            state["before"] = replace.shown(replace.start_of(file))
    return state


def _is_folder(args: Args) -> bool:
    return bool(args["dest"].endswith("/"))


def _dest(system: System, args: Args) -> str:
    """The file that is meant: inside dest where that is a folder. A whole folder (remote_src) goes into dest; with a / at its end, its content does."""
    dest = os.path.expanduser(args["dest"])
    src = args["src"] or ""
    into = _is_folder(args) or os.path.isdir(dest)
    if args["remote_src"] and os.path.isdir(src):
        return (dest if src.endswith("/") else os.path.join(dest, os.path.basename(src))).rstrip("/")
    if into and not os.path.basename(src):
        raise Failed(f"can not use content with a dir as dest: {dest}", dest=dest)
    return os.path.join(dest, os.path.basename(src)) if into else dest


def _missing(folder: str) -> List[str]:
    missing: List[str] = []
    while folder not in ("", "/") and not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def _open(system: System, args: Args) -> Optional[BinaryIO]:
    if args["content_blob"] is not None:
        return system.blob(args["content_blob"])
    if args["content"] is not None:
        return io.BytesIO(_bytes(args["content"]))
    if not args["remote_src"]:
        return None
    found = attributes.look(system.stat(args["src"] or "", follow=True))
    if found["kind"] != "file":
        raise Failed(f"Source {args['src']} not found on the node", src=args["src"])
    return open(args["src"], "rb")


def _bytes(content: Any) -> bytes:
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    return json.dumps(content).encode("utf-8")


def _source(system: System, args: Args) -> Dict[str, Any]:
    file = _open(system, args)
    if file is None:
        if args["checksum"] is None:
            raise Failed("neither content nor remote_src was given to the agent: a file of the controller is sent by nodectl")
        return {"source": args["checksum"], "sent": False, "after": f"(content with SHA-1 {args['checksum']})\n"}
    try:
        found = replace.sha1(file)
        if args["checksum"] not in (None, found):
            msg = f"Copied file does not match the expected checksum: {found}, expected {args['checksum']}"
            raise Failed(msg, checksum=found, expected_checksum=args["checksum"])
        mode = f"{attributes.look(os.stat(args['src']))['mode']:04o}" if args["remote_src"] and args["mode"] == "preserve" else None
        return {"source": found, "sent": True, "after": replace.shown(replace.start_of(file)), "source_mode": mode}
    finally:
        _close(file, args)


def _close(file: BinaryIO, args: Args) -> None:
    if args["content_blob"] is None:
        file.close()


def _tree(system: System, args: Args, dest: str) -> List[Dict[str, Any]]:
    """Every entry of the source folder with what stands at its place."""
    root = args["src"].rstrip("/")
    entries = []
    for folder, folders, files in os.walk(root):
        for name in sorted(folders) + sorted(files):
            source = os.path.join(folder, name)
            place = os.path.join(dest, os.path.relpath(source, root))
            link = os.readlink(source) if os.path.islink(source) else None
            there = attributes.look(system.stat(place))
            here = attributes.look(os.lstat(source))
            same = there["kind"] == here["kind"]
            if same and link is not None:
                same = os.readlink(place) == link
            elif same and here["kind"] == "file":
                same = replace.sha1_of(place) == replace.sha1_of(source)
            entries.append({"source": source, "place": place, "kind": here["kind"], "mode": here["mode"], "link": link, "there": there, "same": same})
    return entries


def diff(args: Args, state: State) -> Change:
    if "tree" in state:
        return _diff_tree(args, state)
    dest, there = state["dest"], state["there"]
    if there["kind"] in ("directory", "other"):
        raise Failed(f"{dest} is a {there['kind']}, not a file", dest=dest)
    header = args["src"] or dest
    if there["kind"] == "absent":
        return Change([*(f"make directory {folder}" for folder in state["missing"]), f"create {dest}"], "", state.get("after", ""), dest, header)
    if not args["force"]:
        return Change()
    actions = []
    if there["kind"] == "link" or state["source"] != state.get("checksum"):
        actions.append(f"replace the content of {dest}" if there["kind"] == "file" else f"replace the link {dest} by a file")
    before, after = (state.get("before", ""), state.get("after", "")) if actions else ("", "")
    actions += attributes.differences(dest, _with_mode(args, state), state["ids"], there)
    return Change(actions, before, after, dest, header)


def _with_mode(args: Args, state: State) -> Args:
    """mode: preserve means the source's mode, known only where the source is on the node."""
    return dict(args, mode=state["source_mode"]) if state.get("source_mode") else args


def _diff_tree(args: Args, state: State) -> Change:
    actions = [] if state["there"]["kind"] == "directory" else [f"make directory {state['dest']}"]
    if state["there"]["kind"] not in ("directory", "absent"):
        raise Failed(f"{state['dest']} is a {state['there']['kind']}, not a directory", dest=state["dest"])
    for entry in state["tree"]:
        there = entry["there"]
        if there["kind"] == "absent" or (not entry["same"] and args["force"]):
            actions.append(f"copy {entry['source']} to {entry['place']}")
        elif args["force"] or entry["kind"] == "directory":
            actions += attributes.differences(entry["place"], _entry_args(args, entry), state["ids"], there)
    return Change(actions, "", "", args["src"], state["dest"], {"dest": state["told"]})


def _entry_args(args: Args, entry: Dict[str, Any]) -> Args:
    if entry["kind"] == "directory":
        return dict(args, mode=args["directory_mode"])
    return dict(args, mode=f"{entry['mode']:04o}") if args["mode"] == "preserve" else args


def write(system: System, args: Args, state: State, change: Change) -> None:
    attributes.known(args, state["ids"])
    for folder in state["missing"]:
        os.mkdir(folder)
        attributes.apply(folder, dict(args, mode=args["directory_mode"]), state["ids"])
    if "tree" in state:
        _write_tree(system, args, state)
        return
    if state["there"]["kind"] == "file" and state["source"] == state.get("checksum"):
        attributes.apply(state["dest"], _with_mode(args, state), state["ids"])
        return
    file = _open(system, args)
    if file is None:
        raise Failed("the content differs and was not sent", needs_content=True, dest=state["dest"])
    try:
        change.data["backup_file"] = replace.put(system, state["dest"], file, _with_mode(args, state), state["ids"], state["there"], follow=False)
    finally:
        _close(file, args)


def _write_tree(system: System, args: Args, state: State) -> None:
    os.makedirs(state["dest"], exist_ok=True)
    for entry in state["tree"]:
        place, there = entry["place"], entry["there"]
        fresh = there["kind"] == "absent" or (not entry["same"] and args["force"])
        if not fresh and not args["force"]:
            continue
        if fresh and entry["kind"] == "directory":
            os.mkdir(place)
        elif fresh and entry["link"] is not None:
            beside = f"{place}.nodectl-{os.getpid()}"
            os.symlink(entry["link"], beside)
            os.rename(beside, place)
        elif fresh:
            with open(entry["source"], "rb") as file:
                replace.put(system, place, file, _entry_args(args, entry), state["ids"], there, follow=False)
        attributes.apply(place, _entry_args(args, entry), state["ids"])


def values(args: Args, state: State, change: Change) -> Args:
    result: Args = {"dest": change.data.get("dest", state["dest"]), **attributes.returned(state["dest"], state["there"])}
    if state.get("source"):
        result["checksum"] = state["source"]
    if args["src"]:
        result["src"] = args["src"]
    if change.data.get("backup_file"):
        result["backup_file"] = change.data["backup_file"]
    return result
