"""Hardware that this machine has not: a recorded machine as a tree of files in the host, and its faults. hosts.yaml names it: hardware_root."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

from nodectl.lab import hardware, hosts
from nodectl.lab.fault_kind import FaultKind
from nodectl.lab.hardware_faults import FAULTS, break_it
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState

# Where the host sees the tree: the value of hardware_root in an inventory that rehearses with it.
HARDWARE_ROOT = "/var/lib/nodectl-lab/hardware"
FABRICS = ("ib", "roce")
_ROCE_MARK = ".roce"


def _tree(state: LabState, host: LabHost) -> Path:
    """The folder as this machine sees it. Raises LabProblem where the host put a link on the way: it would lead out of the host."""
    root = hosts.tree(state, host.name)
    folder = root / HARDWARE_ROOT.lstrip("/")
    if any(path.is_symlink() for path in (folder, *folder.parents) if path.is_relative_to(root) and path != root):
        raise LabProblem(f"{HARDWARE_ROOT} on {host.name} leads over a link: remove it")
    return folder


def _write(state: LabState, host: LabHost, value: str) -> None:
    if value not in FABRICS:
        raise LabProblem(f"{value!r} is no fabric of the recorded machine: expected {' or '.join(FABRICS)}")
    folder = _tree(state, host)
    if folder.exists():
        shutil.rmtree(folder)
    hardware.write(folder, state.names.index(host.name) + 1, roce=value == "roce")
    if value == "roce":
        (folder / _ROCE_MARK).touch()


def _remove(state: LabState, host: LabHost, value: str) -> None:
    folder = _tree(state, host)
    if folder.exists():
        shutil.rmtree(folder)
    if folder.parent.exists() and not any(folder.parent.iterdir()):
        folder.parent.rmdir()


def _break(state: LabState, host: LabHost, value: str) -> None:
    if value not in FAULTS:
        near = difflib.get_close_matches(value, FAULTS, n=3)
        raise LabProblem(f"{value!r} is no fault of the recorded machine: " + (f"did you mean {' or '.join(near)}?" if near else ", ".join(FAULTS)))
    if not _tree(state, host).exists():
        raise LabProblem(f"host {host.name} has no recorded machine: apply `hardware` to it first")
    break_it(_tree(state, host), value)


def _mend(state: LabState, host: LabHost, value: str) -> None:
    """Written anew where there is one; the fault `hardware` itself may have been lifted before."""
    folder = _tree(state, host)
    if folder.exists():
        _write(state, host, "roce" if (folder / _ROCE_MARK).exists() else "ib")


def hardware_faults() -> tuple[FaultKind, ...]:
    return (
        FaultKind(
            "hardware", f"no fault: a recorded machine with eight GPUs, cards and disks; hosts.yaml names it by hardware_root: {HARDWARE_ROOT}",
            "its fabric, ib or roce", _write, _remove, default="ib", simulated=True, in_tree=True,
        ),
        FaultKind("hardware-fault", "the recorded machine is broken", "name of a hardware fault, such as xid", _break, _mend, simulated=True, in_tree=True),
    )  # fmt: skip
