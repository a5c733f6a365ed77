"""Taking sshd's old settings back: the guard of its file, and the wait until sshd has read it."""

from __future__ import annotations

import contextlib
import os
import time
from typing import FrozenSet, NamedTuple, Optional, Set

from nodectl.agent import access_guard
from nodectl.agent.contract import Failed
from nodectl.agent.system import System

GUARD = "sshd"
# sshd reads its files and its host keys within 0.1 s; a node whose cores are all busy may take seconds.
RELOAD_SECONDS = 15.0


class _Incarnation(NamedTuple):
    """One life of a process between two execs. ``listens`` are inodes of its listening sockets."""

    pid: str
    started: str
    stack: str
    listens: FrozenSet[str]


def arm(system: System, path: str, seconds: int) -> None:
    """The drop-in comes back as it is now unless it is confirmed. sshd is not waited for: at boot it waits for the script."""
    after = f"systemctl --no-block try-reload-or-restart {service(system)}"
    access_guard.arm(system, access_guard.Guard(GUARD, [path], after, {}), seconds)


def take_back(system: System) -> None:
    """The old file is back and sshd has read it. Raises Failed when there was nothing to take back, or it did not work."""
    unit = service(system)
    before = _incarnation(_main_pid(system, unit))
    access_guard.take_back(system, GUARD)
    _await_reload(system, unit, before)


def reload_sshd(system: System) -> None:
    """sshd has read its files again, and listens. Raises Failed. One that a socket starts reads them when it starts."""
    unit = service(system)
    before = _incarnation(_main_pid(system, unit))
    done = system.run(["systemctl", "try-reload-or-restart", unit], timeout=30.0)
    if done.rc != 0:
        raise Failed(f"sshd did not reload: {done.stderr.strip()}", rc=done.rc)
    _await_reload(system, unit, before)


def _await_reload(system: System, unit: str, before: Optional[_Incarnation]) -> None:
    """The signal that asks for it returns at once: without the wait a login could still meet the old settings, or a closed port."""
    end = time.monotonic() + RELOAD_SECONDS
    while before is not None:
        now = _incarnation(_main_pid(system, unit))
        if now is not None and now != before and (now.listens or not before.listens):
            return
        if time.monotonic() > end:
            raise Failed(f"sshd was told to reload and has not done so within {RELOAD_SECONDS:g} s")
        system.sleep(0.05)


def _main_pid(system: System, unit: str) -> str:
    return system.run(["systemctl", "show", "-p", "MainPID", "--value", unit], timeout=access_guard.ORDER_SECONDS).stdout.strip()


def _incarnation(pid: str) -> Optional[_Incarnation]:
    """None where there is no such process. On a reload sshd executes itself anew under the same pid."""
    try:
        with open(f"/proc/{int(pid or 0)}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    except (OSError, ValueError):
        return None
    sockets = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    # Fields 22 and 28 of proc(5): when it started and where its stack begins, which every exec places anew.
    return _Incarnation(pid, fields[19], fields[25], frozenset(sockets & _listening()))


def _listening() -> Set[str]:
    """Inodes of all TCP sockets that listen."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(table, encoding="utf-8") as file:
            found |= {line.split()[9] for line in file.readlines()[1:] if line.split()[3] == "0A"}
    return found


def service(system: System) -> str:
    """Debian calls the unit ssh, Red Hat sshd."""
    shown = system.run(["systemctl", "show", "-p", "LoadState", "--value", "ssh.service"], timeout=access_guard.ORDER_SECONDS)
    return "ssh.service" if shown.stdout.strip() == "loaded" else "sshd.service"
