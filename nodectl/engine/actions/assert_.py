"""assert: conditions that must hold."""

from __future__ import annotations

from typing import Any

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Fail unless every condition holds",
    params={
        "that": Param("raw", "One condition or a list of conditions, without braces.", required=True),
        "fail_msg": Param("raw", "The message when one does not hold.", aliases=("msg",)),
        "success_msg": Param("raw", "The message when all hold."),
        "quiet": Param("bool", "Do not repeat the conditions in the result.", default=False),
    },
    returns={"assertion": "the condition that does not hold", "evaluated_to": "its value"},
    example="- assert:\n    that: ansible_memtotal_mb > 4096\n    fail_msg: at least 4 GiB of memory are needed\n",
)


def run(context: Context, args: Args) -> Outcome:
    for name in ("fail_msg", "success_msg"):
        if not isinstance(args[name], (str, list, type(None))):
            raise ActionFailed(f"{name} wants text or a list of texts, not {args[name]!r}: write it in quotes")
    conditions = args["that"] if isinstance(args["that"], list) else [args["that"]]
    for condition in conditions:
        if not context.templar.holds([condition], context.variables):
            return Outcome(failed=True, msg=_text(args["fail_msg"], "Assertion failed"), values={"assertion": condition, "evaluated_to": False})
    return Outcome(msg=_text(args["success_msg"], "All assertions passed"))


def _text(said: Any, otherwise: str) -> str:
    if isinstance(said, list):
        return "\n".join(map(str, said))
    return otherwise if said is None else str(said)
