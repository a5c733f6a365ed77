"""kernel_blacklist: kernel modules that are not loaded by themselves."""

from __future__ import annotations

import re
from typing import Any, Dict, List

from nodectl.agent import text_file
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Keep a kernel module from being loaded by itself (an initramfs that holds it has to be made anew).",
    params={
        "name": Param("str", "module name", required=True),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
        "blacklist_file": Param("str", "the file that holds the line", default="/etc/modprobe.d/blacklist-ansible.conf"),
    },
    returns={"name": "module name", "state": "the wish", "filename": "the file", "lines": "its lines", "is_blacklisted": "whether the line is there"},
    example="- kernel_blacklist:\n    name: nouveau\n",
)


def _is_line(line: str, name: str) -> bool:
    return re.match(rf"blacklist\s+{re.escape(name)}$", line.strip()) is not None


def read(system: System, args: Args) -> State:
    return {"text": text_file.read(system, args["blacklist_file"])}


def diff(args: Args, state: State) -> Change:
    name, text = args["name"], state["text"]
    if not re.match(r"[\w.-]+\Z", name):
        raise Failed(f"{name!r} is no name of a kernel module")
    lines: List[str] = (text or "").splitlines()
    there = any(_is_line(line, name) for line in lines)
    if args["state"] == "absent":
        lines = [line for line in lines if not _is_line(line, name)]
    elif not there:
        lines = [*lines, f"blacklist {name}"]
    wished = there if args["state"] == "absent" else not there
    change = text_file.change(args["blacklist_file"], text, "".join(f"{line}\n" for line in lines)) if wished else Change()
    change.data.update(lines=lines, is_blacklisted=args["state"] == "present")
    return change


def write(system: System, args: Args, state: State, change: Change) -> None:
    text_file.put(system, args["blacklist_file"], change.data["after"])


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {
        "name": args["name"], "state": args["state"], "filename": args["blacklist_file"],
        "lines": change.data["lines"], "is_blacklisted": change.data["is_blacklisted"],
    }
