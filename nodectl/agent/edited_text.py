"""Somebody else's text file that a module edits: read with its owner and mode, cut at newlines, put back. For lineinfile and its like."""

from __future__ import annotations

import os
import re
from typing import List, Optional, Pattern

from nodectl.agent import attributes, replace
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param

PATH = Param("path", required=True, aliases=("dest", "destfile", "name"), help="the file")


def read(system: System, args: Args) -> State:
    """``text`` is None where there is no file; bytes that are no UTF-8 live in it as surrogates and come out as they were.

    A module may have a parameter ``encoding`` for files that are not UTF-8.
    """
    path = os.path.expanduser(args["path"])
    there = attributes.look(system.stat(path, follow=True))
    if there["kind"] == "directory":
        raise Failed(f"Path {path} is a directory !", rc=256, path=path)
    data = system.read(path)
    return {"path": path, "there": there, "ids": attributes.wished(args), "text": None if data is None else _decoded(data, args)}


def _decoded(data: bytes, args: Args) -> str:
    try:
        return data.decode(args.get("encoding") or "utf-8", "surrogateescape")
    except (LookupError, UnicodeError) as error:
        raise Failed(f"{args['path']} cannot be read as {args['encoding']}: {error}") from None


def _encoded(text: str, args: Args) -> bytes:
    try:
        return text.encode(args.get("encoding") or "utf-8", "surrogateescape")
    except UnicodeError as error:
        raise Failed(f"{args['path']} cannot be written as {args['encoding']}: {error}") from None


def lines(text: str) -> List[str]:
    """Cut at newlines only: other characters that Unicode takes for line ends belong to the line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def pattern(text: str, name: str, flags: int = 0) -> Pattern[str]:
    """Raises Failed with the parameter's ``name``."""
    try:
        return re.compile(text, flags)
    except re.error as error:
        raise Failed(f"{name} is not a regular expression: {error}: {text}") from None


def change(args: Args, state: State, after: str, actions: List[str]) -> Change:
    """``actions`` are those of the text; owner and mode are added."""
    path = state["path"]
    if state["there"]["kind"] != "absent":
        actions = actions + attributes.differences(path, args, state["ids"], state["there"])
    shown = [replace.shown(text.encode("utf-8", "surrogateescape")) for text in (state["text"] or "", after)]
    return Change(actions, shown[0], shown[1], f"{path} (content)", f"{path} (content)", {"after": after})


def write(system: System, args: Args, state: State, found: Change, follow: bool = True) -> Optional[str]:
    """The text of ``found``, with folders on the way; where only owner or mode differ, those alone. The backup's path, or None."""
    path, after = state["path"], found.data["after"]
    if after == state["text"]:
        attributes.apply(os.path.realpath(path) if follow else path, args, state["ids"])
        return None
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return replace.put(system, path, _encoded(after, args), args, state["ids"], state["there"], follow=follow)
