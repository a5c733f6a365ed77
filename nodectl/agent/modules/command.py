"""Run a program, without a shell."""

from __future__ import annotations

import shlex
from typing import List

from nodectl.agent import commandline
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Run a program without a shell: no pipes, no redirections, no variables of a shell",
    params={
        **commandline.PARAMS,
        "argv": Param("list", help="the words of the command, in place of cmd: nothing needs quoting"),
        "expand_argument_vars": Param("bool", default=True, help="replace $NAME by the environment's value and ~ by a home"),
    },
    free_form="cmd",
    mutually_exclusive=(("cmd", "argv"),),
    required_one_of=(("cmd", "argv"),),
    returns=commandline.RETURNS,
    example="- command: fstrim -v /scratch\n  args:\n    creates: /scratch/.trimmed\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    words = _words(args)
    argv = commandline.expanded(words, system.environment) if args["expand_argument_vars"] else words
    return commandline.run(system, args, argv, words, check)


def _words(args: Args) -> List[str]:
    if args["argv"] is not None:
        words = [str(word) for word in args["argv"]]
    else:
        try:
            words = shlex.split(args["cmd"])
        except ValueError as error:
            raise Failed(f"cannot split the command into words: {error}: {args['cmd']}") from None
    if not words:
        raise Failed("no command given", rc=257, stdout="", stderr="", stdout_lines=[], stderr_lines=[])
    return [args["executable"], *words] if args["executable"] else words
