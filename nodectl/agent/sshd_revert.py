"""Taking sshd's old settings back: armed before a change, and decided once, by whoever comes first.

That is the confirmation, a timer of systemd, or the next boot (a node may lose power before anybody could log in). The file
``armed`` is the decision: keeping renames it, taking back renames it, and only one of the two can.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import stat
import time
from typing import FrozenSet, NamedTuple, Optional, Set

from nodectl.agent.contract import Failed
from nodectl.agent.system import System

# Survives a boot on purpose, and is removed by the confirmation or by the taking back: it cannot fire weeks later.
HELD = "/var/lib/nodectl/sshd-revert"
UNIT = "nodectl-sshd-revert"
UNIT_FILE = f"/etc/systemd/system/{UNIT}.service"
BOOT_LINK = f"/etc/systemd/system/multi-user.target.wants/{UNIT}.service"
# Before sshd: a boot that takes the old file back has not started sshd with the new one.
_UNIT_TEXT = f"""\
# Written by nodectl, and removed by it after a fresh login has confirmed the new sshd settings.
[Unit]
Description=nodectl: take back sshd settings that no fresh login has confirmed
ConditionPathExists={HELD}/revert
Before=ssh.service sshd.service ssh.socket

[Service]
Type=oneshot
ExecStart=/bin/sh {HELD}/revert

[Install]
WantedBy=multi-user.target
"""
ORDER_SECONDS = 20.0
# sshd reads its files and its host keys within 0.1 s; a node whose cores are all busy may take seconds.
RELOAD_SECONDS = 15.0


class _Incarnation(NamedTuple):
    """One life of a process between two execs. ``listens`` are inodes of its listening sockets."""

    pid: str
    started: str
    stack: str
    listens: FrozenSet[str]


def is_armed() -> bool:
    """A change waits for its confirmation."""
    return os.path.exists(os.path.join(HELD, "armed"))


def arm(system: System, path: str, seconds: int) -> None:
    """From now on ``path`` comes back as it is now unless ``keep`` is called within ``seconds``.

    Where an earlier change still waits, what was there before that one stays what comes back: nothing since is proven.
    """
    waiting = is_armed()
    if waiting:
        _stop_timer(system)
        if not is_armed():
            raise Failed("the node is taking an earlier, unconfirmed change back right now: run again")
    else:
        _prepare(system, path)
    words = ["systemd-run", f"--unit={UNIT}.service", f"--on-active={seconds}", "--timer-property=AccuracySec=1s"]
    done = system.run(words, timeout=ORDER_SECONDS)
    if done.rc != 0:
        _forget() if not waiting else take_back(system)
        raise Failed(f"the automatic revert could not be armed, nothing was changed: {done.stderr.strip()}", rc=done.rc)
    system.write_atomic(os.path.join(HELD, "armed"), b"", mode=0o600)


def keep(system: System) -> None:
    """The change stays. Raises Failed when the node has taken it back."""
    try:
        os.rename(os.path.join(HELD, "armed"), os.path.join(HELD, "kept"))
    except FileNotFoundError:
        raise Failed("nothing is waiting for confirmation: the node has already restored its old sshd settings") from None
    _stop_timer(system)
    _forget()


def take_back(system: System) -> None:
    """The old file is back and sshd has read it. Raises Failed when there was nothing to take back, or it did not work."""
    script = os.path.join(HELD, "revert")
    if not os.path.exists(script):
        raise Failed("nothing is waiting for confirmation: the node has already restored its old sshd settings")
    unit = service(system)
    before = _incarnation(_main_pid(system, unit))
    done = system.run(["/bin/sh", script], timeout=60.0)
    if done.rc != 0:
        raise Failed(f"restoring the old sshd settings failed: {done.stderr.strip()}", rc=done.rc)
    _stop_timer(system)
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
    return system.run(["systemctl", "show", "-p", "MainPID", "--value", unit], timeout=ORDER_SECONDS).stdout.strip()


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
    shown = system.run(["systemctl", "show", "-p", "LoadState", "--value", "ssh.service"], timeout=ORDER_SECONDS)
    return "ssh.service" if shown.stdout.strip() == "loaded" else "sshd.service"


def _prepare(system: System, path: str) -> None:
    """Everything that the taking back needs. Without ``armed``, which comes last, it does nothing."""
    shutil.rmtree(HELD, ignore_errors=True)
    os.makedirs(HELD, mode=0o700)
    old, info = system.read(path), system.stat(path, follow=True)
    if old is not None and info is not None:
        system.write_atomic(os.path.join(HELD, "old"), old, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)
    system.write_atomic(os.path.join(HELD, "revert"), _script(path, old is not None, service(system)).encode(), mode=0o700)
    system.write_atomic(UNIT_FILE, _UNIT_TEXT.encode(), mode=0o644)
    os.makedirs(os.path.dirname(BOOT_LINK), mode=0o755, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.symlink(UNIT_FILE, BOOT_LINK)

def _script(path: str, there: bool, unit: str) -> str:
    """``reverting`` outlives a script that was cut off. sshd is not waited for: at boot it waits for this script."""
    live, beside = shlex.quote(path), shlex.quote(f"{path}.nodectl")
    restore = f"cp -a old {beside} && mv -f {beside} {live}" if there else f"rm -f {live}"
    return f"""\
#!/bin/sh
cd {HELD} 2>/dev/null || exit 0
[ -e reverting ] || mv armed reverting 2>/dev/null || exit 0
{restore} || exit 1
systemctl --no-block try-reload-or-restart {unit}
rm -f {UNIT_FILE} {BOOT_LINK}
cd / && rm -rf {HELD}
"""


def _stop_timer(system: System) -> None:
    """A timer that stays is harmless: without ``armed`` its script does nothing."""
    system.run(["systemctl", "stop", f"{UNIT}.timer"], timeout=ORDER_SECONDS)


def _forget() -> None:
    for path in (BOOT_LINK, UNIT_FILE):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    shutil.rmtree(HELD, ignore_errors=True)
