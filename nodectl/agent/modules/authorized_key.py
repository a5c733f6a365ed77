"""authorized_key: who may log in as a user."""

from __future__ import annotations

import base64
import binascii
import os
import pwd
import stat
from typing import Any, Dict, List, NamedTuple, Optional

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Public keys in a user's authorized_keys, present, absent or exactly these.",
    params={
        "user": Param("str", "whose file", required=True),
        "key": Param("str", "public key lines", required=True),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
        "exclusive": Param("bool", "remove all other keys", default=False),
        "path": Param("path", "another file than ~user/.ssh/authorized_keys"),
        "manage_dir": Param("bool", "make the folder and set its mode and owner", default=True),
        "key_options": Param("str", "options written before the key"),
        "comment": Param("str", "comment instead of the key's own"),
    },
    returns={"keyfile": "the file", "user": "the user", "keys": "how many keys it holds"},
    example="- authorized_key:\n    user: ops\n    key: \"{{ lookup('file', '~/.ssh/id_ed25519.pub') }}\"\n",
)
_TYPES = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")


class Key(NamedTuple):
    """One line: ``blob`` (base64) is the key's identity."""

    options: str
    type: str
    blob: str
    comment: str

    def line(self) -> str:
        return " ".join(part for part in self if part)


def parse_line(line: str) -> Optional[Key]:
    """A key line's parts; None for comments and blank lines. Options may hold blanks within quotes."""
    text = line.strip()
    if not text or text.startswith("#"):
        return None
    words = _words(text)
    at = next((i for i, word in enumerate(words[:2]) if word.startswith(_TYPES)), -1)
    if at < 0 or len(words) < at + 2:
        return None
    return Key(" ".join(words[:at]), words[at], words[at + 1], " ".join(words[at + 2 :]))


def _words(text: str) -> List[str]:
    """Split at blanks outside of double quotes; as in sshd, a quote behind a backslash is none."""
    words, current, quoted = [], "", False
    for char in text:
        quoted = quoted != (char == '"' and not current.endswith("\\"))
        if char.isspace() and not quoted:
            words += [current] if current else []
            current = ""
        else:
            current += char
    return words + ([current] if current else [])


def wished(args: Args) -> List[Key]:
    """The keys as given. Raises Failed for a line that is no key."""
    if args["key"].startswith(("http://", "https://")):
        raise Failed("key is an address: nodes fetch no keys; give the key itself, for example with lookup('url', …)")
    keys = []
    for line in args["key"].splitlines():
        if not line.strip() or line.strip().startswith("#"):
            continue
        key = parse_line(line)
        if key is None or not _valid(key):
            raise Failed(f"this is no public key: {line.strip()[:60]!r}; expected 'ssh-ed25519 AAAA… comment'")
        options = args["key_options"] if args["key_options"] is not None else key.options
        keys.append(key._replace(options=options, comment=args["comment"] if args["comment"] is not None else key.comment))
    if not keys:
        raise Failed("key holds no public key")
    return keys


def _valid(key: Key) -> bool:
    """The blob is a row of length-prefixed fields, the first of which is its type: a key cut off or of another type is not."""
    try:
        raw = base64.b64decode(key.blob, validate=True)
    except (binascii.Error, ValueError):
        return False
    fields: List[bytes] = []
    while len(raw) >= 4:
        length = int.from_bytes(raw[:4], "big")
        if len(raw) < 4 + length:
            return False
        fields.append(raw[4 : 4 + length])
        raw = raw[4 + length :]
    return not raw and len(fields) > 1 and fields[0] == key.type.encode("utf-8")


def read(system: System, args: Args) -> State:
    try:
        entry = pwd.getpwnam(args["user"])
    except KeyError:
        return {"user": False, "text": "", "path": args["path"] or f"~{args['user']}/.ssh/authorized_keys", "good": True}
    path = args["path"] or os.path.join(entry.pw_dir, ".ssh", "authorized_keys")
    info, folder = system.stat(path), system.stat(os.path.dirname(path))
    if info is not None and not stat.S_ISREG(info.st_mode):
        raise Failed(f"{path} is not a plain file (a link could lead root's writing elsewhere): replace it")
    if folder is not None and args["path"] is None and not stat.S_ISDIR(folder.st_mode):
        raise Failed(f"{os.path.dirname(path)} is not a folder (a link could lead root's writing elsewhere): replace it")
    good = info is None or (stat.S_IMODE(info.st_mode) & 0o022 == 0 and info.st_uid in (entry.pw_uid, 0))
    raw = system.read(path) or b""
    return {"user": True, "text": raw.decode("utf-8", "surrogateescape"), "path": path, "good": good, "uid": entry.pw_uid, "gid": entry.pw_gid}


def new_text(args: Args, old: str, wish: List[Key]) -> str:
    """The file as wished; lines that are not concerned stay byte for byte."""
    blobs = {key.blob: key for key in wish}
    out: List[str] = []
    placed = set()
    for line in old.splitlines(keepends=True):
        key = parse_line(line)
        if key is None or key.blob not in blobs:
            if key is None or not args["exclusive"] or args["state"] == "absent":
                out.append(line)
        elif args["state"] == "present" and key.blob not in placed:
            placed.add(key.blob)
            out.append(line if _same(args, key, blobs[key.blob]) else blobs[key.blob].line() + "\n")
    if args["state"] == "present":
        if out and not out[-1].endswith("\n"):
            out[-1] += "\n"
        for key in wish:
            if key.blob not in placed:
                placed.add(key.blob)
                out.append(key.line() + "\n")
    return "".join(out)


def _same(args: Args, have: Key, wish: Key) -> bool:
    """A comment alone is no reason to rewrite a line, unless one was asked for."""
    return (have.options, have.type) == (wish.options, wish.type) and (args["comment"] is None or have.comment == wish.comment)


def diff(args: Args, state: State) -> Change:
    after = new_text(args, state["text"], wished(args))
    steps = [f"write {state['path']}"] if after != state["text"] else []
    if not state["good"] and args["manage_dir"]:
        steps.append(f"set owner and mode of {state['path']}")
    header = state["path"]
    return Change(actions=steps, before=state["text"], after=after, before_header=header, after_header=header)


def write(system: System, args: Args, state: State, change: Change) -> None:
    if not state["user"]:
        raise Failed(f"there is no user {args['user']} on this node; make it first with the user module")
    folder = os.path.dirname(state["path"])
    if args["manage_dir"] and not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700)
        os.chown(folder, state["uid"], state["gid"])
    system.write_atomic(state["path"], change.after.encode("utf-8", "surrogateescape"), mode=0o600, uid=state["uid"], gid=state["gid"], follow=False)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {"keyfile": state["path"], "user": args["user"], "keys": sum(parse_line(line) is not None for line in state["text"].splitlines())}
