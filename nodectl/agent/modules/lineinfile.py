"""One line of a text file: there, replaced, or gone."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Pattern, Tuple

from nodectl.agent import attributes, edited_text, replace
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="See that a line is in a text file, in place of the one that a pattern finds, or that it is not",
    params={
        "path": edited_text.PATH,
        "line": Param(aliases=("value",), help="the line; with backrefs it may hold \\1 and \\g<name>"),
        "regexp": Param(aliases=("regex",), help="the line to replace or remove: the last one that matches"),
        "search_string": Param(help="as regexp, but plain text"),
        "state": Param(default="present", choices=("present", "absent"), help="present or absent"),
        "insertafter": Param(help="EOF, or a pattern: put a new line after the last match"),
        "insertbefore": Param(help="BOF, or a pattern: put a new line before the last match"),
        "firstmatch": Param("bool", default=False, help="the first match counts, not the last"),
        "backrefs": Param("bool", default=False, help="line may refer to groups of regexp; without a match nothing is done"),
        "create": Param("bool", default=False, help="make the file where there is none"),
        **replace.PARAMS,
        **attributes.PARAMS,
    },
    mutually_exclusive=(("insertbefore", "insertafter"), ("regexp", "search_string"), ("backrefs", "search_string")),
    required_if=(("state", "present", ("line",)), ("backrefs", True, ("regexp",))),
    returns={"backup": "the kept old file", "found": "how many lines were removed"},
    example="- lineinfile: {path: /etc/fuse.conf, regexp: '^#?user_allow_other', line: user_allow_other}\n",
)


class _Edit(NamedTuple):
    lines: List[str]
    msg: str = ""
    found: int = 0


read = edited_text.read


def diff(args: Args, state: State) -> Change:
    path, text = state["path"], state["text"]
    if args["state"] == "absent" and text is None:
        return Change()
    if args["state"] == "absent" and not any(args[name] is not None for name in ("regexp", "search_string", "line")):
        raise Failed("one of line, search_string, or regexp is required with state=absent")
    lines = edited_text.lines(text or "")
    edit = _present(args, lines) if args["state"] == "present" else _absent(args, lines)
    after = "".join(edit.lines)
    actions = []
    if after != (text or ""):
        actions.append(f"{edit.msg} in {path}" + ("" if text is not None or args["create"] else " (the file is not there now)"))
    elif text is None:
        return Change()
    change = edited_text.change(args, state, after, actions)
    change.data.update(found=edit.found, msg=edit.msg)
    return change


def _regexp(args: Args) -> Optional[Pattern[str]]:
    return None if args["regexp"] is None else edited_text.pattern(args["regexp"], "regexp")


def _absent(args: Args, lines: List[str]) -> _Edit:
    pattern = _regexp(args)

    def hit(line: str) -> bool:
        if pattern is not None:
            return bool(pattern.search(line))
        if args["search_string"] is not None:
            return args["search_string"] in line
        return bool(line.rstrip("\r\n") == args["line"])

    kept = [line for line in lines if not hit(line)]
    count = len(lines) - len(kept)
    return _Edit(kept, f"{count} line(s) removed", count)


def _present(args: Args, lines: List[str]) -> _Edit:
    at, match = _target(args, lines)
    line = args["line"]
    if at is not None:
        new = match.expand(line) if match is not None and args["backrefs"] else line
        return _Edit([*lines[:at], _ended(new), *lines[at + 1 :]] if lines[at] != _ended(new) else lines, "line replaced")
    if args["backrefs"]:
        return _Edit(lines)  # there is nothing that the references could mean
    return _Edit(_inserted(args, lines, line), "line added")


def _target(args: Args, lines: List[str]) -> Tuple[Optional[int], "Optional[re.Match[str]]"]:
    """Which line is to be replaced: what regexp or search_string finds, else the line itself where it stands already."""
    pattern, plain = _regexp(args), args["search_string"]
    hits: List[Tuple[int, "Optional[re.Match[str]]"]] = []
    for index, line in enumerate(lines):
        match = pattern.search(line) if pattern is not None else None
        if match is not None or (plain is not None and plain in line):
            hits.append((index, match))
    if hits:
        return hits[0] if args["firstmatch"] else hits[-1]
    same = [index for index, line in enumerate(lines) if line.rstrip("\r\n") == args["line"]]
    return (same[-1] if same else None), None


def _inserted(args: Args, lines: List[str], line: str) -> List[str]:
    if args["insertbefore"] == "BOF" or args["insertafter"] == "BOF":
        return [_ended(line), *lines]
    place = _place(args, lines)
    if place is None or place == len(lines):
        return [*lines[:-1], *(_ended(last) for last in lines[-1:]), _ended(line)]
    return [*lines[:place], _ended(line), *lines[place:]]


def _place(args: Args, lines: List[str]) -> Optional[int]:
    """Where a new line goes; None is the end."""
    before = args["insertbefore"]
    anchor = before if before is not None else args["insertafter"]
    if anchor in (None, "EOF"):
        return None
    pattern = edited_text.pattern(anchor, "insertbefore" if before is not None else "insertafter")
    hits = [index for index, text in enumerate(lines) if pattern.search(text)]
    if not hits:
        return None
    return (hits[0] if args["firstmatch"] else hits[-1]) + (0 if before is not None else 1)


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n"


def write(system: System, args: Args, state: State, change: Change) -> None:
    if state["text"] is None and not args["create"]:
        raise Failed(f"Destination {state['path']} does not exist !", rc=257, path=state["path"])
    change.data["backup"] = edited_text.write(system, args, state, change)


def values(args: Args, state: State, change: Change) -> Args:
    result: Args = {"backup": change.data.get("backup") or ""}
    if args["state"] == "absent":
        result["found"] = change.data.get("found", 0)
    return result
