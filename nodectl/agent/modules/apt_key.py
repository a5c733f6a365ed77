"""apt_key: keys that apt trusts for every repository. Old: deb822_repository's signed_by trusts a key for one."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from nodectl.agent import pgp_keys
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="A key of a Debian repository present in or absent from apt's keyring, where the node still has apt-key.",
    params={
        "id": Param("str", "key id; not given: that of the first key in data or file"),
        "data": Param("str", "the key, armoured"),
        "file": Param("path", "a file on the node that holds it"),
        "keyring": Param("path", "another keyring than apt's own"),
        "url": Param("str", "not here: nodes fetch no keys"),
        "keyserver": Param("str", "not here: nodes fetch no keys"),
        "validate_certs": Param("bool", "without a url there is nothing to verify", default=True),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    mutually_exclusive=(("data", "file", "keyserver", "url"),),
    returns={
        "id": "the key's id", "fp": "its last 16 digits", "short_id": "its last 8 digits", "key_id": "the id as it is compared",
        "before": "ids in the keyring as it was", "after": "ids in the keyring as it is",
    },
    example="- apt_key:\n    data: \"{{ lookup('file', 'repo.asc') }}\"\n    keyring: /etc/apt/trusted.gpg.d/repo.gpg\n",
)


def read(system: System, args: Args) -> State:
    if args["url"] or args["keyserver"]:
        raise Failed("apt_key: nodes fetch no keys; give the key itself, for example data: \"{{ lookup('file', 'repo.asc') }}\"")
    data = _data(system, args)
    key = pgp_keys.normal(args["id"]) if args["id"] else pgp_keys.show(system, data, "the key")[0].id if data is not None else ""
    if not key:
        raise Failed("apt_key: one of id, data, file is needed")
    return {"id": key, "keys": _listed(system, args), "data": data}


def _data(system: System, args: Args) -> Optional[bytes]:
    if args["data"] is not None:
        return str(args["data"]).encode("utf-8", "surrogateescape")
    if args["file"] is None:
        return None
    data = system.read(args["file"])
    if data is None:
        raise Failed(f"there is no file {args['file']} on this node")
    return data


def _apt_key(args: Args) -> List[str]:
    return ["apt-key", *(["--keyring", args["keyring"]] if args["keyring"] else [])]


def _listed(system: System, args: Args) -> List[str]:
    done = system.run([*_apt_key(args), "adv", "--list-public-keys", "--keyid-format=long", "--with-colons"])
    if done.rc != 0:
        raise Failed(f"apt-key does not list its keys: {done.stderr.strip()}", rc=done.rc)
    return [line.split(":")[4] for line in done.stdout.splitlines() if line.startswith(("pub:", "sub:"))]


def _there(args: Args, state: State) -> bool:
    # As Ansible: of a longer id the last 16 digits count; one of 8 digits is compared with the last 8.
    key = state["id"][-16:]
    return any(listed.endswith(key) for listed in state["keys"])


def diff(args: Args, state: State) -> Change:
    there = _there(args, state)
    if args["state"] == "present" and not there:
        if state["data"] is None:
            raise Failed(f"apt_key: {state['id']} is not in the keyring, and neither data nor file brings it")
        return Change([f"trust the key {state['id']}"], data={"before": state["keys"]})
    steps = [f"remove the key {state['id']}"] if args["state"] == "absent" and there else []
    return Change(steps, data={"before": state["keys"]})


def write(system: System, args: Args, state: State, change: Change) -> None:
    if args["state"] == "present":
        done = system.run([*_apt_key(args), "add", "-"], stdin=state["data"])
    else:
        done = system.run([*_apt_key(args), "del", state["id"][-8:]])
    if done.rc != 0:
        raise Failed(f"apt-key: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    key = state["id"]
    before, after = ([one[-8:] for one in keys] if len(key) == 8 else keys for keys in (change.data["before"], state["keys"]))
    found = {"id": args["id"] or key, "key_id": key, "fp": key[-16:], "short_id": key[-8:], "before": before}
    return dict(found, after=after) if change and after != before else found
