"""Several lines of a text file between two marker lines."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from nodectl.agent import attributes, edited_text, replace
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="See that a block of lines stands between two marker lines, or that it is gone",
    params={
        "path": edited_text.PATH,
        "block": Param(default="", aliases=("content",), help="the lines; empty removes the block"),
        "marker": Param(default="# {mark} ANSIBLE MANAGED BLOCK", help="the marker line; {mark} becomes marker_begin and marker_end"),
        "marker_begin": Param(default="BEGIN", help="what stands for {mark} before the block"),
        "marker_end": Param(default="END", help="what stands for {mark} after the block"),
        "state": Param(default="present", choices=("present", "absent"), help="present or absent"),
        "insertafter": Param(help="EOF, or a pattern: a new block goes after the last match"),
        "insertbefore": Param(help="BOF, or a pattern: a new block goes before the last match"),
        "create": Param("bool", default=False, help="make the file where there is none"),
        "append_newline": Param("bool", default=False, help="an empty line after the block"),
        "prepend_newline": Param("bool", default=False, help="an empty line before the block"),
        **replace.PARAMS,
        **attributes.PARAMS,
    },
    mutually_exclusive=(("insertbefore", "insertafter"),),
    returns={"backup_file": "the kept old file"},
    example="- blockinfile:\n    path: /etc/hosts\n    block: |\n      10.0.0.1 n1\n",
)


read = edited_text.read


def diff(args: Args, state: State) -> Change:
    path, text = state["path"], state["text"]
    if text is None and args["state"] == "absent":
        return Change()
    after = "".join(_edited(args, edited_text.lines(text or "")))
    actions = []
    if after != (text or "") or (text is None and args["create"]):
        what = "put the block into" if args["state"] == "present" and args["block"] else "remove the block from"
        actions.append(f"{what} {path}" + ("" if text is not None or args["create"] else " (the file is not there now)"))
    return edited_text.change(args, state, after, actions)


def _edited(args: Args, lines: List[str]) -> List[str]:
    begin, end = (args["marker"].replace("{mark}", args[name]) + "\n" for name in ("marker_begin", "marker_end"))
    wanted = args["state"] == "present"
    body = args["block"]
    block = [begin, *edited_text.lines(body if body.endswith("\n") else body + "\n"), end] if wanted and body else []
    at, lines = _cut(args, lines, begin, end)
    if at is None:
        return _spaced(args, lines, _place(args, lines), block, wanted)
    return _spaced(args, lines, at, block, wanted)


def _cut(args: Args, lines: List[str], begin: str, end: str) -> Tuple[Optional[int], List[str]]:
    """Where the old block was, and the lines without it. The last pair of markers counts, in whatever order they stand."""
    first = [index for index, line in enumerate(lines) if _same(line, begin)][-1:]
    last = [index for index, line in enumerate(lines) if _same(line, end)][-1:]
    if not first or not last:
        return None, lines
    low, high = min(first[0], last[0]), max(first[0], last[0])
    return low, lines[:low] + lines[high + 1 :]


def _same(line: str, marker: str) -> bool:
    return line == marker or line + "\n" == marker  # the last line of a file may lack its newline


def _place(args: Args, lines: List[str]) -> int:
    before, after = args["insertbefore"], args["insertafter"]
    anchor = before if before is not None else after
    if before == "BOF":
        return 0
    if anchor in (None, "EOF"):
        return len(lines)
    pattern = edited_text.pattern(anchor, "insertbefore" if before is not None else "insertafter")
    step = 0 if before is not None else 1
    if pattern.flags & re.MULTILINE:
        match = pattern.search("".join(lines))
        return len(lines) if match is None else match.string.count("\n", 0, match.start() if before is not None else match.end()) + step
    hits = [index for index, line in enumerate(lines) if pattern.search(line)]
    return hits[-1] + step if hits else len(lines)


def _spaced(args: Args, lines: List[str], at: int, block: List[str], wanted: bool) -> List[str]:
    head, tail = lines[:at], lines[at:]
    if head and not head[-1].endswith("\n"):
        head[-1] += "\n"
    if args["prepend_newline"] and wanted and head and head[-1] != "\n":
        head.append("\n")
    if args["append_newline"] and wanted and tail and tail[0] != "\n":
        tail.insert(0, "\n")
    return head + block + tail


def write(system: System, args: Args, state: State, change: Change) -> None:
    if state["text"] is None and not args["create"]:
        raise Failed(f"Path {state['path']} does not exist !", rc=257, path=state["path"])
    change.data["backup_file"] = edited_text.write(system, args, state, change)


def values(args: Args, state: State, change: Change) -> Args:
    return {"backup_file": change.data["backup_file"]} if change.data.get("backup_file") else {}
