"""deb822_repository: one Debian repository in a .sources file of its own."""

from __future__ import annotations

import os
import re
import textwrap
from typing import Any, Dict, List, Optional

from nodectl.agent import attributes, text_file
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

_FLAGS = (
    "allow_downgrade_to_insecure", "allow_insecure", "allow_weak", "by_hash", "check_date", "check_valid_until", "enabled", "pdiffs", "trusted",
)
_LISTS = ("architectures", "components", "languages", "suites", "targets", "uris")
SPEC = Spec(
    summary="A repository's .sources file present, with the key that signs it, or absent.",
    params={
        "name": Param("str", "name of the repository; the file's name is made of it", required=True),
        **{name: Param("list", f"{name} of sources.list(5)", elements="str") for name in _LISTS},
        **{name: Param("bool", f"{name.replace('_', '-')} of sources.list(5)") for name in _FLAGS},
        "types": Param("list", "deb, deb-src", default=["deb"], choices=("deb", "deb-src"), elements="str"),
        "date_max_future": Param("int", "seconds that a release may be ahead of the clock"),
        "inrelease_path": Param("str", "another path of the InRelease file"),
        "signed_by": Param("str", "a keyring on the node, a fingerprint, or the armoured key itself; no address: nodes fetch no keys"),
        "mode": Param("mode", "permissions of the file", default="0644"),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    returns={"repo": "the file's text", "dest": "the file", "key_filename": "the keyring that signed_by names"},
    example=(
        "- deb822_repository:\n    name: nvidia\n    uris: https://mirror.example.org/cuda\n    suites: ./\n    signed_by: /usr/share/keyrings/cuda.gpg\n"
    ),
)
FOLDER = "/etc/apt/sources.list.d"
KEYRINGS = "/etc/apt/keyrings"
_NO_FIELD = ("mode", "state")


def slug(name: str) -> str:
    """Raises Failed for a name of which nothing is left that a file's name may hold."""
    found = re.sub(r"[^a-z0-9-]+", "", re.sub(r"[_\s]+", "-", name.lower()))
    if not found:
        raise Failed(f"{name!r} is no name of a repository: letters, digits and hyphens")
    return found


def _field_name(key: str) -> str:
    return {"name": "X-Repolib-Name", "uris": "URIs"}.get(key, key.replace("_", "-").title())


def text_of(args: Args) -> str:
    """The file's text: fields in the order of their names."""
    lines: List[str] = []
    for key in sorted(args):
        value = args[key]
        if value is None or key in _NO_FIELD:
            continue
        if isinstance(value, bool):
            value = "yes" if value else "no"
        text = " ".join(value) if isinstance(value, list) else str(value)
        if "\n" in text:
            inner = "\n".join(line.strip() or "." for line in text.strip().splitlines())
            text = "\n" + textwrap.indent(inner, "    ")
            lines.append(f"{_field_name(key)}:{text}")
        else:
            lines.append(f"{_field_name(key)}: {text}")
    return "".join(f"{line}\n" for line in lines)


def read(system: System, args: Args) -> State:
    if args["signed_by"] and re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", args["signed_by"]):
        raise Failed("deb822_repository: nodes fetch no keys; give signed_by the key itself, for example \"{{ lookup('file', 'repo.asc') }}\"")
    name = slug(args["name"])
    path = f"{FOLDER}/{name}.sources"
    keys = [f"{KEYRINGS}/{name}.{end}" for end in ("asc", "gpg")]
    there = attributes.look(system.stat(path, follow=True))
    return {"path": path, "text": text_file.read(system, path), "keys": [key for key in keys if os.path.exists(key)], "last_key": keys[-1], "there": there}


def diff(args: Args, state: State) -> Change:
    path = state["path"]
    if args["state"] == "absent":
        change = text_file.change(path, state["text"], None)
        change.actions += [f"remove {key}" for key in state["keys"]]
        return change
    for key in ("name", *_LISTS, "inrelease_path"):
        text_file.one_line(key, " ".join(args[key]) if isinstance(args[key], list) else args[key] or "")
    change = text_file.change(path, state["text"], text_of(args))
    if state["there"]["kind"] == "file":
        change.actions += attributes.differences(path, args, {"uid": None, "gid": None}, state["there"])
    return change


def write(system: System, args: Args, state: State, change: Change) -> None:
    if args["state"] == "absent":
        for path in [*state["keys"], state["path"]]:
            text_file.put(system, path, None)
        return
    text_file.put(system, state["path"], text_of(args), mode=attributes.wished_mode(args["mode"], 0o644, directory=False))


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    key: Optional[str] = state["last_key"] if args["state"] == "absent" else None
    if args["state"] == "present" and args["signed_by"] and os.path.isfile(args["signed_by"]):
        key = args["signed_by"]
    return {"repo": text_of(args) if args["state"] == "present" else None, "dest": state["path"], "key_filename": key}
