"""Trouble on request: each fault is really applied, is written down, and can be lifted."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nodectl.lab import cgroups, disks, hosts, network, services
from nodectl.lab.machine import marked, run, send, until
from nodectl.lab.network import bridge_namespace, host_namespace
from nodectl.lab.plan import HOST_INTERFACE
from nodectl.lab.problem import LabProblem
from nodectl.lab.rates import bits_per_second, burst_bytes, bytes_per_second
from nodectl.lab.state import Fault, LabHost, LabState, load, locked

# A packet waits this long in the shaper before it is dropped, as at a busy switch port.
SHAPER_LATENCY = "50ms"
FILL_FILE = ".nodectl-lab-fill"
FILL_CHUNK = 1 << 20
DEFAULT_FULL_PATH = "/scratch"
# Signals reach every process of a host within milliseconds; a process in uninterruptible sleep stops when it wakes.
FREEZE_S = 10.0

Act = Callable[[LabState, LabHost, str], None]


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault: what it needs, what it does, how it is undone."""

    name: str
    about: str
    value: str  # what the value is, "" when the fault takes none
    apply: Act
    lift: Act
    default: str = ""
    of_host: bool = True


def _slow_link(state: LabState, host: LabHost, value: str) -> None:
    """Both directions: what the host sends is held at its own end, what it receives at the bridge's."""
    rate = bits_per_second(value)
    for namespace, interface in _ends(state, host):
        shape = ["root", "tbf", "rate", f"{rate}bit", "burst", str(burst_bytes(rate)), "latency", SHAPER_LATENCY]
        run(["tc", "-netns", namespace, "qdisc", "replace", "dev", interface, *shape])


def _full_link(state: LabState, host: LabHost, value: str) -> None:
    for namespace, interface in _ends(state, host):
        if " tbf " in run(["tc", "-netns", namespace, "qdisc", "show", "dev", interface]):
            run(["tc", "-netns", namespace, "qdisc", "delete", "dev", interface, "root"])


def _ends(state: LabState, host: LabHost) -> list[tuple[str, str]]:
    return [(host_namespace(state, host.name), HOST_INTERFACE), (bridge_namespace(state), host.name)]


def _power_off(state: LabState, host: LabHost, value: str) -> None:
    """Also takes the cable: a namespace without processes would still refuse connections, where a dead machine is silent."""
    hosts.power_off(state, host.name)
    network.set_port(state, host.name, up=False)


def _power_on(state: LabState, host: LabHost, value: str) -> None:
    """Boots the same tree with the same disks again."""
    network.set_port(state, host.name, up=True)
    if not hosts.leader(state, host.name):
        hosts.boot(state, host, disks.attached(state, host))
    hosts.await_boot(state, host)


def _freeze(state: LabState, host: LabHost, value: str) -> None:
    """Stops every process of the host. Its kernel still accepts connections, which nobody then answers: the worst kind of dead."""
    _running(state, host)
    _stop_all(lambda: hosts.members(state, host.name), host)


def _thaw(state: LabState, host: LabHost, value: str) -> None:
    for pid in hosts.members(state, host.name):
        send(pid, signal.SIGCONT)


def _freeze_sshd(state: LabState, host: LabHost, value: str) -> None:
    """Stops sshd and its sessions only: open connections fall silent, the rest of the host works on."""
    _running(state, host)
    _stop_all(lambda: _sshd(state, host), host)


def _sshd(state: LabState, host: LabHost) -> list[int]:
    return [pid for pid in hosts.members(state, host.name) if _stat(pid)[0] == "sshd"]


def _running(state: LabState, host: LabHost) -> None:
    if not hosts.leader(state, host.name):
        raise LabProblem(f"host {host.name} is off: lift its fault `down` first")


def _stop_all(find: Callable[[], list[int]], host: LabHost) -> None:
    """Stops what is found, again and again until nothing new was started meanwhile."""

    def still() -> bool:
        moving = [pid for pid in find() if _stat(pid)[1] not in ("T", "t", "Z", "X", "")]
        for pid in moving:
            send(pid, signal.SIGSTOP)
        return not moving

    if not until(still, FREEZE_S):
        raise LabProblem(f"host {host.name} could not be frozen within {FREEZE_S:.0f} s: a process keeps running")


def _stat(pid: int) -> tuple[str, str]:
    """Name and state letter of a process; both empty when it is gone."""
    try:
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return "", ""
    return head.partition("(")[2], tail.split()[0]


def _fill(state: LabState, host: LabHost, value: str) -> None:
    """Fills a file system of the host to the last block."""
    folder = _on_own_disk(state, host, value)
    descriptor = os.open(folder / FILL_FILE, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_EXCL, 0o600)
    try:
        _fill_up(descriptor, folder)
    finally:
        os.close(descriptor)


def _fill_up(descriptor: int, folder: Path) -> None:
    """Reserves what is free in one go, then writes until the file system refuses."""
    free = os.statvfs(folder)
    size = max(0, free.f_bavail * free.f_frsize - FILL_CHUNK)
    try:
        if size:
            os.posix_fallocate(descriptor, 0, size)
        os.lseek(descriptor, 0, os.SEEK_END)
        for chunk in (FILL_CHUNK, 4096):
            _write_until_full(descriptor, chunk)
    except OSError as err:
        if err.errno != errno.ENOSPC:
            raise


def _write_until_full(descriptor: int, chunk: int) -> None:
    block = bytes(chunk)
    try:
        while os.write(descriptor, block):
            os.fsync(descriptor)
    except OSError as err:
        if err.errno != errno.ENOSPC:
            raise


def _on_own_disk(state: LabState, host: LabHost, value: str) -> Path:
    """The folder inside the host, seen from here. Refuses the host's root, which is this machine's own disk."""
    _running(state, host)
    root = Path(f"/proc/{hosts.leader(state, host.name)}/root")
    folder = root / value.lstrip("/")
    if not value.startswith("/") or ".." in Path(value).parts or not folder.is_dir() or any(_is_link(root, value)):
        raise LabProblem(f"{value} is not a folder on {host.name}: name the mount point of one of its disks, such as {DEFAULT_FULL_PATH}")
    if folder.stat().st_dev == root.stat().st_dev:
        raise LabProblem(f"{value} on {host.name} lies on its root, which is this machine's own disk: mount one of the host's disks there first")
    return folder


def _is_link(root: Path, value: str) -> list[bool]:
    parts = Path(value).parts[1:]
    return [(root / Path(*parts[: depth + 1])).is_symlink() for depth in range(len(parts))]


def _empty(state: LabState, host: LabHost, value: str) -> None:
    if hosts.leader(state, host.name):
        (Path(f"/proc/{hosts.leader(state, host.name)}/root") / value.lstrip("/") / FILL_FILE).unlink(missing_ok=True)


def _slow_disk(state: LabState, host: LabHost, value: str) -> None:
    rate = bytes_per_second(value)
    for device in disks.attached(state, host):
        cgroups.throttle(cgroups.name(state, host.name), Path(device).stat().st_rdev, rate)


def _full_disk_speed(state: LabState, host: LabHost, value: str) -> None:
    for device in disks.attached(state, host):
        cgroups.throttle(cgroups.name(state, host.name), Path(device).stat().st_rdev, 0)


def _store_down(state: LabState, host: LabHost, value: str) -> None:
    _has_store(state)
    services.stop_store(state)


def _store_up(state: LabState, host: LabHost, value: str) -> None:
    """The same store: same keys, same data."""
    if not services.running(state, services.STORE):
        services.start_store(state)


def _store_frozen(state: LabState, host: LabHost, value: str) -> None:
    """The store accepts connections and never answers."""
    _has_store(state)
    for pid in marked(services.mark(state, services.STORE)):
        send(pid, signal.SIGSTOP)


def _store_thawed(state: LabState, host: LabHost, value: str) -> None:
    for pid in marked(services.mark(state, services.STORE)):
        send(pid, signal.SIGCONT)


def _has_store(state: LabState) -> None:
    if not services.running(state, services.STORE):
        raise LabProblem(f"lab {state.name!r} has no object store that runs" + ("" if state.s3 else ": it was started without --s3"))


FAULTS = (
    FaultKind("slow-link", "the host's link carries only this much, both ways", "rate such as 100mbit", _slow_link, _full_link),
    FaultKind("down", "the host loses power; lifting boots it again", "", _power_off, _power_on),
    FaultKind("frozen", "every process of the host stands still; connections open and nobody answers", "", _freeze, _thaw),
    FaultKind("sshd-frozen", "only sshd and its sessions stand still", "", _freeze_sshd, _thaw),
    FaultKind("disk-full", "the file system at this mount point has no free block", "mount point", _fill, _empty, default=DEFAULT_FULL_PATH),
    FaultKind("disk-slow", "the host's disks read and write only this much with direct I/O", "rate such as 20MB/s", _slow_disk, _full_disk_speed),
    FaultKind("store-down", "the object store is gone; lifting brings it back with its data and keys", "", _store_down, _store_up, of_host=False),
    FaultKind("store-frozen", "the object store accepts connections and never answers", "", _store_frozen, _store_thawed, of_host=False),
)


def kind(name: str) -> FaultKind:
    """Raises LabProblem with the list for a name that is not there."""
    for candidate in FAULTS:
        if candidate.name == name:
            return candidate
    raise LabProblem(f"{name!r} is not a fault: expected one of {', '.join(fault.name for fault in FAULTS)}")


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
