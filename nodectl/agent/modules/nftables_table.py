"""nftables_table: one table of the packet filter, in its file and live; loaded in one transaction, taken back by the node itself unless confirmed.

Other tables (those of docker, kubernetes or a site) are never touched. What the kernel makes of the wished text is found by loading it
into a network namespace that ends at once: that is the check, and its listing is what the live table must be.
"""

from __future__ import annotations

import os
from typing import List

from nodectl.agent import access_guard
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.own_folder import own_folder
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

GUARD = "firewall"
# nft answers within 0.1 s; a table with thousands of addresses takes a second.
NFT_SECONDS = 30.0
_TRIAL = 'nft -f "$1" && nft list table $2'

SPEC = Spec(
    summary="One table of nftables: validated in a namespace of its own, loaded atomically, proven by a fresh login, reverted by the node itself otherwise",
    params={
        "table": Param("str", "Family and name.", default="inet nodectl"),
        "content": Param("str", "The chains and sets of the table, as nft reads them between its braces; needed for state present."),
        "path": Param("path", "The file that is loaded at boot.", default="/etc/nftables.d/nodectl.nft"),
        "state": Param("str", "What is wished.", default="present", choices=("present", "absent")),
        "revert_after": Param("int", "Seconds until the node restores what was there unless the login was confirmed.", default=60),
    },
    required_if=(("state", "present", ("content",)),),
    returns={"pending": "true while the node waits for access_confirm before it restores what was there before."},
    example=(
        "- nftables_table:\n    content: |\n      chain input {\n        type filter hook input priority 0; policy drop;\n"
        "        tcp dport 22 accept\n      }\n"
    ),
)


def read(system: System, args: Args) -> State:
    """File and live table, and what the live one must be. Raises Failed for a text that nft refuses."""
    if args["revert_after"] < 1:
        raise Failed("revert_after must be at least 1 second: it is the time that a fresh login has")
    family, _, name = args["table"].partition(" ")
    if not (family.isalnum() and name.replace("_", "").replace("-", "").isalnum()):
        raise Failed(f"table is '{args['table']}'; expected a family and a name, as in inet nodectl")
    old = system.read(args["path"])
    return {
        "text": None if old is None else old.decode("utf-8", "replace"),
        "live": _listed(system, args),
        "wished": _trial(system, args) if args["state"] == "present" else "",
        "pending": access_guard.is_armed(GUARD),
    }


def diff(args: Args, state: State) -> Change:
    text = _text(args)
    actions: List[str] = []
    if state["text"] != text:
        actions.append(f"{'write' if text is not None else 'remove'} {args['path']}")
    if state["live"] != state["wished"]:
        actions.append(f"{'load' if state['wished'] else 'delete'} table {args['table']}, prove a fresh login")
    header = f"table {args['table']}"
    return Change(actions, before=state["live"], after=state["wished"], before_header=header, after_header=header)


def write(system: System, args: Args, state: State, change: Change) -> None:
    text = _text(args)
    beside = {"before.nft": (_gone(args) + state["live"]).encode()}
    access_guard.arm(system, access_guard.Guard(GUARD, [args["path"]], "nft -f before.nft", beside), args["revert_after"])
    try:
        if text is None:
            os.unlink(args["path"]) if state["text"] is not None else None
            _load(system, _gone(args))
        else:
            os.makedirs(os.path.dirname(args["path"]), mode=0o755, exist_ok=True)
            system.write_atomic(args["path"], text.encode(), mode=0o600, uid=0, gid=0)
            _load(system, text)
    except (Failed, OSError) as error:
        access_guard.take_back(system, GUARD)
        raise Failed(f"{error}; the table is as it was") from None


def values(args: Args, state: State, change: Change) -> Args:
    return {"pending": state["pending"]}


def _gone(args: Args) -> str:
    """Deletes the table whether or not it is there: naming it first makes it."""
    return f"table {args['table']}\ndelete table {args['table']}\n"


def _text(args: Args) -> "str | None":
    if args["state"] == "absent":
        return None
    head = "# Written by nodectl. One transaction: there is no moment without the table.\n"
    return f"{head}{_gone(args)}table {args['table']} {{\n{args['content'].rstrip()}\n}}\n"


def _listed(system: System, args: Args) -> str:
    """The live table as nft lists it, "" when there is none."""
    if system.which("nft") is None:
        return ""
    done = system.run(["nft", "list", "table", *args["table"].split()], timeout=NFT_SECONDS)
    return done.stdout if done.rc == 0 else ""


def _trial(system: System, args: Args) -> str:
    if system.which("nft") is None:  # a rehearsal before the package is there; the real change says so itself
        return args["content"] or ""
    with own_folder("/run") as folder, open(os.path.join(folder, "trial.nft"), "w", encoding="utf-8") as file:
        file.write(_text(args) or "")
        file.flush()
        done = system.run(["unshare", "--net", "sh", "-c", _TRIAL, "sh", file.name, args["table"]], timeout=NFT_SECONDS)
        if done.rc != 0:
            raise Failed(f"nft refuses the rules, nothing was changed: {' '.join(done.stderr.replace(file.name, args['path']).split())}", rc=done.rc)
    return done.stdout


def _load(system: System, text: str) -> None:
    done = system.run(["nft", "-f", "-"], stdin=text.encode(), timeout=NFT_SECONDS)
    if done.rc != 0:
        raise Failed(f"nft did not load the table: {done.stderr.strip()}", rc=done.rc)
