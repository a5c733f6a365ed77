"""Run a program text under an interpreter of the node, as the login user. Nothing of it is written to the node's disk."""

from __future__ import annotations

from typing import Any, Dict

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# What comes back of each stream: a group's results are a few KiB per rank; NCCL's own log is longer and ends with the cause.
TAIL = 256 * 1024

SPEC = Spec(
    summary="Run a Python program, sent with the step, under an interpreter of the node in its own process group",
    params={
        "python": Param("path", "The interpreter, for example that of the environment that has torch", required=True),
        "source": Param("str", "The program's text; it reaches the interpreter on stdin", required=True),
        "argv": Param("list", "Arguments of the program", default=(), elements="str"),
        "env": Param("dict", "Added to the environment", default={}),
        "timeout": Param("float", "Seconds after which the whole process group is ended", default=60.0),
    },
    returns={
        "rc": "Exit code; negative: the signal that ended it", "stdout": "Last 256 KiB of its output",
        "stderr": "Last 256 KiB of its error output", "timed_out": "True when it was ended at its deadline",
    },
    example="workload: {python: /opt/torch/bin/python, source: 'print(1)', timeout: 10}",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    """rc != 0 is a result, not a failure: the controller judges it. Failed: no such interpreter."""
    if check:
        return Outcome(skipped=True, msg="a workload is not run in check mode")
    environment = {str(key): str(value) for key, value in args["env"].items()}
    argv = [args["python"], "-u", "-", *args["argv"]]
    try:
        done = system.run(argv, stdin=args["source"].encode("utf-8"), timeout=args["timeout"], env=environment)
    except Failed as failed:
        # The runner's own deadline and a cancel stay failures; our own timeout is a result with what was printed so far.
        system.stopper.check()
        if "did not end" not in failed.msg:
            raise
        return Outcome(values=_values(-15, str(failed.values.get("stdout", "")), str(failed.values.get("stderr", "")), True))
    return Outcome(values=_values(done.rc, done.stdout, done.stderr, False))


def _values(rc: int, stdout: str, stderr: str, timed_out: bool) -> Dict[str, Any]:
    return {"rc": rc, "stdout": stdout[-TAIL:], "stderr": stderr[-TAIL:], "timed_out": timed_out}
