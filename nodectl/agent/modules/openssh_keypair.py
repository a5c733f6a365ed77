"""openssh_keypair: a key pair of the node's own, made where it is missing or another one than wished."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Any, Dict, List, Optional

from nodectl.agent import attributes
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="A private and a public ssh key: made, made anew, its comment set, or removed. The private key never leaves the node.",
    params={
        "path": Param("path", "the private key; the public one has .pub behind it", required=True),
        "type": Param("str", "algorithm", default="rsa", choices=("rsa", "dsa", "rsa1", "ecdsa", "ed25519")),
        "size": Param("int", "bits; not given: 4096 (rsa), 256 (ecdsa)"),
        "comment": Param("str", "comment of the public key; not given: none"),
        "force": Param("bool", "make it anew even where one is there", default=False),
        "regenerate": Param(
            "str", "what happens to a key that is there", default="partial_idempotence",
            choices=("never", "fail", "partial_idempotence", "full_idempotence", "always"),
        ),
        "passphrase": Param("str", "not here: a key that a service uses has none", secret=True),
        "backend": Param("str", "ssh-keygen is what there is", default="auto", choices=("auto", "cryptography", "opensshbin")),
        "private_key_format": Param("str", "ssh-keygen's own", default="auto", choices=("auto", "pkcs1", "pkcs8", "ssh")),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
        **attributes.PARAMS,
    },
    returns={
        "filename": "the private key", "type": "algorithm", "size": "bits", "fingerprint": "SHA256:…", "public_key": "type and key, without comment",
        "comment": "the comment",
    },
    example="- openssh_keypair:\n    path: /root/.ssh/id_ed25519\n    type: ed25519\n",
)
_SIZES = {"rsa": 4096, "ecdsa": 256, "ed25519": 256, "dsa": 1024}
# 16384 bits of RSA take minutes on a busy core.
MAKE_SECONDS = 600.0


def read(system: System, args: Args) -> State:
    path = args["path"]
    info = system.stat(path, follow=True)
    if info is not None and stat.S_ISDIR(info.st_mode):
        raise Failed(f"{path} is a directory")
    there = {"there": attributes.look(info), "public_there": system.stat(f"{path}.pub") is not None, "ids": attributes.wished(args)}
    if info is None:
        return dict(there, key=None, public="", folder=os.path.isdir(os.path.dirname(path) or "/"))
    return dict(there, key=_key(system, path), public=_file(system, f"{path}.pub"), folder=True)


def _file(system: System, path: str) -> str:
    return (system.read(path) or b"").decode("utf-8", "surrogateescape").strip()


def _key(system: System, path: str) -> Optional[Dict[str, Any]]:
    """Of the private key itself; None for a file that is none, or one with a passphrase."""
    public = system.run(["ssh-keygen", "-y", "-P", "", "-f", path])
    told = system.run(["ssh-keygen", "-l", "-f", "-"], stdin=public.stdout.encode()) if public.rc == 0 else None
    words = told.stdout.split() if told is not None and told.rc == 0 else []
    if len(words) < 3:
        return None
    kind = words[-1].strip("()").lower()
    return {"size": int(words[0]), "fingerprint": words[1], "type": kind, "public_key": " ".join(public.stdout.split()[:2])}


def _same(args: Args, key: Dict[str, Any]) -> bool:
    size = args["size"] if args["size"] is not None else _SIZES.get(args["type"], 0)
    return bool(key["type"] == args["type"] and (key["size"] == size or args["type"] == "ed25519"))


def diff(args: Args, state: State) -> Change:
    path = args["path"]
    if args["passphrase"]:
        raise Failed("openssh_keypair: a passphrase is not here; a key that a service uses has none")
    if args["state"] == "absent":
        there = [one for one, found in ((path, state["there"]["kind"] != "absent"), (f"{path}.pub", state["public_there"])) if found]
        return Change([f"remove {one}" for one in there], data={"remove": there})
    if not state["folder"]:
        raise Failed(f"there is no folder {os.path.dirname(path)} on this node")
    if _wants_new(args, state):
        return Change([f"make the key pair {path}"], data={"make": True})
    steps = attributes.differences(path, args, state["ids"], state["there"])
    if state["key"] is not None and _public_line(args, state) != state["public"]:
        steps.append(f"write {path}.pub")
    return Change(steps, data={})


def _wants_new(args: Args, state: State) -> bool:
    """Raises Failed where a key is there that must not be replaced."""
    if state["there"]["kind"] == "absent" or args["force"] or args["regenerate"] == "always":
        return True
    key, how = state["key"], args["regenerate"]
    if key is None and how != "full_idempotence":
        raise Failed(f"{args['path']} cannot be read as a private key without a passphrase: force: true or regenerate: full_idempotence replaces it")
    if how == "never":
        return False
    if key is None or not _same(args, key):
        if how == "fail":
            raise Failed(f"{args['path']} is another key than wished, and regenerate is fail")
        return True
    return False


def _comment(public: str) -> str:
    return " ".join(public.split()[2:])


def _public_line(args: Args, state: State) -> str:
    comment = args["comment"] if args["comment"] is not None else _comment(state["public"])
    return f"{state['key']['public_key']} {comment}".strip()


def write(system: System, args: Args, state: State, change: Change) -> None:
    path = args["path"]
    for one in change.data.get("remove", []):
        os.unlink(one)
    if args["state"] == "absent":
        return
    attributes.known(args, state["ids"])
    if change.data.get("make"):
        _make(system, args)
        args.update(force=False, regenerate="partial_idempotence")  # made: the second look asks whether it is the key that was wished
    elif any(step.startswith("write ") for step in change.actions):
        system.write_atomic(f"{path}.pub", f"{_public_line(args, state)}\n".encode("utf-8", "surrogateescape"), mode=0o644)
    attributes.apply(path, args, state["ids"])


def _make(system: System, args: Args) -> None:
    """Beside the old key first: it is replaced only by a new one that is whole."""
    path, fresh = args["path"], f"{args['path']}.nodectl-new"
    size = args["size"] if args["size"] is not None else _SIZES.get(args["type"], 0)
    words: List[str] = ["ssh-keygen", "-q", "-t", args["type"], "-N", "", "-f", fresh, "-C", args["comment"] or ""]
    try:
        done = system.run([*words, *(["-b", str(size)] if args["type"] != "ed25519" else [])], timeout=MAKE_SECONDS)
        if done.rc != 0:
            raise Failed(f"ssh-keygen: {(done.stderr.strip() or done.stdout.strip())}", rc=done.rc)
        os.rename(fresh, path)
        os.rename(f"{fresh}.pub", f"{path}.pub")
    finally:
        for left in (fresh, f"{fresh}.pub"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    found: Dict[str, Any] = {"filename": args["path"], "type": args["type"]}
    if args["state"] == "absent":
        return {}
    if state["key"] is None:
        return dict(found, size=args["size"] if args["size"] is not None else _SIZES.get(args["type"], 0), comment=args["comment"] or "")
    return dict(found, **state["key"], comment=_comment(state["public"]) or args["comment"] or "")
