"""probe_clock: this node's clock, for the controller to work out the offset from the time the question took."""

from __future__ import annotations

import time
from typing import Any, Dict

from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Spec

SPEC = Spec(
    summary="The node's clock at this instant.",
    params={},
    returns={"time_ns": "nanoseconds since the epoch", "monotonic_ns": "nanoseconds of the clock that never jumps", "boot_id": "changes with each boot"},
    example="- probe_clock: {}\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    values: Dict[str, Any] = {"boot_id": (system.read("/proc/sys/kernel/random/boot_id") or b"").decode().strip()}
    values["monotonic_ns"] = time.monotonic_ns()
    values["time_ns"] = time.time_ns()  # last, so that nothing stands between it and the answer
    return Outcome(values=values)
