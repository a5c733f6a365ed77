"""alternatives: which of several programs a name means."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Register an alternative, choose one, or leave the choice to the priorities.",
    params={
        "name": Param("str", "the name of the link group", required=True),
        "path": Param("path", "the program"),
        "family": Param("str", "the family of the alternative (where update-alternatives knows families)"),
        "link": Param("path", "the link that leads to the choice"),
        "priority": Param("int", "the alternative's priority; not given: as it is, or 50"),
        "state": Param(
            "str", "present: registered; selected: chosen too; auto: the highest priority is chosen", default="selected",
            choices=("present", "selected", "absent", "auto"),
        ),
        "subcommands": Param("list", "links that follow the choice: {name, path, link} each", elements="dict", aliases=("slaves",)),
    },
    required_one_of=(("path", "family"),),
    returns={},
    example="- alternatives:\n    name: editor\n    path: /usr/bin/vim.basic\n",
)
_BLOCK = re.compile(r"^(/.*) - (?:family (\S+) )?priority (-?\d+)((?:\n[ \t]+(?:slave|follower) .*)*)", re.MULTILINE)
_FOLLOWS = re.compile(r"^\s+(?:slave|follower) (.*): (.*)$", re.MULTILINE)


def parse(text: str) -> State:
    """`update-alternatives --display`: mode, current path, link, path → {priority, family, subcommands (name → (link, path))}."""
    def field(pattern: str) -> str:
        found = re.search(pattern, text, re.MULTILINE)
        return found.group(1) if found else ""

    links = dict(re.findall(r"^\s*(?:slave|follower) (\S+) is (.*)$", text, re.MULTILINE))
    known: Dict[str, Any] = {}
    for path, family, priority, below in _BLOCK.findall(text):
        follows = {name: [links.get(name), target] for name, target in _FOLLOWS.findall(below) if target != "(null)"}
        known[path] = {"priority": int(priority), "family": family, "subcommands": follows}
    mode = field(r"\s-\s(?:status\sis\s)?(\w*)(?:\smode|\.)$")
    return {"mode": mode, "path": field(r"^\s*link currently points to (.*)$"), "link": field(r"^\s*link \w+ is (.*)$"), "known": known}


def read(system: System, args: Args) -> State:
    if not args["name"] or "/" in args["name"] or len(args["name"].split()) != 1 or args["name"].startswith("-"):
        raise Failed(f"{args['name']!r} is no name of an alternative")
    done = system.run(["update-alternatives", "--display", args["name"]])
    state = parse(done.stdout if done.rc == 0 else "")
    return dict(state, exists=args["path"] is not None and os.path.exists(args["path"]))


def diff(args: Args, state: State) -> Change:
    path, known, name = args["path"], state["known"], args["name"]
    there = known.get(path)
    steps: List[str] = []
    orders: List[List[str]] = []
    if args["state"] == "absent":
        if there is not None:
            steps, orders = [f"remove the alternative {path} of {name}"], [["--remove", name, path]]
    else:
        if path is not None and (there is None or _differs(args, there)):
            steps, orders = [f"register the alternative {path} of {name}"], [_install(args, state, there)]
        current = known.get(state["path"], {})
        chosen = (path is not None and state["path"] == path) or (args["family"] is not None and current.get("family") == args["family"])
        if args["state"] == "selected" and not chosen:
            choice = path if path is not None else args["family"]
            steps, orders = [*steps, f"choose {choice} for {name}"], [*orders, ["--set", name, choice]]
        if args["state"] == "auto" and state["mode"] == "manual":
            steps, orders = [*steps, f"leave the choice of {name} to the priorities"], [*orders, ["--auto", name]]
    return Change(steps, data={"orders": orders})


def _follows(args: Args) -> Dict[str, List[Any]]:
    missing = [one for one in args["subcommands"] if not {"name", "path", "link"} <= set(one)]
    if missing:
        raise Failed(f"subcommands: each needs name, path and link, not {missing[0]}")
    return {one["name"]: [one["link"], one["path"]] for one in args["subcommands"]}


def _differs(args: Args, there: Dict[str, Any]) -> bool:
    priority = args["priority"] is not None and there["priority"] != args["priority"]
    return priority or (args["subcommands"] is not None and there["subcommands"] != _follows(args))


def _install(args: Args, state: State, there: Any) -> List[str]:
    link = args["link"] or state["link"]
    if not state["exists"]:
        raise Failed(f"there is no {args['path']} on this node")
    if not link:
        raise Failed(f"{args['name']} is not known here yet: a new one needs its link")
    priority = args["priority"] if args["priority"] is not None else there["priority"] if there else 50  # 50 is Ansible's default
    follows = _follows(args) if args["subcommands"] is not None else there["subcommands"] if there else {}
    words = ["--install", link, args["name"], args["path"], str(priority), *(["--family", args["family"]] if args["family"] else [])]
    return [*words, *(word for name, (target, path) in follows.items() for word in ("--slave", target, name, path))]


def write(system: System, args: Args, state: State, change: Change) -> None:
    for words in change.data["orders"]:
        done = system.run(["update-alternatives", *words])
        if done.rc != 0:
            raise Failed(f"update-alternatives {' '.join(words)}: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {}
