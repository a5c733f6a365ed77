"""A private folder on the filesystem that is measured: its own name, enough space, and gone afterwards whatever happens.

Its name says whose it is: ``.nodectl-measure-NODE-PID-START-RANDOM``. A run that was killed together with everything that could
tidy up leaves one behind; the next run on the same node sees that the process is gone, and removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from typing import Any, Dict, Iterator, List

from nodectl.agent import as_user, direct_io
from nodectl.agent.contract import Failed
from nodectl.agent.processes import send
from nodectl.agent.system import Mount, System

# A test must not fill the volume: a tenth of what is free stays free.
SPARE = 0.9
REMOVE_SECONDS = 60.0
ANSWER_SECONDS = 15.0
PREFIX = ".nodectl-measure-"
_OURS = re.compile(re.escape(PREFIX) + r"([0-9a-f]{8})-(\d+)-(\d+)-[0-9a-f]{12}")
# What is no disk at all: a figure from there says how fast memory is, or whatever lies below the overlay.
NO_DISK = ("tmpfs", "ramfs", "devtmpfs", "overlay")
# Ends with the pipe from us: at our word, or when we are gone, killed or not. In a session of its own, so it outlives us.
# More than once: what was measuring may still write into the folder for a moment.
_JANITOR = 'cat >/dev/null; for n in 1 2 3 4 5; do rm -rf -- "$1" && exit; sleep 1; done'

_NAMES = """\
import json, os, sys
print(json.dumps([e.name for e in os.scandir(sys.argv[1]) if e.name.startswith(sys.argv[2]) and e.is_dir(follow_symlinks=False)]))
"""


@contextlib.contextmanager
def measured_folder(system: System, target: str, needed: int, user: str = "", any_filesystem: bool = True) -> Iterator[str]:
    """A new folder of mode 0700 below ``target`` that ``needed`` bytes fit into; owned by ``user`` where given. Raises Failed.

    It is removed at the end, also when this process is killed meanwhile. Without ``any_filesystem`` memory and overlays are refused.
    """
    live = mount_of(system.mounts(), target)
    if live is not None and live.fstype in NO_DISK and not any_filesystem:
        raise Failed(f"{target} is {live.fstype}, no disk: a figure from there says nothing about one", fstype=live.fstype)
    silent = system.probe(target, ANSWER_SECONDS)
    if silent:
        raise Failed(f"{target} cannot be measured: {silent}")
    remove_leftovers(system, target)
    _must_fit(target, needed)
    path = os.path.join(target, f"{PREFIX}{_node()}-{os.getpid()}-{_started(os.getpid())}-{secrets.token_hex(6)}")
    janitor = _janitor(path)
    try:
        done = system.run(as_user.command(user, "os.mkdir(sys.argv[1], 0o700)", [path]), timeout=ANSWER_SECONDS)
        if done.rc != 0:
            raise Failed(f"{user or 'this login'} cannot make a folder in {target}: {as_user.last_line(done.stderr, done.rc)}")
        yield path
    finally:
        _tidy(janitor)


def mount_of(table: List[Mount], path: str) -> "Mount | None":
    """The mount that holds ``path``, by the mount table alone: a dead filesystem is not touched."""
    best: "Mount | None" = None
    for mount in table:
        inside = path == mount.target or path.startswith(mount.target.rstrip("/") + "/")
        if inside and (best is None or len(mount.target) >= len(best.target)):
            best = mount
    return best


def _must_fit(target: str, needed: int) -> None:
    space = os.statvfs(target)
    free = space.f_bavail * space.f_frsize
    # Object stores show no or endless space; a real filesystem with 0 blocks does not exist.
    if space.f_blocks and needed > free * SPARE:
        what = f"{target} has {free} bytes free; the test needs {needed} and leaves a tenth free: make room there, or choose a smaller size"
        raise Failed(what, free_bytes=free, needed_bytes=needed)


def _janitor(path: str) -> "subprocess.Popen[bytes]":
    """Started before the folder is made: there is no moment in which a killed agent leaves it behind."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _JANITOR, "sh", path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, close_fds=True, cwd="/",
    )


def _tidy(janitor: "subprocess.Popen[bytes]") -> None:
    """Removes the folder, within REMOVE_SECONDS: a filesystem that died must not hold the agent."""
    if janitor.stdin is not None:
        janitor.stdin.close()
    try:
        janitor.wait(REMOVE_SECONDS)
    except subprocess.TimeoutExpired:
        send(janitor, signal.SIGKILL)


def remove_leftovers(system: System, target: str) -> List[str]:
    """Names of folders of earlier runs on this node that were removed: their process is gone. Others' folders stay."""
    try:
        done = system.run([sys.executable or "python3", "-I", "-S", "-c", _NAMES, target, PREFIX], timeout=ANSWER_SECONDS)
        left = [name for name in json.loads(done.stdout or "[]") if done.rc == 0 and _is_left(name)]
        for name in left:
            system.run(["rm", "-rf", "--", os.path.join(target, name)], timeout=REMOVE_SECONDS)
    except Failed:
        system.stopper.check()
        return []
    return left


def _is_left(name: str) -> bool:
    found = _OURS.fullmatch(name)
    return found is not None and found.group(1) == _node() and found.group(3) != _started(int(found.group(2)))


def _node() -> str:
    """Eight characters that tell this node from others which see the same shared mount."""
    try:
        with open("/etc/machine-id", "rb") as file:
            machine = file.read()
    except OSError:
        machine = b""
    return hashlib.sha256(machine + socket.gethostname().encode()).hexdigest()[:8]


def _started(pid: int) -> str:
    """When the process began, in the kernel's ticks since boot; "" when there is none: a number is given again one day."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def in_child(system: System, user: str, order: Dict[str, Any], timeout: float) -> Dict[str, Any]:
    """Run direct_io's ``order`` in a child interpreter as ``user``. Raises Failed with the child's last line."""
    loader: Any = direct_io.__spec__.loader if direct_io.__spec__ else None
    program = loader.get_source("nodectl.agent.direct_io").replace("from __future__ import annotations\n", "", 1)
    done = system.run(as_user.command(user, program, [json.dumps(order)]), timeout=timeout)
    if done.rc != 0:
        raise Failed(f"measuring in {os.path.dirname(order['folder'])} failed: {as_user.last_line(done.stderr, done.rc)}", stderr=done.stderr[-2000:])
    answer: Dict[str, Any] = json.loads(done.stdout)
    return answer


def python_method() -> str:
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}"
