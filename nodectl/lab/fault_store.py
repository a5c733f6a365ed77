"""Faults of the lab's object store: gone, silent, slow, closed to its users, wrong."""

from __future__ import annotations

import signal

from nodectl.lab import services, store_proxy
from nodectl.lab.fault_kind import Act, FaultKind
from nodectl.lab.fault_link import RATE, shape, unshape
from nodectl.lab.machine import marked, send
from nodectl.lab.network import BRIDGE, bridge_namespace
from nodectl.lab.problem import LabProblem
from nodectl.lab.rates import bits_per_second
from nodectl.lab.state import LabHost, LabState


def _down(state: LabState, host: LabHost, value: str) -> None:
    _require_store(state)
    services.stop_store(state)


def _up(state: LabState, host: LabHost, value: str) -> None:
    """The same store: same keys, same data."""
    if not services.running(state, services.STORE):
        services.start_store(state)


def _frozen(state: LabState, host: LabHost, value: str) -> None:
    """The store accepts connections and never answers."""
    _require_store(state)
    for pid in marked(services.mark(state, services.STORE)):
        send(pid, signal.SIGSTOP)


def _thawed(state: LabState, host: LabHost, value: str) -> None:
    for pid in marked(services.mark(state, services.STORE)):
        send(pid, signal.SIGCONT)


def _slow(state: LabState, host: LabHost, value: str) -> None:
    """All that the services send is held back; they share the bridge's own interface."""
    _require_store(state)
    shape(bridge_namespace(state), BRIDGE, bits_per_second(value))


def _fast(state: LabState, host: LabHost, value: str) -> None:
    unshape(bridge_namespace(state), BRIDGE)


def _locked(state: LabState, host: LabHost, value: str) -> None:
    """The keys that the hosts have are revoked: the store answers every request with 403."""
    _require_store(state)
    services.stop_store(state)
    services.start_store(state, services.fresh_keys())


def _restarted(state: LabState, host: LabHost, value: str) -> None:
    services.stop_store(state)
    services.start_store(state)


def _spoilt(word: str) -> Act:
    def apply(state: LabState, host: LabHost, value: str) -> None:
        _require_store(state)
        services.start_proxy(state, word)

    return apply


def _require_store(state: LabState) -> None:
    if not services.running(state, services.STORE):
        raise LabProblem(f"lab {state.name!r} has no object store that runs" + ("" if state.s3 else ": it was started without --s3"))


def store_faults() -> tuple[FaultKind, ...]:
    return (
        FaultKind("store-down", "the object store is gone; lifting brings it back with its data and keys", "", _down, _up, of_host=False),
        FaultKind("store-frozen", "the object store accepts connections and never answers", "", _frozen, _thawed, of_host=False),
        FaultKind("store-slow", "the object store sends only this much to all hosts together", RATE, _slow, _fast, of_host=False),
        FaultKind("store-forbidden", "the object store refuses the hosts' keys (403)", "", _locked, _restarted, of_host=False),
        FaultKind("store-throttled", "the object store answers every request with 503 SlowDown", "", _spoilt(store_proxy.THROTTLE), _restarted, of_host=False),
        FaultKind("store-corrupt", "the object store gives back other bytes than were stored", "", _spoilt(store_proxy.CORRUPT), _restarted, of_host=False),
    )
