"""sshd_confirm: keep what sshd_dropin wrote (the fresh login worked), or take it back at once."""

from __future__ import annotations

import os
import shutil

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

UNIT = "nodectl-sshd-revert"
HELD = "/run/nodectl-sshd"

SPEC = Spec(
    summary="Ends the waiting time of sshd_dropin: keep the new settings, or restore the old ones now",
    params={"keep": Param("bool", "true after a fresh login worked; false restores the old file.", required=True)},
    example="- sshd_confirm:\n    keep: true\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    """Raises Failed when there is nothing to confirm: the node has already taken the old file back."""
    script = os.path.join(HELD, "revert")
    if check:
        return Outcome(skipped=True, msg="nothing to confirm in check mode")
    if not os.path.exists(script):
        raise Failed("nothing is waiting for confirmation: the node has already restored its old sshd settings")
    if not args["keep"]:
        done = system.run(["/bin/sh", script], timeout=60.0)
        system.run(["systemctl", "stop", f"{UNIT}.timer"], timeout=20.0)
        if done.rc != 0:
            raise Failed(f"restoring the old sshd settings failed: {done.stderr.strip()}", rc=done.rc)
        return Outcome(changed=True, msg="the old sshd settings are back")
    stopped = system.run(["systemctl", "stop", f"{UNIT}.timer"], timeout=20.0)
    if stopped.rc != 0 or system.run(["systemctl", "is-active", f"{UNIT}.timer", f"{UNIT}.service"], timeout=20.0).stdout.split() != ["inactive", "inactive"]:
        raise Failed(f"the revert timer could not be stopped: {stopped.stderr.strip()}", rc=stopped.rc)
    shutil.rmtree(HELD, ignore_errors=True)
    return Outcome(msg="confirmed by a fresh login")
