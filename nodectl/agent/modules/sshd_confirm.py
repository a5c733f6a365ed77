"""sshd_confirm: keep what sshd_dropin wrote (the fresh login worked), or take it back at once."""

from __future__ import annotations

from nodectl.agent import sshd_revert
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Ends the waiting time of sshd_dropin: keep the new settings, or restore the old ones now",
    params={"keep": Param("bool", "true after a fresh login worked; false restores the old file.", required=True)},
    example="- sshd_confirm:\n    keep: true\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    """Raises Failed when there is nothing to confirm: the node has already taken the old file back."""
    if check:
        return Outcome(skipped=True, msg="nothing to confirm in check mode")
    if args["keep"]:
        sshd_revert.keep(system)
        return Outcome(msg="confirmed by a fresh login")
    sshd_revert.take_back(system)
    return Outcome(changed=True, msg="the old sshd settings are back")
