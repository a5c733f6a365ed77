"""known_hosts: keys of ssh servers that this node trusts."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from typing import Any, Dict, List, NamedTuple, Optional

from nodectl.agent import text_file
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="A server's key present in a known_hosts file, one per type, or absent.",
    params={
        "name": Param("str", "the host, as it stands in the key's line", required=True, aliases=("host",)),
        "key": Param("str", "the line: host, type, key; not needed to remove all keys of the host"),
        "path": Param("path", "the file", default="~/.ssh/known_hosts"),
        "hash_host": Param("bool", "write the host's name as a hash", default=False),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    returns={"name": "the host", "key": "the wish", "path": "the file", "hash_host": "the wish", "state": "the wish"},
    example="- known_hosts:\n    name: storage.example.org\n    key: storage.example.org ssh-ed25519 AAAA…\n    path: /etc/ssh/ssh_known_hosts\n",
)


class Entry(NamedTuple):
    """One line: ``marker`` is @cert-authority, @revoked or ""; ``hosts`` as written."""

    marker: str
    hosts: str
    type: str
    key: str


def parse(line: str) -> Optional[Entry]:
    words = line.split()
    if not words or words[0].startswith("#"):
        return None
    marker = words.pop(0) if words[0].startswith("@") else ""
    return Entry(marker, *words[:3]) if len(words) >= 3 else None


def names(entry: Entry, host: str) -> bool:
    """Whether the line is about ``host``: one of its names, or their hash."""
    if entry.hosts.startswith("|1|"):
        parts = entry.hosts.split("|")
        try:
            salt, digest = base64.b64decode(parts[2]), base64.b64decode(parts[3])
        except (ValueError, IndexError):
            return False
        return hmac.compare_digest(hmac.new(salt, host.encode(), hashlib.sha1).digest(), digest)
    return host in (name.lower() for name in entry.hosts.split(","))


def hashed(line: str, host: str, salt: bytes) -> str:
    entry = parse(line)
    assert entry is not None
    digest = hmac.new(salt, host.encode(), hashlib.sha1).digest()
    name = f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
    rest = line.split()[(2 if entry.marker else 1) :]
    return " ".join([*([entry.marker] if entry.marker else []), name, *rest])


def read(system: System, args: Args) -> State:
    path = os.path.expanduser(args["path"])
    return {"path": path, "text": text_file.read(system, path)}


def diff(args: Args, state: State) -> Change:
    host, wish = args["name"].lower(), _wish(args)
    lines = (state["text"] or "").splitlines(keepends=True)
    about = [(at, entry) for at, entry in ((at, parse(line)) for at, line in enumerate(lines)) if entry is not None and names(entry, host)]
    drop = _dropped(args, wish, about)
    same = any(_same(entry, wish) for _, entry in about) if wish is not None else False
    kept = [line for at, line in enumerate(lines) if at not in drop]
    if args["state"] == "present" and not same and wish is not None:
        line = hashed(args["key"], host, os.urandom(20)) if args["hash_host"] else args["key"].strip("\n")
        kept = [*kept[:-1], *(line if line.endswith("\n") else f"{line}\n" for line in kept[-1:]), f"{line}\n"]
    return text_file.change(state["path"], state["text"], "".join(kept) if kept or state["text"] is not None else None)


def _wish(args: Args) -> Optional[Entry]:
    """The key as given. Raises Failed for a line that is no key, or not this host's."""
    host = args["name"].lower()
    if "," in host or not host or len(host.split()) != 1:
        raise Failed(f"{args['name']!r} is to be one host")
    if args["key"] is None:
        if args["state"] == "present":
            raise Failed("known_hosts: key is needed to make a host known")
        return None
    entry = parse(text_file.one_line("key", args["key"].strip("\n")))
    if entry is None or not names(entry, host):
        raise Failed(f"key is not a line for {args['name']}: expected '{args['name']} ssh-ed25519 AAAA…'")
    return entry


def _same(entry: Entry, wish: Entry) -> bool:
    return (entry.marker, entry.type, entry.key) == (wish.marker, wish.type, wish.key) and (
        entry.hosts == wish.hosts or (entry.hosts.startswith("|1|") and wish.hosts.startswith("|1|"))
    )


def _dropped(args: Args, wish: Optional[Entry], about: "List[tuple[int, Entry]]") -> List[int]:
    """Lines that go: all of the host without a key, the same key, or for a new key the one of its type that it replaces."""
    if wish is None:
        return [at for at, _ in about]
    hashing = args["hash_host"]
    same = [at for at, entry in about if _same(entry, wish._replace(hosts=entry.hosts) if hashing and entry.hosts.startswith("|1|") else wish)]
    if args["state"] == "absent":
        return same[:1]
    return [] if same else [at for at, entry in about if not entry.marker and entry.type == wish.type][:1]


def write(system: System, args: Args, state: State, change: Change) -> None:
    text_file.put(system, state["path"], change.data["after"])


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return dict({key: args[key] for key in ("name", "key", "hash_host", "state")}, path=state["path"])
