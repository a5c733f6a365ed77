"""Targets of a Makefile."""

from __future__ import annotations

import shlex
from typing import List

from nodectl.agent import commandline
from nodectl.agent.contract import Args, Failed
from nodectl.agent.processes import Completed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="See that targets of a Makefile are up to date",
    params={
        "chdir": Param("path", required=True, help="the folder to run in"),
        "target": Param(help="what to make"),
        "targets": Param("list", elements="str", help="what to make, several"),
        "params": Param("dict", help="variables: name and value; a name without value is an argument as it stands"),
        "file": Param("path", help="another Makefile"),
        "make": Param("path", help="another make"),
        "jobs": Param("int", help="how many jobs at once"),
    },
    mutually_exclusive=(("target", "targets"),),
    returns={
        "command": "what was run", "stdout": "output", "stderr": "error output", "chdir": "as given", "target": "as given", "targets": "as given",
        "params": "as given", "file": "as given", "jobs": "as given",
    },
    example="- make: {chdir: /opt/nccl-tests, params: {MPI: 1}, jobs: 16}\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    argv = _argv(system, args)
    asked = _run(system, args, [*argv, "-q"])  # says by its exit code whether there is something to do
    done = asked if check or asked.rc == 0 else _run(system, args, argv)
    if not check and done.rc != 0:
        msg = (done.stderr or done.stdout).strip() or f"make ended with {done.rc}"
        raise Failed(msg, rc=done.rc, stdout=done.stdout, stderr=done.stderr, cmd=shlex.join(argv))
    told = {name: args[name] for name in ("chdir", "target", "targets", "params", "file", "jobs")}
    return Outcome(
        changed=asked.rc != 0, warnings=commandline.dropped(done),
        values={**told, "command": shlex.join(argv), "stdout": done.stdout.rstrip("\r\n"), "stderr": done.stderr.rstrip("\r\n")},
    )


def _argv(system: System, args: Args) -> List[str]:
    program = args["make"] or system.which("gmake") or system.which("make")
    if program is None:
        raise Failed("there is no make on this node")
    targets = [args["target"]] if args["target"] else args["targets"] or []
    jobs = [] if args["jobs"] is None else ["-j", str(args["jobs"])]
    file = [] if args["file"] is None else ["-f", args["file"]]
    return [program, *jobs, *file, *targets, *(name if value is None else f"{name}={value}" for name, value in (args["params"] or {}).items())]


def _run(system: System, args: Args, argv: List[str]) -> Completed:
    return system.run(argv, timeout=commandline.LONGEST, cwd=args["chdir"])
