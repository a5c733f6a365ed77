"""A private folder on the filesystem that is measured: its own name, enough space, and gone afterwards whatever happens."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import secrets
import sys
from typing import Any, Dict, Iterator

from nodectl.agent import as_user
from nodectl.agent.contract import Failed
from nodectl.agent.system import System

# A test must not fill the volume: a tenth of what is free stays free.
SPARE = 0.9
REMOVE_SECONDS = 60.0
ANSWER_SECONDS = 15.0


@contextlib.contextmanager
def measured_folder(system: System, target: str, needed: int, user: str = "") -> Iterator[str]:
    """A new folder of mode 0700 below ``target`` that ``needed`` bytes fit into; owned by ``user`` where given. Raises Failed."""
    silent = system.probe(target, ANSWER_SECONDS)
    if silent:
        raise Failed(f"{target} cannot be measured: {silent}")
    space = os.statvfs(target)
    free = space.f_bavail * space.f_frsize
    # Object stores show no or endless space; a real filesystem with 0 blocks does not exist.
    if space.f_blocks and needed > free * SPARE:
        what = f"{target} has {free} bytes free; the test needs {needed} and leaves a tenth free: choose a smaller size"
        raise Failed(what, free_bytes=free, needed_bytes=needed)
    path = os.path.join(target, f".nodectl-measure-{secrets.token_hex(6)}")
    done = system.run(as_user.command(user, "os.mkdir(sys.argv[1], 0o700)", [path]), timeout=ANSWER_SECONDS)
    if done.rc != 0:
        raise Failed(f"{user or 'this login'} cannot make a folder in {target}: {as_user.last_line(done.stderr, done.rc)}")
    try:
        yield path
    finally:
        _remove(path)


def _remove(path: str) -> None:
    """By a System of its own: the step may be stopped already. In a child with a deadline: a filesystem that died must not hold the agent."""
    with contextlib.suppress(Failed):
        System().run(["rm", "-rf", "--", path], timeout=REMOVE_SECONDS)


def in_child(system: System, user: str, order: Dict[str, Any], timeout: float) -> Dict[str, Any]:
    """Run direct_io's ``order`` in a child interpreter as ``user``. Raises Failed with the child's last line."""
    module = importlib.import_module("nodectl.agent.direct_io")
    loader: Any = module.__spec__.loader if module.__spec__ else None
    program = loader.get_source("nodectl.agent.direct_io").replace("from __future__ import annotations\n", "", 1)
    done = system.run(as_user.command(user, program, [json.dumps(order)]), timeout=timeout)
    if done.rc != 0:
        raise Failed(f"measuring in {os.path.dirname(order['folder'])} failed: {as_user.last_line(done.stderr, done.rc)}", stderr=done.stderr[-2000:])
    answer: Dict[str, Any] = json.loads(done.stdout)
    return answer


def python_method() -> str:
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}"
