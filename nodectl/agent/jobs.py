"""Jobs that outlive the line to the controller (`async`): a process of their own, and one file that says what came of each.

The file is for its owner only (0600), and holds the result; arguments, which may be secret, stay in memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import time
from types import FrameType
from typing import Any, Callable, Dict, NoReturn, Optional

from nodectl.agent.contract import Failed
from nodectl.agent.processes import GRACE, started
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome, outcome_from_json

# Ansible's own place, so that `async_status` of either tool says "could not find job" of the other's, and nothing else.
FOLDER = "~/.ansible_async"
# Files of jobs that nobody asked about any more go after a day: whoever waits for a job asks within its time.
KEPT = 24 * 3600.0
# The step's own time limit ends programs within 2 * GRACE; code of a module that does not look at it is ended then.
STUCK = 4 * GRACE


def start(system: System, seconds: Optional[float], work: Callable[[], Outcome]) -> Outcome:
    """Begin ``work`` in a process of its own; it is ended after ``seconds``. Raises Failed when it could not begin."""
    folder = _folder(system)
    os.makedirs(folder, 0o700, exist_ok=True)
    _forget_old(system, folder)
    job = f"j{secrets.randbelow(10**12)}.{os.getpid()}"
    path = os.path.join(folder, job)
    begun, beginning = os.pipe()
    child = os.fork()
    if child == 0:
        _apart(system, path, beginning, seconds, work)
    os.close(beginning)
    os.waitpid(child, 0)
    with os.fdopen(begun, "rb") as pipe:
        if not pipe.read():  # the job closes its end when its file is there, or when it dies
            raise Failed(f"the job could not begin: is {folder} writable?")
    return Outcome(changed=True, values={"ansible_job_id": job, "results_file": path, "started": True, "finished": False})


def status(system: System, job: str) -> Outcome:
    """What is known of a job; when it has ended, its result. Raises Failed where there is no such job, or it died without a result."""
    path = path_of(system, job)
    told: Dict[str, Any] = {"ansible_job_id": job, "results_file": path, "started": True, "finished": True}
    state = _read(system, path)
    if state is not None and "outcome" not in state:
        if _alive(state):
            return Outcome(values=dict(told, finished=False))
        state = _read(system, path)  # it may have ended between the two looks
    if state is None:
        raise Failed("could not find job", **told)
    if "outcome" not in state:
        raise Failed("the job ended without a result: it was killed, or the node restarted", **told)
    outcome = outcome_from_json(state["outcome"])
    outcome.values.update(told)
    return outcome


def forget(system: System, job: str) -> str:
    """Remove the job's file; its path. Raises Failed where there is none."""
    path = path_of(system, job)
    try:
        os.unlink(path)
    except FileNotFoundError:
        raise Failed("could not find job", ansible_job_id=job, started=True, finished=True) from None
    return path


def path_of(system: System, job: str) -> str:
    if not job or os.path.basename(job) != job or job.startswith("."):
        raise Failed(f"{job!r} is not the id of a job")
    return os.path.join(_folder(system), job)


def _folder(system: System) -> str:
    return os.path.expanduser(system.environment.get("ANSIBLE_ASYNC_DIR") or FOLDER)


def _apart(system: System, path: str, beginning: int, seconds: Optional[float], work: Callable[[], Outcome]) -> NoReturn:
    """In the child: a session of its own, nothing of the line held open, and never back into the code of the parent."""
    try:
        os.setsid()
        if os.fork() == 0:
            beginning = _let_go(beginning)
            _save(system, path, {"pid": os.getpid(), "born": started(os.getpid())})
            os.write(beginning, b"1")
            os.close(beginning)
            if seconds:
                signal.setitimer(signal.ITIMER_REAL, seconds + STUCK)
            _save(system, path, {"outcome": work().to_json()})
    finally:
        os._exit(0)


def _let_go(keep: int) -> int:
    """Signals as in a fresh process, and no descriptor of the agent's but ``keep``, under its new number."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _late)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    if keep != 3:
        os.dup2(keep, 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    return 3


def _late(_number: int, _frame: Optional[FrameType]) -> NoReturn:
    raise Failed("the job did not end within its time")


def _save(system: System, path: str, state: Dict[str, Any]) -> None:
    system.write_atomic(path, json.dumps(state).encode(), mode=0o600)


def _read(system: System, path: str) -> Optional[Dict[str, Any]]:
    data = system.read(path)
    try:
        state = None if data is None else json.loads(data)
    except ValueError:
        state = ()
    if state is not None and not isinstance(state, dict):
        raise Failed(f"{path} is not the file of a job of nodectl")
    return state


def _alive(state: Dict[str, Any]) -> bool:
    return bool(state.get("born")) and started(int(state.get("pid", 0))) == state["born"]


def _forget_old(system: System, folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError, Failed):
            if name.startswith("j") and time.time() - os.lstat(path).st_mtime > KEPT and not _alive(_read(system, path) or {}):
                os.unlink(path)
