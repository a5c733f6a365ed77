"""Trouble on request: each fault is really applied, is written down, and can be lifted."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager

from nodectl.lab.fault_disk import disk_faults
from nodectl.lab.fault_group import group_faults
from nodectl.lab.fault_hardware import hardware_faults
from nodectl.lab.fault_kind import FaultKind, require_running
from nodectl.lab.fault_link import link_faults
from nodectl.lab.fault_power import power_faults
from nodectl.lab.fault_scripts import script_faults
from nodectl.lab.fault_store import store_faults
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import Fault, LabHost, LabState, load, locked


def kinds() -> tuple[FaultKind, ...]:
    """Everything that can be broken."""
    return (*link_faults(), *power_faults(), *group_faults(), *disk_faults(), *hardware_faults(), *script_faults(), *store_faults())


def kind(name: str) -> FaultKind:
    """Raises LabProblem with the nearest names, or all, for one that is not there."""
    known = {fault.name: fault for fault in kinds()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3)
    raise LabProblem(f"{name!r} is not a fault: " + (f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(known)}"))


def apply(state: LabState, host: str, fault: str, value: str = "") -> LabState:
    """Applies a fault and gives back the new state. ``host`` is "" for faults of the store. Applying it again renews its value.

    Raises LabProblem; what was applied of a fault that failed half-way is lifted again.
    """
    chosen = kind(fault)
    value = value or chosen.default
    if chosen.value and not value:
        raise LabProblem(f"fault {fault!r} needs a value: {chosen.value}")
    if not chosen.value and value:
        raise LabProblem(f"fault {fault!r} takes no value, got {value!r}")
    with _current(state) as current:
        target = _target(current, chosen, host)
        if chosen.in_tree:
            require_running(current, target)
        if _find(current, chosen, target) is not None:
            _undo(current, chosen, target)
        current.faults.append(Fault(target.name, fault, value))
        current.save()
        applied = False
        try:
            chosen.apply(current, target, value)
            applied = True
        finally:
            if not applied:
                _undo(current, chosen, target)
    return current


def lift(state: LabState, host: str, fault: str) -> LabState:
    """Lifts one fault; lifting what is not applied puts things right all the same."""
    chosen = kind(fault)
    with _current(state) as current:
        _undo(current, chosen, _target(current, chosen, host))
    return current


def _undo(state: LabState, chosen: FaultKind, target: LabHost) -> None:
    known = _find(state, chosen, target)
    chosen.lift(state, target, known.value if known else chosen.default)
    if known is not None:
        state.faults.remove(known)
        state.save()


def _find(state: LabState, chosen: FaultKind, target: LabHost) -> Fault | None:
    return next((fault for fault in state.faults if (fault.fault, fault.host) == (chosen.name, target.name)), None)


def _target(state: LabState, chosen: FaultKind, host: str) -> LabHost:
    if chosen.of_host:
        if not host:
            raise LabProblem(f"fault {chosen.name!r} needs a host: one of {', '.join(state.names)}")
        return state.host(host)
    if host:
        raise LabProblem(f"fault {chosen.name!r} is of the lab's store, not of a host: leave out {host!r}")
    return LabHost("", "")


def _fresh(state: LabState) -> LabState:
    """The state as it is on disk now: another process may have changed it since ``state`` was read."""
    current = load(state.dir)
    if current is None or current.phase != "up":
        raise LabProblem(f"no lab is up in {state.dir}: run `nodectl lab up --dir {state.dir}` first")
    return current


@contextmanager
def _current(state: LabState) -> Iterator[LabState]:
    with locked(_fresh(state).dir, "changing the lab's faults"):
        yield _fresh(state)


def lift_all(state: LabState) -> LabState:
    """Lifts every fault, the last one first."""
    for fault in reversed(_fresh(state).faults):
        lift(state, fault.host, fault.fault)
    return _fresh(state)
