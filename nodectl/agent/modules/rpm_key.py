"""rpm_key: keys that rpm trusts."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List

from nodectl.agent import pgp_keys
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="A key in rpm's database present or absent.",
    params={
        "key": Param("str", "a file on the node that holds the key, or a key id", required=True),
        "fingerprint": Param("list", "fingerprints that a key to be imported must have", elements="str"),
        "validate_certs": Param("bool", "nodes fetch no keys, so there is nothing to verify", default=True),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    returns={},
    example="- rpm_key:\n    key: /etc/pki/rpm-gpg/RPM-GPG-KEY-repo\n",
)


def read(system: System, args: Args) -> State:
    key = args["key"]
    if "://" in key:
        raise Failed("rpm_key: nodes fetch no keys; copy the key to the node and name its file")
    if re.match(r"(0x)?[0-9a-fA-F]{8}", key):
        keys = [pgp_keys.PublicKey(pgp_keys.normal(key), "")]
    elif os.path.isfile(key):
        keys = pgp_keys.show(system, system.read(key) or b"", key)
    else:
        raise Failed(f"{key!r} is neither a file on this node nor a key id")
    return {"id": keys[0].id, "fingerprints": [one.fingerprint for one in keys], "trusted": _trusted(system)}


def _trusted(system: System) -> List[str]:
    """Ids of the keys in rpm's database."""
    done = system.run(["rpm", "-q", "gpg-pubkey", "--qf", "%{description}\n"])
    if done.rc != 0 or not done.stdout.strip():
        return []
    return [key.id for key in pgp_keys.show(system, done.stdout.encode(), "rpm's database")]


def diff(args: Args, state: State) -> Change:
    there = any(one.endswith(state["id"][-16:]) for one in state["trusted"])
    if args["state"] == "absent":
        return Change([f"remove the key {state['id']}"] if there else [])
    if there:
        return Change()
    if not state["fingerprints"][0]:
        raise Failed(f"rpm_key: {state['id']} is not trusted yet: name a file that holds the key")
    wanted = {"".join(text.split()).upper() for text in args["fingerprint"] or []}
    if not wanted <= set(state["fingerprints"]):
        raise Failed(f"rpm_key: the key in {args['key']} has the fingerprint {', '.join(state['fingerprints'])}, not {', '.join(sorted(wanted))}")
    return Change([f"trust the key {state['id']}"])


def write(system: System, args: Args, state: State, change: Change) -> None:
    erase = ["--erase", "--allmatches", f"gpg-pubkey-{state['id'][-8:].lower()}"]
    done = system.run(["rpm", *(erase if args["state"] == "absent" else ["--import", args["key"]])])
    if done.rc != 0:
        raise Failed(f"rpm: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {}
