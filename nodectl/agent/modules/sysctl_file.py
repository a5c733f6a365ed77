"""sysctl_file: all kernel parameters of one drop-in, in the file and, where this node lets us, live."""

from __future__ import annotations

import os
from typing import Dict, List

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.kernel_keys import PROC, proc_path, read_live, squeeze
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="A file of kernel parameters and their live values; says which take effect only at boot, or do not exist here",
    params={
        "path": Param("path", "The file; what else it held goes.", required=True),
        "settings": Param("dict", "Keys and values.", required=True),
    },
    returns={
        "at_boot": "keys whose live value cannot be set here (a container): the file counts at the next boot",
        "not_here": "keys that this kernel does not have, or whose module is not loaded",
    },
    example="- sysctl_file:\n    path: /etc/sysctl.d/95-site.conf\n    settings: {kernel.kptr_restrict: 2}\n",
)


def read(system: System, args: Args) -> State:
    wished = {str(key): squeeze(str(value)) for key, value in args["settings"].items()}
    wrong = [key for key, value in wished.items() if ".." in key or "\n" in str(args["settings"][key]) or not value]
    if wrong:
        raise Failed(f"no kernel parameters: {' '.join(wrong)}; expected key: value")
    live = {key: read_live(key) for key in wished}
    return {
        "text": (system.read(args["path"]) or b"").decode("utf-8", "replace"),
        "wished": wished,
        "live": live,
        "not_here": sorted(key for key, value in live.items() if value is None),
        "at_boot": sorted(key for key, value in live.items() if value not in (None, wished[key]) and not os.access(proc_path(key), os.W_OK)),
    }


def diff(args: Args, state: State) -> Change:
    text = _text(state["wished"])
    actions = [f"write {args['path']}"] if state["text"] != text else []
    actions += [f"set {key} from {state['live'][key]} to {state['wished'][key]}" for key in _settable(state)]
    return Change(actions, before=state["text"], after=text, before_header=args["path"], after_header=args["path"])


def write(system: System, args: Args, state: State, change: Change) -> None:
    os.makedirs(os.path.dirname(args["path"]), mode=0o755, exist_ok=True)
    system.write_atomic(args["path"], _text(state["wished"]).encode(), mode=0o644, uid=0, gid=0)
    for key in _settable(state):
        try:
            with open(proc_path(key), "w", encoding="utf-8") as file:
                file.write(state["wished"][key])
        except OSError as error:
            raise Failed(f"the kernel refuses {key} = {state['wished'][key]}: {error.strerror} ({args['path']} holds it)") from None


def values(args: Args, state: State, change: Change) -> Args:
    boot: List[str] = state["at_boot"]
    said = [f"{PROC} is read-only here (a container): {len(boot)} values take effect at boot ({' '.join(boot)})"] if boot else []
    return {"at_boot": boot, "not_here": state["not_here"], "warnings": said}


def _settable(state: State) -> List[str]:
    wished: Dict[str, str] = state["wished"]
    return sorted(key for key, value in state["live"].items() if value not in (None, wished[key]) and key not in state["at_boot"])


def _text(wished: Dict[str, str]) -> str:
    return "# Written by nodectl.\n" + "".join(f"{key} = {value}\n" for key, value in sorted(wished.items()))
