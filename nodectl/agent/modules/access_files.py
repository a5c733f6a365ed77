"""access_files: files that decide who gets in (sudoers, PAM), changed together; validated before, taken back by the node itself unless confirmed."""

from __future__ import annotations

import os
import shlex
from typing import Any, Dict, List

from nodectl.agent import access_guard
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.own_folder import own_folder
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

GUARD = "files"
# visudo and pam-auth-update take under a second; a directory service that does not answer holds them for up to 30.
ORDER_SECONDS = 60.0

SPEC = Spec(
    summary="Files of sudo or PAM: validated, put in place together, proven by a fresh login, reverted by the node itself otherwise",
    params={
        "files": Param("list", "The files: path, and content (none: the file goes) and mode.", required=True, elements="dict"),
        "validate": Param("str", "A command with %s for each new file; where it fails nothing is changed.", default=""),
        "apply": Param("str", "A command after the files are in place.", default=""),
        "applied": Param("str", "A command that ends with 0 where the files are in force; without it the files alone count.", default=""),
        "also": Param("list", "Further files that the command of apply changes; they come back too.", default=[], elements="path"),
        "revert_after": Param("int", "Seconds until the node restores what was there unless the login was confirmed.", default=60),
    },
    returns={"pending": "true while the node waits for access_confirm before it restores what was there before."},
    example=(
        "- access_files:\n    files:\n      - {path: /etc/sudoers.d/00-site, content: \"Defaults use_pty\\n\", mode: '0440'}\n    validate: visudo -cf %s\n"
    ),
)


def read(system: System, args: Args) -> State:
    """What is there, and whether it is in force. Raises Failed for files that are no files, or that the check refuses."""
    if args["revert_after"] < 1:
        raise Failed("revert_after must be at least 1 second: it is the time that a fresh login has")
    files = [_wished(entry) for entry in args["files"]]
    there = {file["path"]: system.read(file["path"]) for file in files}
    if args["validate"]:
        _validate(system, args["validate"], [file for file in files if file["data"] is not None])
    in_force = not args["applied"] or system.run(shlex.split(args["applied"]), timeout=ORDER_SECONDS).rc == 0
    modes = {path: (os.stat(path).st_mode & 0o7777) for path, data in there.items() if data is not None}
    return {"files": files, "there": there, "modes": modes, "in_force": in_force, "pending": access_guard.is_armed(GUARD)}


def diff(args: Args, state: State) -> Change:
    change = Change()
    for file in state["files"]:
        path, data = file["path"], file["data"]
        if state["there"][path] != data:
            change.actions.append(f"{'remove' if data is None else 'write'} {path}")
            change.before += _shown(path, state["there"][path])
            change.after += _shown(path, data)
        elif data is not None and state["modes"][path] != file["mode"]:
            change.actions.append(f"mode of {path} from {state['modes'][path]:04o} to {file['mode']:04o}")
    if args["apply"] and (change.actions or not state["in_force"]):
        change.actions.append(args["apply"])
    return change


def write(system: System, args: Args, state: State, change: Change) -> None:
    paths = [file["path"] for file in state["files"]]
    access_guard.arm(system, access_guard.Guard(GUARD, [*paths, *args["also"]], ":", {}), args["revert_after"])
    try:
        for file in state["files"]:
            _put(system, file)
        if args["apply"]:
            done = system.run(shlex.split(args["apply"]), timeout=ORDER_SECONDS, env={"DEBIAN_FRONTEND": "noninteractive"})
            if done.rc != 0:
                raise Failed(f"{args['apply']} ended with {done.rc}: {(done.stderr or done.stdout).strip()}", rc=done.rc)
    except (Failed, OSError) as error:
        access_guard.take_back(system, GUARD)
        raise Failed(f"{error}; what was there before is back") from None


def values(args: Args, state: State, change: Change) -> Args:
    return {"pending": state["pending"]}


def _wished(entry: Any) -> Dict[str, Any]:
    if not isinstance(entry, dict) or not str(entry.get("path", "")).startswith("/") or not set(entry) <= {"path", "content", "mode"}:
        raise Failed(f"files: {entry!r} is no file; expected {{path: /…, content: text, mode: '0644'}}")
    content = entry.get("content")
    return {"path": entry["path"], "data": None if content is None else str(content).encode(), "mode": int(str(entry.get("mode", "0644")), 8)}


def _validate(system: System, command: str, files: List[Dict[str, Any]]) -> None:
    for file in files:
        with own_folder("/run") as folder, open(os.path.join(folder, "trial"), "wb") as trial:
            trial.write(file["data"])
            trial.flush()
            done = system.run([word.replace("%s", trial.name) for word in shlex.split(command)], timeout=ORDER_SECONDS)
        if done.rc != 0:
            said = " ".join((done.stderr + done.stdout).replace(trial.name, file["path"]).split())
            raise Failed(f"{file['path']} is refused, nothing was changed: {said}", rc=done.rc)


def _put(system: System, file: Dict[str, Any]) -> None:
    if file["data"] is not None:
        os.makedirs(os.path.dirname(file["path"]), mode=0o755, exist_ok=True)
        system.write_atomic(file["path"], file["data"], mode=file["mode"], uid=0, gid=0)
    elif os.path.lexists(file["path"]):
        os.unlink(file["path"])


def _shown(path: str, data: "bytes | None") -> str:
    return "" if data is None else f"# {path}\n{data.decode('utf-8', 'replace')}"
