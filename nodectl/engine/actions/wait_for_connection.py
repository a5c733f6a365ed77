"""wait_for_connection: wait until a new login to the node works (after a reboot, a new kernel, a changed sshd)."""

from __future__ import annotations

import time

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Wait until a new login to the node works",
    params={
        "timeout": Param("int", "Give up after so many seconds.", default=600),
        "delay": Param("int", "Wait so many seconds before the first try.", default=0),
        "sleep": Param("int", "Seconds between two tries.", default=1),
        "connect_timeout": Param("int", "Taken for Ansible's sake; the transport's own bound holds.", default=5),
    },
    returns={"elapsed": "seconds until the login worked"},
    example="- wait_for_connection:\n    timeout: 300\n",
)


def run(context: Context, args: Args) -> Outcome:
    start = time.monotonic()
    if context.check:
        return Outcome(skipped=True, msg="not waited for in check mode")
    context.wait(args["delay"])
    context.node.reset()
    last = "no try was made"
    while time.monotonic() - start < args["timeout"]:
        try:
            outcome = context.node.step("ping", {})
        except (Unreachable, Lost) as error:
            last = error.reason
            context.node.reset()
            context.wait(max(args["sleep"], 0.1))
            continue
        outcome.values["elapsed"] = int(time.monotonic() - start)
        return outcome
    raise ActionFailed(f"no login within {args['timeout']} s: {last}", elapsed=int(time.monotonic() - start))
