"""hosts_entry: a name leads to one IPv4 address in /etc/hosts, and to no other. Other names and comments stay as they are."""

from __future__ import annotations

import ipaddress
from typing import List, NamedTuple

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

# Debian's line for a machine without a fixed address: every name on it is the machine's own, so all of them move.
DEBIANS_OWN = "127.0.1.1"

SPEC = Spec(
    summary="Lead a name to one IPv4 address in /etc/hosts: what the resolver finds first counts, so no other line may have it",
    params={
        "name": Param("str", "the name, without blanks", required=True),
        "address": Param("str", "the IPv4 address", required=True),
        "path": Param("path", "another file than /etc/hosts", default="/etc/hosts"),
    },
    example="- hosts_entry:\n    name: gpu-01\n    address: 10.0.0.11\n",
)


class Line(NamedTuple):
    """One line as it is written; ``names`` is empty for comments and empty lines."""

    text: str
    address: str
    names: List[str]


def parse(text: str) -> List[Line]:
    lines = []
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        lines.append(Line(line, words[0] if len(words) > 1 else "", words[1:]))
    return lines


def wished(text: str, name: str, address: str) -> str:
    """The whole file with ``name`` on ``address`` alone; unchanged byte for byte where it is so already."""
    lines = parse(text)
    moved = [other for line in lines if line.address == DEBIANS_OWN != address and name in line.names for other in line.names]
    want = list(dict.fromkeys([*moved, name]))
    out: List[str] = []
    placed = False
    for line in lines:
        if line.address == address and not placed and (name in line.names or moved):
            out.append(_added(line, want))
            placed = True
        else:
            out += _without(line, name, address)
    if not placed:
        out.append(f"{address} {' '.join(want)}")
    return text if out == [line.text for line in lines] else "".join(f"{line}\n" for line in out)


def _added(line: Line, names: List[str]) -> str:
    missing = [name for name in names if name not in line.names]
    if not missing:
        return line.text
    words, mark, comment = line.text.partition("#")
    return f"{words.rstrip()} {' '.join(missing)}{' ' if mark else ''}{mark}{comment}"


def _without(line: Line, name: str, address: str) -> List[str]:
    """A line that leads the name elsewhere, without it; an IPv6 address of its own may keep it."""
    if name not in line.names or (":" in line.address and line.address != "::1"):
        return [line.text]
    left = [] if line.address == DEBIANS_OWN else [other for other in line.names if other != name]
    return [f"{line.address} {' '.join(left)}"] if left else []


def read(system: System, args: Args) -> State:
    """The file's text, "" where there is none."""
    return {"text": (system.read(args["path"]) or b"").decode("utf-8", "surrogateescape")}


def diff(args: Args, state: State) -> Change:
    try:
        ipaddress.IPv4Address(args["address"])
    except ValueError:
        raise Failed(f"'{args['address']}' is no IPv4 address") from None
    if len(args["name"].split()) != 1 or "#" in args["name"]:
        raise Failed(f"'{args['name']}' is no name")
    after = wished(state["text"], args["name"], args["address"])
    actions = [f"lead {args['name']} to {args['address']} in {args['path']}"] if after != state["text"] else []
    return Change(actions, state["text"], after, args["path"], args["path"], {"after": after})


def write(system: System, args: Args, state: State, change: Change) -> None:
    system.write_atomic(args["path"], change.data["after"].encode("utf-8", "surrogateescape"))
