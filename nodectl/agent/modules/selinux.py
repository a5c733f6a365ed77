"""selinux: SELinux's mode and policy, on nodes that have it."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List

from nodectl.agent import text_file
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

ENFORCE = "/sys/fs/selinux/enforce"
SPEC = Spec(
    summary="SELinux's mode in its file and, where it is on, in the running kernel; says when only a boot makes it so.",
    params={
        "state": Param("str", "what is wished", required=True, choices=("enforcing", "permissive", "disabled")),
        "policy": Param("str", "the policy, as targeted; needed unless disabled"),
        "configfile": Param("str", "its file", default="/etc/selinux/config", aliases=("conf", "file")),
        "update_kernel_param": Param("bool", "not here: kernel_cmdline does it", default=False),
    },
    returns={"configfile": "the file", "policy": "the policy", "state": "the mode", "reboot_required": "whether only a boot makes it so"},
    example="- selinux:\n    policy: targeted\n    state: enforcing\n",
)


def read(system: System, args: Args) -> State:
    if args["update_kernel_param"]:
        raise Failed("selinux: update_kernel_param is not here; the module kernel_cmdline sets selinux=0 or 1")
    text = text_file.read(system, args["configfile"])
    if text is None:
        raise Failed(f"there is no {args['configfile']} on this node: it has no SELinux")
    if args["state"] != "disabled" and not args["policy"]:
        raise Failed("selinux: policy is needed unless the state is disabled")
    raw = system.read(ENFORCE) if os.path.exists(ENFORCE) else None
    live = "disabled" if raw is None else "enforcing" if raw.strip() == b"1" else "permissive"
    return {"text": text, "live": live}


def _value(text: str, key: str) -> str:
    found = re.search(rf"^{key}=(\S*)", text, re.MULTILINE)
    return found.group(1) if found else ""


def _with(text: str, key: str, value: str) -> str:
    if re.search(rf"^{key}=", text, re.MULTILINE):
        return re.sub(rf"^{key}=.*$", f"{key}={text_file.one_line(key, value)}", text, flags=re.MULTILINE)
    return text + ("" if text.endswith("\n") or not text else "\n") + f"{key}={value}\n"


def diff(args: Args, state: State) -> Change:
    policy = args["policy"] or _value(state["text"], "SELINUXTYPE")
    after = _with(state["text"], "SELINUX", args["state"])
    after = _with(after, "SELINUXTYPE", policy) if policy else after
    change = text_file.change(args["configfile"], state["text"], after)
    change.data.update(after=after, policy=policy)
    # Off and on are a matter of the next boot; between the two modes the kernel changes at once.
    if state["live"] != "disabled" and args["state"] != "disabled" and state["live"] != args["state"]:
        change.actions.append(f"make SELinux {args['state']}")
    return change


def write(system: System, args: Args, state: State, change: Change) -> None:
    if change.data["after"] != state["text"]:
        text_file.put(system, args["configfile"], change.data["after"])
    if any(step.startswith("make ") for step in change.actions):
        done = system.run(["setenforce", "1" if args["state"] == "enforcing" else "0"])
        if done.rc != 0:
            raise Failed(f"setenforce: {done.stderr.strip()}", rc=done.rc)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    boot = (state["live"] == "disabled") != (args["state"] == "disabled")
    warnings: List[str] = [f"SELinux is {state['live']}: only a boot makes it {args['state']}"] if boot else []
    return {"configfile": args["configfile"], "policy": change.data["policy"], "state": args["state"], "reboot_required": boot, "warnings": warnings}
