"""fail: stop here with a message."""

from __future__ import annotations

from nodectl.engine.actions.contract import Args, Context
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Fail with a message",
    params={"msg": Param("str", "Why.", default="Failed as requested from task")},
    example="- fail:\n    msg: This role needs Debian 12\n  when: ansible_distribution_major_version != '12'\n",
)


def run(context: Context, args: Args) -> Outcome:
    return Outcome(failed=True, msg=str(args["msg"]))
