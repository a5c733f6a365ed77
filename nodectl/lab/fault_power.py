"""Faults of a whole host: no power, standing still, too little of the processor."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from nodectl.lab import cgroups, disks, hosts, network
from nodectl.lab.fault_kind import FaultKind, require_running, whole_number
from nodectl.lab.machine import send, until
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState

# Signals reach every process of a host within milliseconds; a process in uninterruptible sleep stops when it wakes.
FREEZE_S = 10.0


def power_off(state: LabState, host: LabHost, value: str) -> None:
    """Also takes the cable: a namespace without processes would still refuse connections, where a dead machine is silent."""
    hosts.power_off(state, host.name)
    network.set_port(state, host.name, up=False)


def power_on(state: LabState, host: LabHost, value: str) -> None:
    """Boots the same tree with the same disks again."""
    network.set_port(state, host.name, up=True)
    if not hosts.leader(state, host.name):
        hosts.boot(state, host, disks.attached(state, host))
    hosts.await_boot(state, host)


def freeze(state: LabState, host: LabHost, value: str) -> None:
    """Stops every process of the host. Its kernel still accepts connections, which nobody then answers: the worst kind of dead."""
    require_running(state, host)
    _stop_all(lambda: hosts.members(state, host.name), host)


def thaw(state: LabState, host: LabHost, value: str) -> None:
    for pid in hosts.members(state, host.name):
        send(pid, signal.SIGCONT)


def _freeze_sshd(state: LabState, host: LabHost, value: str) -> None:
    """Stops sshd and its sessions only: open connections fall silent, the rest of the host works on."""
    require_running(state, host)
    _stop_all(lambda: _sshd(state, host), host)


def _sshd(state: LabState, host: LabHost) -> list[int]:
    return [pid for pid in hosts.members(state, host.name) if _stat(pid)[0] == "sshd"]


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


def _starve(state: LabState, host: LabHost, value: str) -> None:
    """What a rank sees when other work holds the rest of the core; here nobody else has to burn it."""
    require_running(state, host)
    cgroups.starve(cgroups.name(state, host.name), whole_number(value, "a share of one core in percent", 1, 100), hosts.members(state, host.name))


def _feed(state: LabState, host: LabHost, value: str) -> None:
    cgroups.starve(cgroups.name(state, host.name), 0, [])


def power_faults() -> tuple[FaultKind, ...]:
    return (
        FaultKind("down", "the host loses power; lifting boots it again", "", power_off, power_on),
        FaultKind("frozen", "every process of the host stands still; connections open and nobody answers", "", freeze, thaw),
        FaultKind("sshd-frozen", "only sshd and its sessions stand still", "", _freeze_sshd, thaw),
        FaultKind("cpu-starved", "all processes of the host together get this much of one core", "percent of a core", _starve, _feed, default="20"),
    )
