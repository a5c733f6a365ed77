"""capabilities: what a program may do beyond its user's rights."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="A capability of a program's file present or absent; the others stay.",
    params={
        "path": Param("str", "the program's file", required=True, aliases=("key",)),
        "capability": Param("str", "the capability, with operator and flags where it is wished: cap_net_raw+ep", required=True, aliases=("cap",)),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    returns={"state": "the wish"},
    example="- capabilities:\n    path: /usr/local/bin/ib_probe\n    capability: cap_ipc_lock+ep\n",
)
Capability = Tuple[str, str, str]
_CAPABILITY = re.compile(r"^(cap_[a-z_]+)(?:([-=+])([eip]*))?$")


def _parse(text: str) -> Optional[Capability]:
    found = _CAPABILITY.match(text)
    return (found.group(1), found.group(2) or "", found.group(3) or "") if found else None


def parse(text: str) -> List[Capability]:
    """getcap's words behind the path: `cap_a,cap_b=ep cap_c=p`. Words that are none are left out."""
    found = []
    for word in text.split():
        names = word.split(",")
        last = _parse(names[-1])
        if last is not None:
            found += [(name, *last[1:]) for name in (*names[:-1], last[0])]
    return found


def read(system: System, args: Args) -> State:
    path = args["path"].strip()
    done = system.run(["getcap", "-v", path])
    said = done.stdout.strip()
    if done.rc != 0 or done.stderr or said.endswith(")") or not said:
        raise Failed(f"getcap {path}: {(done.stderr.strip() or said or 'it said nothing')}", rc=done.rc, stdout=said, stderr=done.stderr)
    return {"path": path, "caps": parse(said[len(path) :].lstrip(" ="))}


def wished(args: Args, there: List[Capability]) -> List[Capability]:
    """Raises Failed for what is no capability, or one without flags where it is wished."""
    wish = _parse(args["capability"].strip().lower())
    if wish is None or (args["state"] == "present" and not wish[1]):
        raise Failed(f"{args['capability']!r} is no capability: write cap_net_raw+ep")
    others = [one for one in there if one[0] != wish[0]]
    if args["state"] == "absent":
        return others
    # getcap writes `=` where it was asked for `+`: on an empty set they mean the same.
    same = any(one[0] == wish[0] and set(one[2]) == set(wish[2]) for one in there) and wish[1] != "-"
    return there if same else [*others, wish]


def diff(args: Args, state: State) -> Change:
    after = wished(args, state["caps"])
    before_text, after_text = (" ".join("".join(one) for one in caps) for caps in (state["caps"], after))
    steps = [] if after == state["caps"] else [f"set the capabilities of {state['path']} to {after_text or 'none'}"]
    return Change(steps, before_text + "\n", after_text + "\n", state["path"], state["path"], {"after": after_text})


def write(system: System, args: Args, state: State, change: Change) -> None:
    words = ["setcap", change.data["after"], state["path"]] if change.data["after"] else ["setcap", "-r", state["path"]]
    done = system.run(words)
    if done.rc != 0:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {"state": args["state"]}
