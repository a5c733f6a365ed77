"""gpu_settings: MIG, ECC, persistence and application clocks of all NVIDIA GPUs, read again after they were set."""

from __future__ import annotations

import csv
import re
from typing import Any, Dict, List, Tuple

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Set MIG mode, ECC, persistence mode and application clocks of every GPU; what only a reset makes so is told as pending.",
    params={
        "mig": Param("bool", "MIG mode; not given: left as it is"),
        "ecc": Param("bool", "ECC; not given: left as it is"),
        "persistence": Param("bool", "persistence mode; not given: left as it is"),
        "clocks": Param("str", "application clocks in MHz as memory,graphics (2619,1980); not given: left as they are"),
    },
    returns={"gpus": "how many GPUs answered", "pending": "what a reboot has still to make so, one sentence each", "driver": "its version"},
    example="- gpu_settings:\n    mig: false\n    ecc: true\n",
)
# nvidia-smi without persistence mode takes 2 to 5 s on eight GPUs, and changing MIG drains each of them.
ASK_SECONDS, SET_SECONDS = 30.0, 120.0
FIELDS = (
    "index", "mig.mode.current", "mig.mode.pending", "ecc.mode.current", "ecc.mode.pending", "persistence_mode", "clocks.applications.memory",
    "clocks.applications.graphics", "driver_version",
)
# setting: (place of the current value, of the one that was set, the option that sets it)
_MODES: Dict[str, Tuple[int, int, str]] = {"mig": (1, 2, "-mig"), "ecc": (3, 4, "-e"), "persistence": (5, 5, "-pm")}
_CLOCKS = re.compile(r"^\d{2,5},\d{2,5}$")


def parse(text: str) -> List[List[str]]:
    """One row of FIELDS per GPU. Raises Failed for a row of another shape."""
    rows = [[field.strip() for field in row] for row in csv.reader(text.splitlines()) if row]
    if not rows or any(len(row) != len(FIELDS) for row in rows):
        raise Failed(f"nvidia-smi answers what nobody understands: {' '.join(text.split())[:200] or 'nothing'}")
    return rows


def read(system: System, args: Args) -> State:
    done = system.run(["nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"], timeout=ASK_SECONDS)
    if done.rc != 0:
        raise Failed(f"nvidia-smi failed with exit code {done.rc}: {' '.join((done.stdout + done.stderr).split())[:300]}", rc=done.rc)
    return {"gpus": parse(done.stdout)}


def diff(args: Args, state: State) -> Change:
    """Raises Failed for a GPU that cannot what is wished: that is known before anything is set."""
    if args["clocks"] and not _CLOCKS.fullmatch(args["clocks"]):
        raise Failed(f"clocks '{args['clocks']}': expected memory,graphics in MHz, as 2619,1980")
    orders: List[Tuple[str, List[str]]] = []
    for row in state["gpus"]:
        for name, (_, place, option) in _MODES.items():
            if args[name] is not None and _wrong(row, name, place, args[name]):
                orders.append((f"GPU {row[0]}: {name} {'on' if args[name] else 'off'}", ["-i", row[0], option, str(int(args[name]))]))
        if args["clocks"] and f"{row[6]},{row[7]}" != args["clocks"]:
            orders.append((f"GPU {row[0]}: application clocks {args['clocks']}", ["-i", row[0], "-ac", args["clocks"]]))
    return Change(actions=[text for text, _ in orders], data={"orders": [words for _, words in orders]})


def _wrong(row: List[str], name: str, place: int, wish: bool) -> bool:
    if row[place] not in ("Enabled", "Disabled"):
        if wish:
            raise Failed(f"GPU {row[0]} has no {name} ({row[place]}): leave {name} out for this kind of GPU")
        return False
    return (row[place] == "Enabled") != wish


def write(system: System, args: Args, state: State, change: Change) -> None:
    for words in change.data["orders"]:
        done = system.run(["nvidia-smi", *words], timeout=SET_SECONDS)
        if done.rc != 0:
            raise Failed(f"nvidia-smi {' '.join(words)}: {(done.stdout + done.stderr).strip()}", rc=done.rc)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    rows = state["gpus"]
    pending = [
        f"GPU {row[0]}: {name} is {row[now]} until the next boot, then {row[later]}"
        for row in rows for name, (now, later, _) in _MODES.items() if row[now] != row[later]
    ]
    return {"gpus": len(rows), "pending": pending, "driver": rows[0][8]}
