"""raw: a line for the login's shell, without an agent: the node needs no Python."""

from __future__ import annotations

from nodectl.engine.actions.contract import Args, Context
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Run a line by a shell of the node, which needs no Python for it",
    params={"cmd": Param("str", "The line.", required=True), "executable": Param("str", "Another shell than /bin/sh, with its full path.")},
    free_form="cmd",
    returns={
        "rc": "exit code", "stdout": "output", "stderr": "error output", "stdout_lines": "output as lines",
        "stderr_lines": "error output as lines", "msg": "that it failed",
    },
    example="- raw: test -e /usr/bin/python3 || (apt-get update && apt-get install -y python3)\n",
)


def run(context: Context, args: Args) -> Outcome:
    if context.check:
        return Outcome(skipped=True, msg="what the line would do is not known: skipped in check mode")
    ran = context.node.raw(args["cmd"], args["executable"] or "")
    out, err = (text.decode("utf-8", "replace") for text in (ran.stdout, ran.stderr))
    values = {"rc": ran.rc, "stdout": out, "stderr": err, "stdout_lines": out.splitlines(), "stderr_lines": err.splitlines()}
    warnings = [f"the output was longer than 1 MiB: {ran.dropped} bytes in its middle were left out"] if ran.dropped else []
    return Outcome(changed=True, failed=ran.rc != 0, msg="non-zero return code" if ran.rc else "", values=values, warnings=warnings)
