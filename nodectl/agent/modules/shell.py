"""Run a line by a shell."""

from __future__ import annotations

from nodectl.agent import commandline
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Spec

SPEC = Spec(
    summary="Run a line by /bin/sh: pipes, redirections and variables work",
    params=commandline.PARAMS,
    free_form="cmd",
    required_one_of=(("cmd",),),
    returns=commandline.RETURNS,
    example="- shell: dmesg | grep -c NVRM\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    return commandline.run(system, args, [args["executable"] or "/bin/sh", "-c", args["cmd"]], args["cmd"], check)
