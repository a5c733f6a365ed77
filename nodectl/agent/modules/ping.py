"""Answer: Python runs on the node and takes orders."""

from __future__ import annotations

from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Answer pong: the agent runs on the node and takes orders",
    params={"data": Param(default="pong", help="what to answer; 'crash' raises, to see what a bug looks like")},
    returns={"ping": "the data"},
    example="- ping:\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    if args["data"] == "crash":
        raise RuntimeError("boom, asked for by data: crash")
    return Outcome(values={"ping": args["data"]})
