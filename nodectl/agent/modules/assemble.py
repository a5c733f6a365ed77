"""One file made of the fragments in a folder."""

from __future__ import annotations

import codecs
import hashlib
import os
from typing import List, Optional, Sequence

from nodectl.agent import attributes, edited_text, replace
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Make a file of the fragments that lie in a folder, in the order of their names",
    params={
        "src": Param("path", required=True, help="the folder, on the node; on the controller with remote_src: false"),
        "dest": Param("path", required=True, help="the file that is made"),
        "delimiter": Param(help="what stands between two fragments; \\n and the like mean what they mean in C"),
        "regexp": Param(help="only fragments whose name it finds"),
        "ignore_hidden": Param("bool", default=False, help="leave out names that begin with a dot"),
        "remote_src": Param("bool", default=True, help="src is on the node"),
        "decrypt": Param("bool", default=True, help="with remote_src: false, take the clear text of vault-encrypted fragments"),
        **replace.PARAMS,
        **attributes.PARAMS,
    },
    returns={"dest": "the file", "src": "the folder", "checksum": "SHA-1 of the content", "md5sum": "MD5 of the content", "backup_file": "the kept old file"},
    example="- assemble: {src: /etc/ssh/parts, dest: /etc/ssh/sshd_config, validate: '/usr/sbin/sshd -t -f %s'}\n",
)


def fragments(folder: str, regexp: Optional[str], ignore_hidden: bool) -> List[str]:
    """Paths in the order in which they are put together."""
    pattern = None if regexp is None else edited_text.pattern(regexp, "regexp")
    names = [name for name in sorted(os.listdir(folder)) if pattern is None or pattern.search(name)]
    paths = [os.path.join(folder, name) for name in names if not (ignore_hidden and name.startswith("."))]
    return [path for path in paths if os.path.isfile(path)]


def joined(parts: Sequence[bytes], delimiter: Optional[str]) -> bytes:
    """A fragment that does not end with a newline is given one before the next; so is the delimiter."""
    between = b"" if not delimiter else codecs.escape_decode(delimiter.encode("utf-8", "surrogateescape"))[0]
    between += b"\n" if between and not between.endswith(b"\n") else b""
    return between.join([*(part if part.endswith(b"\n") else part + b"\n" for part in parts[:-1]), *parts[-1:]])


def read(system: System, args: Args) -> State:
    src, dest = os.path.expanduser(args["src"]), os.path.expanduser(args["dest"])
    if not os.path.isdir(src):
        raise Failed(f"Source ({src}) {'is not a directory' if os.path.lexists(src) else 'does not exist'}")
    there = attributes.look(system.stat(dest, follow=True))
    if there["kind"] not in ("file", "absent"):
        raise Failed(f"{dest} is a {there['kind']}, not a file")
    after = joined([system.read(path) or b"" for path in fragments(src, args["regexp"], args["ignore_hidden"])], args["delimiter"])
    return {"dest": dest, "there": there, "ids": attributes.wished(args), "before": system.read(dest), "after": after}


def diff(args: Args, state: State) -> Change:
    dest, there = state["dest"], state["there"]
    actions = [f"put the fragments together in {dest}"] if state["before"] != state["after"] else []
    if there["kind"] != "absent":
        actions += attributes.differences(dest, args, state["ids"], there)
    return Change(actions, replace.shown(state["before"]), replace.shown(state["after"]), dest, args["src"])


def write(system: System, args: Args, state: State, change: Change) -> None:
    dest = os.path.realpath(state["dest"])
    if state["before"] == state["after"]:
        attributes.apply(dest, args, state["ids"])
        return
    change.data["backup_file"] = replace.put(system, dest, state["after"], args, state["ids"], state["there"])


def values(args: Args, state: State, change: Change) -> Args:
    sums = {"checksum": replace.sha1(state["after"]), "md5sum": hashlib.md5(state["after"]).hexdigest()}  # noqa: S324 -- as Ansible returns it
    kept = {"backup_file": change.data["backup_file"]} if change.data.get("backup_file") else {}
    return {"src": args["src"], "dest": state["dest"], **sums, **kept, **attributes.returned(state["dest"], state["there"])}
