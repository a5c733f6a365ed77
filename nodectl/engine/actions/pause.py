"""pause: wait a while. Asking a person is refused: an unattended run would wait for ever."""

from __future__ import annotations

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Wait for a number of seconds or minutes",
    params={"seconds": Param("int", "How long."), "minutes": Param("int", "How long."), "prompt": Param("str", "Refused: nobody is there to answer.")},
    mutually_exclusive=(("seconds", "minutes"),),
    returns={"delta": "seconds waited"},
    example="- pause:\n    seconds: 5\n",
)


def run(context: Context, args: Args) -> Outcome:
    if args["prompt"] is not None or (args["seconds"] is None and args["minutes"] is None):
        raise ActionFailed("pause would wait for an answer that nobody gives: set seconds or minutes")
    seconds = args["seconds"] if args["seconds"] is not None else args["minutes"] * 60
    if not context.check:
        context.wait(seconds)
    return Outcome(values={"delta": seconds})
