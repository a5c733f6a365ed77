"""Faults that are a few lines of shell in the host, kept as data: one file of host_faults/ each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodectl.lab import hosts
from nodectl.lab.fault_kind import Act, FaultKind, require_running
from nodectl.lab.plan import CONTROLLER_OCTET, address
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState

FOLDER = Path(__file__).parent / "host_faults"
STAND_INS = Path(__file__).parent / "stand_ins"
# A unit of the host may take half a minute to start again (rclone waits for its store).
SCRIPT_S = 60.0
KEYS = frozenset(["about", "value", "default", "pattern", "simulated", "apply", "lift", "file"])

# What every script may call. ``keep`` holds what was there before, inside the host, so that it survives a restart.
PRELUDE = """\
keep=/var/lib/nodectl-lab/$FAULT
# shadow PATH MODE: what comes in on stdin stands at PATH until the fault is lifted. A program or a file of the kernel is covered, not touched.
shadow() {
    mkdir -p "$keep"
    new="$keep/$(ls "$keep" | wc -l).new"
    cat > "$new"
    chmod "$2" "$new"
    if [ -e "$1" ]; then
        mount --bind "$new" "$1"
        echo "$1" >> "$keep/covered"
    else
        mkdir -p "$(dirname "$1")"
        cp -p "$new" "$1"
        echo "$1" >> "$keep/made"
    fi
}
# swap PATH: what comes in on stdin is the file's content until the fault is lifted; other programs may go on replacing the file.
swap() {
    mkdir -p "$keep/was$(dirname "$1")"
    if [ -e "$1" ]; then cp -p "$1" "$keep/was$1"; fi
    echo "$1" >> "$keep/swapped"
    cat > "$1"
}
give_back() {
    [ -d "$keep" ] || return 0
    if [ -e "$keep/covered" ]; then tac "$keep/covered" | while read -r path; do umount --lazy "$path" 2>/dev/null || true; done; fi
    if [ -e "$keep/made" ]; then while read -r path; do rm -f "$path"; done < "$keep/made"; fi
    if [ -e "$keep/swapped" ]; then
        while read -r path; do
            if [ -e "$keep/was$path" ]; then cp -p "$keep/was$path" "$path"; else rm -f "$path"; fi
        done < "$keep/swapped"
    fi
    rm -rf "$keep"
    rmdir "$(dirname "$keep")" 2>/dev/null || true
}
# mount_again PATH: from fstab. No udev runs here that would make the links by UUID: what blkid has seen, mount finds by UUID too, and
# with nofail it does not say when it finds nothing. What needs the mount was stopped with it.
mount_again() {
    mountpoint --quiet "$1" && return 0
    blkid /dev/nvme*n1 >/dev/null || true
    mount "$1"
    mountpoint --quiet "$1"
    for unit in /etc/systemd/system/nodectl-cache-*.service; do [ ! -e "$unit" ] || systemctl start "$(basename "$unit")"; done
}
# unit_of PATH: the unit of the role object_cache that holds this mount.
unit_of() { echo "nodectl-cache-$(echo "$1" | sed 's,^/*,,; s,/*$,,; s,[^A-Za-z0-9][^A-Za-z0-9]*,-,g').service"; }
"""


def script_faults() -> tuple[FaultKind, ...]:
    """All of host_faults/, by name."""
    return tuple(script_fault(path.stem, path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml")))


def script_fault(name: str, text: str) -> FaultKind:
    """Raises ValueError for a file with unknown keys or without what a fault needs: a mistake of ours."""
    data = tomllib.loads(text)
    if set(data) - KEYS or not {"about", "apply"} <= set(data):
        raise ValueError(f"fault {name}: has {sorted(data)}; expected about and apply, and of the rest only {sorted(KEYS)}")
    return FaultKind(
        name, data["about"], data.get("value", ""), _apply(name, data), _lift(name, data), data.get("default", ""),
        simulated=bool(data.get("simulated", False)), in_tree=True,
    )  # fmt: skip


def _apply(name: str, data: Mapping[str, Any]) -> Act:
    def apply(state: LabState, host: LabHost, value: str) -> None:
        require_running(state, host)
        pattern = data.get("pattern", "")
        if pattern and not re.fullmatch(pattern, value):
            raise LabProblem(f"fault {name!r}: {value!r} is not {data['value']}")
        for file in data.get("file", []):
            content = (STAND_INS / file["source"]).read_text("utf-8")
            _run(state, host, name, value, f"shadow {file['target']} {file['mode']}", content)
        _run(state, host, name, value, data["apply"])

    return apply


def _lift(name: str, data: Mapping[str, Any]) -> Act:
    def lift(state: LabState, host: LabHost, value: str) -> None:
        require_running(state, host)
        _run(state, host, name, value, "give_back\n" + data.get("lift", ""))

    return lift


def _run(state: LabState, host: LabHost, name: str, value: str, script: str, stdin: str = "") -> None:
    peer = next((other.address for other in state.hosts if other.name != host.name), "")
    known = {"FAULT": name, "HOST": host.name, "ADDRESS": host.address, "PEER": peer, "CONTROLLER": address(state.net, CONTROLLER_OCTET)}
    argv = ["env", *(f"{key}={word}" for key, word in known.items()), "sh", "-euc", PRELUDE + script, name, value]
    done = hosts.inside(state, host.name, argv, SCRIPT_S, stdin)
    if done.returncode:
        raise LabProblem(f"fault {name!r} on {host.name}: {(done.stderr or done.stdout).strip()[-500:] or f'ended with {done.returncode}'}")
