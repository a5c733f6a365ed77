"""Taking back a change that decides who gets in: armed before it, and decided once, by whoever comes first.

That is the confirmation, a timer of systemd, or the next boot (a node may lose power before anybody could log in). The file
``armed`` is the decision: keeping renames it, taking back renames it, and only one of the two can.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import stat
from typing import Mapping, NamedTuple, Sequence

from nodectl.agent.contract import Failed
from nodectl.agent.system import System

ORDER_SECONDS = 20.0
# Before sshd: a boot that takes the old file back has not started sshd with the new one.
_UNIT_TEXT = """\
# Written by nodectl, and removed by it after a fresh login has confirmed the change.
[Unit]
Description=nodectl: take back a change of {name} that no fresh login has confirmed
ConditionPathExists={held}/revert
Before=ssh.service sshd.service ssh.socket

[Service]
Type=oneshot
ExecStart=/bin/sh {held}/revert

[Install]
WantedBy=multi-user.target
"""


class Guard(NamedTuple):
    """What comes back: ``paths`` as they are now, and then the shell lines of ``after``, which find the files of ``beside`` where they run."""

    name: str
    paths: Sequence[str]
    after: str
    beside: Mapping[str, bytes]


def held(name: str) -> str:
    """Survives a boot on purpose, and is removed by the confirmation or by the taking back: it cannot fire weeks later."""
    return f"/var/lib/nodectl/{name}-revert"


def unit(name: str) -> str:
    return f"nodectl-{name}-revert"


def is_armed(name: str) -> bool:
    """A change waits for its confirmation."""
    return os.path.exists(f"{held(name)}/armed")


def arm(system: System, guard: Guard, seconds: int) -> None:
    """From now on the guard's paths come back as they are now unless ``keep`` is called within ``seconds``.

    Where an earlier change still waits, what was there before that one stays what comes back: nothing since is proven.
    """
    waiting = is_armed(guard.name)
    if waiting:
        _stop_timer(system, guard.name)
        if not is_armed(guard.name):
            raise Failed("the node is taking an earlier, unconfirmed change back right now: run again")
    else:
        _prepare(system, guard)
    words = ["systemd-run", f"--unit={unit(guard.name)}.service", f"--on-active={seconds}", "--timer-property=AccuracySec=1s"]
    done = system.run(words, timeout=ORDER_SECONDS)
    if done.rc != 0:
        _forget(guard.name) if not waiting else take_back(system, guard.name)
        raise Failed(f"the automatic revert could not be armed, nothing was changed: {done.stderr.strip()}", rc=done.rc)
    system.write_atomic(f"{held(guard.name)}/armed", b"", mode=0o600)


def keep(system: System, name: str) -> None:
    """The change stays. Raises Failed when the node has taken it back."""
    try:
        os.rename(f"{held(name)}/armed", f"{held(name)}/kept")
    except FileNotFoundError:
        raise _too_late(name) from None
    _stop_timer(system, name)
    _forget(name)


def take_back(system: System, name: str) -> None:
    """All is as it was. Raises Failed when there was nothing to take back, or it did not work."""
    script = f"{held(name)}/revert"
    if not os.path.exists(script):
        raise _too_late(name)
    done = system.run(["/bin/sh", script], timeout=60.0)
    if done.rc != 0:
        raise Failed(f"taking back the change of {name} failed: {done.stderr.strip()}", rc=done.rc)
    _stop_timer(system, name)


def _too_late(name: str) -> Failed:
    return Failed(f"nothing is waiting for confirmation: the node has already restored what was there before ({name})")


def _unit_file(name: str) -> str:
    return f"/etc/systemd/system/{unit(name)}.service"


def _boot_link(name: str) -> str:
    return f"/etc/systemd/system/multi-user.target.wants/{unit(name)}.service"


def _prepare(system: System, guard: Guard) -> None:
    """Everything that the taking back needs. Without ``armed``, which comes last, it does nothing."""
    folder, link = held(guard.name), _boot_link(guard.name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, mode=0o700)
    for name, data in guard.beside.items():
        system.write_atomic(f"{folder}/{name}", data, mode=0o600)
    lines = [_restored(system, path, f"{folder}/old{number}") for number, path in enumerate(guard.paths)]
    system.write_atomic(f"{folder}/revert", _script(guard, lines).encode(), mode=0o700)
    system.write_atomic(_unit_file(guard.name), _UNIT_TEXT.format(name=guard.name, held=folder).encode(), mode=0o644)
    os.makedirs(os.path.dirname(link), mode=0o755, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.symlink(_unit_file(guard.name), link)


def _restored(system: System, path: str, copy: str) -> str:
    """The shell line that brings ``path`` back as it is now; what it needs is kept at ``copy``."""
    live, beside = shlex.quote(path), shlex.quote(f"{path}.nodectl")
    old, info = system.read(path), system.stat(path, follow=True)
    if old is None or info is None:
        return f"rm -f {live}"
    system.write_atomic(copy, old, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)
    return f"cp -a {copy} {beside} && mv -f {beside} {live}"


def _script(guard: Guard, lines: Sequence[str]) -> str:
    """``reverting`` outlives a script that was cut off."""
    restore = "".join(f"{{ {line}; }} || exit 1\n" for line in lines)
    return f"""\
#!/bin/sh
cd {held(guard.name)} 2>/dev/null || exit 0
[ -e reverting ] || mv armed reverting 2>/dev/null || exit 0
{restore}{guard.after}
rm -f {_unit_file(guard.name)} {_boot_link(guard.name)}
cd / && rm -rf {held(guard.name)}
"""


def _stop_timer(system: System, name: str) -> None:
    """A timer that stays is harmless: without ``armed`` its script does nothing."""
    system.run(["systemctl", "stop", f"{unit(name)}.timer"], timeout=ORDER_SECONDS)


def _forget(name: str) -> None:
    for path in (_boot_link(name), _unit_file(name)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    shutil.rmtree(held(name), ignore_errors=True)
