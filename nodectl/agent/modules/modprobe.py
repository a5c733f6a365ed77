"""modprobe: kernel modules loaded now, and at boot."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Load or unload a kernel module, and keep it so over boots.",
    params={
        "name": Param("str", "module name", required=True),
        "params": Param("str", "module parameters", default=""),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
        "persistent": Param("str", "what happens at boot: disabled = left as it is", default="disabled", choices=("disabled", "present", "absent")),
    },
    returns={"available": "whether modules can be loaded here at all (or this one is there already)", "builtin": "whether the kernel has it built in"},
    example="- modprobe:\n    name: nvme_rdma\n    state: present\n    persistent: present\n",
)
LOAD_SECONDS = 120.0  # a driver that resets eight network cards takes up to a minute


def read(system: System, args: Args) -> State:
    name = _kernel(args["name"])
    table = system.read("/proc/modules")
    loaded = table is not None and any(_kernel(line.split(" ")[0]) == name for line in table.decode().splitlines())
    builtin = not loaded and (os.path.isdir(f"/sys/module/{name}") or _listed_builtin(system, name))
    return {
        "loaded": loaded, "builtin": builtin, "table": table is not None, "tree": os.path.isdir(f"/lib/modules/{os.uname().release}"),
        "load_file": _text(system, _load_file(args)), "options_file": _text(system, _options_file(args)),
    }


def _kernel(name: str) -> str:
    return name.strip().replace("-", "_")


def _listed_builtin(system: System, name: str) -> bool:
    raw = system.read(f"/lib/modules/{os.uname().release}/modules.builtin") or b""
    return any(_kernel(os.path.basename(line).split(".ko")[0]) == name for line in raw.decode().splitlines())


def _text(system: System, path: str) -> str:
    return (system.read(path) or b"").decode("utf-8", "replace")


def _load_file(args: Args) -> str:
    return f"/etc/modules-load.d/{args['name']}.conf"


def _options_file(args: Args) -> str:
    return f"/etc/modprobe.d/{args['name']}.conf"


def _files(args: Args) -> Dict[str, str]:
    """Wished contents per state key; "" means no file."""
    if args["persistent"] == "disabled":
        return {}
    present = args["persistent"] == "present"
    options = f"options {args['name']} {args['params']}\n" if present and args["params"] else ""
    return {"load_file": f"{args['name']}\n" if present else "", "options_file": options}


def diff(args: Args, state: State) -> Change:
    """Raises Failed where this kernel cannot load modules: that is known before anything is tried."""
    steps: List[str] = []
    here = state["loaded"] or state["builtin"]
    if args["state"] == "present" and not here:
        if not state["table"]:
            raise Failed(f"this kernel cannot load modules here (there is no /proc/modules), and {args['name']} is not built in", available=False)
        steps.append(f"load {args['name']}")
    if args["state"] == "absent" and state["builtin"]:
        raise Failed(f"{args['name']} is built into this kernel and cannot be unloaded", available=True)
    if args["state"] == "absent" and state["loaded"]:
        steps.append(f"unload {args['name']}")
    paths = {"load_file": _load_file(args), "options_file": _options_file(args)}
    wishes = _files(args)
    changed = [key for key in wishes if wishes[key] != state[key]]
    steps += [f"{'write' if wishes[key] else 'remove'} {paths[key]}" for key in changed]
    return Change(actions=steps, before="".join(state[key] for key in changed), after="".join(wishes[key] for key in changed), data={"files": changed})


def write(system: System, args: Args, state: State, change: Change) -> None:
    if any(step.startswith("load ") for step in change.actions):
        _modprobe(system, ["modprobe", args["name"], *args["params"].split()], args, state)
    if any(step.startswith("unload ") for step in change.actions):
        _modprobe(system, ["modprobe", "-r", args["name"]], args, state)
    paths = {"load_file": _load_file(args), "options_file": _options_file(args)}
    for key in change.data["files"]:
        if _files(args)[key]:
            os.makedirs(os.path.dirname(paths[key]), mode=0o755, exist_ok=True)
            system.write_atomic(paths[key], _files(args)[key].encode())
        elif os.path.exists(paths[key]):
            os.unlink(paths[key])


def _modprobe(system: System, argv: List[str], args: Args, state: State) -> None:
    done = system.run(argv, timeout=LOAD_SECONDS)
    if done.rc != 0:
        why = "" if state["tree"] else f" (there is no /lib/modules/{os.uname().release}: this kernel cannot load modules here)"
        raise Failed(f"{' '.join(argv)}: {done.stderr.strip() or f'exit code {done.rc}'}{why}", rc=done.rc, stderr=done.stderr, available=state["tree"])


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {"name": args["name"], "params": args["params"], "available": state["table"] or state["builtin"], "builtin": state["builtin"]}
