"""access_confirm: keep a guarded change (the fresh login worked), or take it back at once."""

from __future__ import annotations

from nodectl.agent import access_guard, sshd_revert
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Ends the waiting time of sshd_dropin, nftables_table and access_files: keep the change, or restore what was there before now",
    params={
        "guard": Param("str", "Whose change it is.", required=True, choices=("sshd", "firewall", "files")),
        "keep": Param("bool", "true after a fresh login worked; false restores what was there.", required=True),
    },
    example="- access_confirm:\n    guard: sshd\n    keep: true\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    """Raises Failed when there is nothing to confirm: the node has already taken the change back."""
    if check:
        return Outcome(skipped=True, msg="nothing to confirm in check mode")
    if args["keep"]:
        access_guard.keep(system, args["guard"])
        return Outcome(msg="confirmed by a fresh login")
    if args["guard"] == sshd_revert.GUARD:
        sshd_revert.take_back(system)
    else:
        access_guard.take_back(system, args["guard"])
    return Outcome(changed=True, msg="what was there before is back")
