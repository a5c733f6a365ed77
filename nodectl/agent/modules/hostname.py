"""hostname: what the node calls itself, now and after a boot."""

from __future__ import annotations

import os
import re
from typing import Any, Dict

from nodectl.agent import text_file
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

FILE = "/etc/hostname"
# hostnamectl asks a service that may have to start first.
ORDER_SECONDS = 60.0
SPEC = Spec(
    summary="Set the node's name in the running kernel and in /etc/hostname.",
    params={
        "name": Param("str", "the name", required=True),
        "use": Param("str", "by which means; systemd and the file are all that nodectl knows", choices=("systemd", "debian", "redhat", "generic")),
    },
    returns={"name": "the name", "ansible_facts": "ansible_hostname, ansible_nodename"},
    example="- hostname:\n    name: gpu-01\n",
)
# A label of RFC 1123 is 63 letters, digits and hyphens; the kernel takes 64 characters for the whole.
_NAME = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\Z")


def read(system: System, args: Args) -> State:
    lines = [line.strip() for line in (text_file.read(system, FILE) or "").splitlines() if line.strip() and not line.startswith("#")]
    return {"live": os.uname().nodename, "file": lines[0] if lines else ""}


def diff(args: Args, state: State) -> Change:
    name = args["name"]
    if not _NAME.match(name):
        raise Failed(f"{name!r} is no host name: up to 64 letters, digits and hyphens, in labels separated by dots")
    live = [f"change the host name from {state['live']} to {name}"] if state["live"] != name else []
    kept = [f"write {name} into {FILE}"] if state["file"] != name else []
    old = state["live"] if live else state["file"]
    return Change(live + kept, f"hostname = {old}\n", f"hostname = {name}\n")


def write(system: System, args: Args, state: State, change: Change) -> None:
    if system.which("hostnamectl") and os.path.isdir("/run/systemd/system"):
        done = system.run(["hostnamectl", "hostname" if _new(system) else "set-hostname", args["name"]], timeout=ORDER_SECONDS)
    else:
        text_file.put(system, FILE, f"{args['name']}\n")
        done = system.run(["hostname", args["name"]])
    if done.rc != 0:
        raise Failed(f"{' '.join(done.argv)}: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)


def _new(system: System) -> bool:
    """hostnamectl knows the word `hostname` since systemd 249."""
    return "hostname [NAME]" in system.run(["hostnamectl", "--help"]).stdout


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    name = args["name"]
    return {"name": name, "ansible_facts": {"ansible_hostname": name.split(".")[0], "ansible_nodename": name}}
