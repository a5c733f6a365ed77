"""probe_limits: resource limits as a fresh login has them (this agent is one), and as a systemd unit has them."""

from __future__ import annotations

import json
import os
import resource
from typing import Any, Dict, Tuple

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="memlock, nofile, nproc and stack as this login has them, and as a transient unit of systemd has them.",
    params={
        "timeout": Param("float", "seconds that the unit may take", default=20.0),
        "unit": Param("bool", "ask in a transient unit too (root only)", default=True),
    },
    returns={
        "login": "per limit {soft, hard}; -1 is unlimited, memlock and stack in bytes",
        "unit": "the same inside a service of systemd; null where it could not be asked",
        "unit_error": "why not", "umask": "of this login, octal", "user": "uid of this login",
    },
    example="- probe_limits: {}\n",
)
_LIMITS: Tuple[str, ...] = ("memlock", "nofile", "nproc", "stack")
_ASK = (
    "import json,resource as r;"
    "print(json.dumps({n:dict(zip(('soft','hard'),r.getrlimit(getattr(r,'RLIMIT_'+n.upper())))) for n in ('memlock','nofile','nproc','stack')}))"
)


def act(system: System, args: Args, check: bool) -> Outcome:
    umask = os.umask(0o022)
    os.umask(umask)
    unit, error = _unit(system, args) if args["unit"] else (None, "not asked for")
    return Outcome(values={"login": _own(), "unit": unit, "unit_error": error, "umask": format(umask, "04o"), "user": os.getuid()})


def _own() -> Dict[str, Dict[str, int]]:
    pairs = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}")) for name in _LIMITS}
    return {name: {"soft": _plain(soft), "hard": _plain(hard)} for name, (soft, hard) in pairs.items()}


def _plain(value: int) -> int:
    return -1 if value == resource.RLIM_INFINITY else value


def _unit(system: System, args: Args) -> "Tuple[Any, str]":
    """(limits, "") or (None, reason). The manager itself is asked to start the process, so its own defaults show."""
    if os.geteuid() != 0:
        return None, "only root may start a transient unit"
    if not os.path.isdir("/run/systemd/system") or system.which("systemd-run") is None:
        return None, "systemd does not run here"
    argv = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--service-type=exec", "python3", "-I", "-S", "-c", _ASK]
    try:
        done = system.run(argv, timeout=args["timeout"])
        return (json.loads(done.stdout), "") if done.rc == 0 else (None, done.stderr.strip() or f"systemd-run ended with {done.rc}")
    except Failed as failed:
        system.stopper.check()
        return None, failed.msg
    except ValueError:
        return None, "the transient unit gave no answer"
