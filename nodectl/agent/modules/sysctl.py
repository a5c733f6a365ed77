"""sysctl: a kernel setting in its file and, where this node lets us, live."""

from __future__ import annotations

import os
import re
from typing import List, Optional, Tuple

from nodectl.agent.contract import Args, Failed
from nodectl.agent.kernel_keys import PROC, proc_path, read_live, squeeze
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Set a kernel parameter in a file and live; says so where it can only take effect at boot or does not exist.",
    params={
        "name": Param("str", "key, as net.core.rmem_max", required=True, aliases=("key",)),
        "value": Param("str", "value", aliases=("val",)),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
        "sysctl_file": Param("path", "the file that holds it", default="/etc/sysctl.conf"),
        "reload": Param("bool", "make it so in the running kernel", default=True),
        "sysctl_set": Param("bool", "make it so in the running kernel, even with reload false", default=False),
        "ignoreerrors": Param("bool", "a kernel that refuses the value is a warning, not a failure", default=False),
    },
    required_if=(("state", "present", ("value",)),),
    returns={"live": "the value in the running kernel, null when there is no such key", "effective": "live, boot (only after a boot) or none (no such key)"},
    example="- sysctl:\n    name: net.core.rmem_max\n    value: '2147483647'\n    sysctl_file: /etc/sysctl.d/90-nodectl.conf\n",
)
_LINE = re.compile(r"^\s*-?\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$")


def _key(name: str) -> str:
    return name.strip().replace("/", ".")


def with_value(text: str, name: str, value: Optional[str]) -> str:
    """``text`` with one line for the key (the last one wins in sysctl, so further ones go), or without any when ``value`` is None."""
    out: List[str] = []
    placed = value is None
    for line in text.splitlines(keepends=True):
        found = _LINE.match(line)
        if not found or _key(found.group(1)) != _key(name):
            out.append(line)
        elif not placed:
            placed = True
            out.append(line if squeeze(found.group(2)) == squeeze(value or "") else f"{name} = {value}\n")
    if not placed:
        if out and not out[-1].endswith("\n"):
            out[-1] += "\n"
        out.append(f"{name} = {value}\n")
    return "".join(out)


def act(system: System, args: Args, check: bool) -> Outcome:
    """The file first, then the kernel, then both read again."""
    name, present = args["name"], args["state"] == "present"
    wish = squeeze(args["value"]) if present else None
    if not name.strip() or wish == "" or ".." in name or (present and "\n" in args["value"]):
        raise Failed(f"{name!r} with {args['value']!r} is no kernel parameter")
    old = (system.read(args["sysctl_file"]) or b"").decode("utf-8", "surrogateescape")
    new = with_value(old, name, args["value"].strip() if present else None)
    live = read_live(name)
    steps, warnings, effective = _decide(args, wish, live)
    if new != old:
        steps.insert(0, f"{'write' if present else 'remove'} {name} in {args['sysctl_file']}")
    header = args["sysctl_file"]
    diff = [{"before": old, "after": new, "before_header": header, "after_header": header}] if new != old else []
    outcome = Outcome(changed=bool(steps), msg="; ".join(steps), values={"live": live, "effective": effective}, diff=diff, warnings=warnings)
    if check:
        return outcome
    if new != old:
        os.makedirs(os.path.dirname(args["sysctl_file"]) or "/", mode=0o755, exist_ok=True)
        system.write_atomic(args["sysctl_file"], new.encode("utf-8", "surrogateescape"))
    if any(step.startswith("set ") for step in steps):
        _set(args, name, str(wish), outcome)
    return outcome


def _decide(args: Args, wish: Optional[str], live: Optional[str]) -> Tuple[List[str], List[str], str]:
    """(steps on the running kernel, warnings, where the value is effective)"""
    name = args["name"]
    if wish is None:
        return [], [], "none"
    if not args["reload"] and not args["sysctl_set"]:
        return [], [], "live" if live == wish else "boot"
    if live is None:
        return [], [f"{name}: no such key here (its module is not loaded, or this kernel lacks it); the file counts when it appears"], "none"
    if live == wish:
        return [], [], "live"
    if not os.access(proc_path(name), os.W_OK):
        return [], [f"{name} is {live} and {PROC} is read-only here (a container): the value {wish} takes effect at boot"], "boot"
    return [f"set {name} from {live} to {wish}"], [], "live"


def _set(args: Args, name: str, wish: str, outcome: Outcome) -> None:
    """Write the value into /proc and read it back. Raises Failed, or warns with ignoreerrors."""
    reason = ""
    try:
        with open(proc_path(name), "w", encoding="utf-8") as handle:
            handle.write(wish)
    except OSError as error:
        reason = f"the kernel refuses {name} = {wish}: {error.strerror}"
    now = read_live(name)
    if not reason and now not in (wish, ""):
        reason = f"{name} was set to {wish}, but the kernel shows {now}"
    outcome.values["live"] = now
    if reason and not args["ignoreerrors"]:
        raise Failed(f"{reason} (the file {args['sysctl_file']} holds it)", live=now)
    if reason:
        outcome.warnings.append(reason)
        outcome.values["effective"] = "boot"
