"""timezone: the node's time zone, and whether its hardware clock keeps local time."""

from __future__ import annotations

import os
import re
from typing import Any, Dict

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

ZONES = "/usr/share/zoneinfo"
SPEC = Spec(
    summary="Set the time zone through timedatectl.",
    params={
        "name": Param("str", "time zone, as Europe/Berlin"),
        "hwclock": Param("str", "what the hardware clock keeps", choices=("local", "UTC"), aliases=("rtc",)),
    },
    required_one_of=(("name", "hwclock"),),
    returns={},
    example="- timezone:\n    name: Etc/UTC\n",
)
_FIELDS = {"name": r"^\s*Time ?zone: (\S+)", "hwclock": r"^\s*RTC in local TZ: (\S+)"}
_ORDERS = {"name": "set-timezone", "hwclock": "set-local-rtc"}


def read(system: System, args: Args) -> State:
    if args["name"] is not None and (".." in args["name"] or not os.path.isfile(os.path.join(ZONES, args["name"].lstrip("/") or "."))):
        raise Failed(f"this node has no time zone {args['name']!r}: `timedatectl list-timezones` lists those that there are")
    done = system.run(["timedatectl", "status"])
    if done.rc != 0:
        raise Failed(f"timedatectl: {done.stderr.strip()}", rc=done.rc)
    found = {key: re.search(pattern, done.stdout, re.MULTILINE) for key, pattern in _FIELDS.items()}
    now = {key: match.group(1) if match else "" for key, match in found.items()}
    return dict(now, hwclock="local" if now["hwclock"] == "yes" else "UTC")


def diff(args: Args, state: State) -> Change:
    keys = [key for key in _FIELDS if args[key] is not None]
    steps = [f"change {'time zone' if key == 'name' else 'hardware clock'} from {state[key]} to {args[key]}" for key in keys if args[key] != state[key]]
    before, after = ("".join(f"{key}: {side[key]}\n" for key in keys) for side in (state, args))
    return Change(steps, before, after, data={"keys": [key for key in keys if args[key] != state[key]]})


def write(system: System, args: Args, state: State, change: Change) -> None:
    for key in change.data["keys"]:
        value = args[key] if key == "name" else "yes" if args[key] == "local" else "no"
        done = system.run(["timedatectl", _ORDERS[key], value])
        if done.rc != 0:
            raise Failed(f"timedatectl {_ORDERS[key]} {value}: {done.stderr.strip()}", rc=done.rc)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {}
