"""dpkg_selections: what dpkg is told to do with a package; hold keeps its version."""

from __future__ import annotations

from nodectl.agent import package_locks
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Set a package's selection in dpkg: hold keeps apt from changing its version.",
    params={
        "name": Param("str", "package name", required=True),
        "selection": Param("str", "what is wished", required=True, choices=("install", "hold", "deinstall", "purge")),
    },
    returns={"before": "the selection before", "after": "the selection after"},
    example="- dpkg_selections:\n    name: nvidia-driver-570\n    selection: hold\n",
)
# dpkg's own lock is held for as long as somebody else's installation takes.
LOCK_SECONDS = 300


def read(system: System, args: Args) -> State:
    """The selection, "" for a package that dpkg does not know."""
    done = system.run(["dpkg-query", "-W", "-f", "${db:Status-Want}\n", args["name"]])
    return {"selection": done.stdout.split("\n")[0].strip() if done.rc == 0 else ""}


def diff(args: Args, state: State) -> Change:
    now, wish = state["selection"], args["selection"]
    if now in ("", "unknown"):
        raise Failed(f"dpkg does not know {args['name']}: install it first, a selection of nothing holds nothing")
    return Change(actions=[f"{args['name']}: {now} to {wish}"], before=f"{now}\n", after=f"{wish}\n") if now != wish else Change()


def write(system: System, args: Args, state: State, change: Change) -> None:
    package_locks.wait_free(system, package_locks.DPKG, LOCK_SECONDS)
    done = system.run(["dpkg", "--set-selections"], stdin=f"{args['name']} {args['selection']}\n".encode())
    if done.rc != 0:
        raise Failed(f"dpkg --set-selections: {done.stderr.strip() or f'exit code {done.rc}'}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> "dict[str, str]":
    return {"before": change.before.strip() or state["selection"], "after": args["selection"]}
