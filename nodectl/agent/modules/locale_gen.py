"""locale_gen: locales made or removed, by way of /etc/locale.gen."""

from __future__ import annotations

import re
from typing import Any, Dict, List

from nodectl.agent import text_file
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

FILE = "/etc/locale.gen"
SUPPORTED = "/usr/share/i18n/SUPPORTED"
# A locale takes seconds; all of them on a slow disk minutes.
GENERATE_SECONDS = 600.0
SPEC = Spec(
    summary="Make or remove locales.",
    params={
        "name": Param("list", "locales, as de_CH.UTF-8", required=True, elements="str"),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    returns={"name": "the locales", "mechanism": "glibc"},
    example="- locale_gen:\n    name: en_US.UTF-8\n",
)


def folded(name: str) -> str:
    """`locale -a` writes de_CH.utf8 for what /etc/locale.gen calls de_CH.UTF-8."""
    base, dot, charset = name.partition(".")
    return base + dot + charset.lower().replace("-", "")


def read(system: System, args: Args) -> State:
    """Which locales the node has, which it could have, and the file's text. Raises Failed where the package locales is missing."""
    text = text_file.read(system, FILE)
    if text is None:
        raise Failed(f"there is no {FILE} on this node: install the package locales first")
    supported = [line.split(" ")[0] for line in (text_file.read(system, SUPPORTED) or "").splitlines()]
    return {"text": text, "supported": supported, "there": [folded(line) for line in system.run(["locale", "-a"]).stdout.split()]}


def diff(args: Args, state: State) -> Change:
    names: List[str] = args["name"]
    unknown = [name for name in names if name not in state["supported"] and folded(name) not in state["there"]]
    if unknown:
        raise Failed(f"this node does not know the locale {', '.join(map(repr, unknown))}: {SUPPORTED} lists those that it knows")
    present = all(folded(name) in state["there"] for name in names)
    if present == (args["state"] == "present"):
        return Change(data={"after": state["text"]})
    after = wished(state["text"], names, args["state"] == "present")
    return Change([f"{'make' if args['state'] == 'present' else 'remove'} {', '.join(names)}"], state["text"], after, FILE, FILE, {"after": after})


def wished(text: str, names: List[str], on: bool) -> str:
    """The file with the lines of ``names`` in force, or commented out."""
    for name in names:
        text = re.sub(rf"^#?\s*{re.escape(name)} (.+)$", rf"{'' if on else '# '}{name} \1", text, flags=re.MULTILINE)
    return text


def write(system: System, args: Args, state: State, change: Change) -> None:
    if change.data["after"] != state["text"]:
        text_file.put(system, FILE, change.data["after"])
    done = system.run(["locale-gen"], timeout=GENERATE_SECONDS)
    if done.rc != 0:
        raise Failed(f"locale-gen: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {"name": args["name"], "mechanism": "glibc"}
