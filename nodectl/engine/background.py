"""async and poll: a module as a job on the node, and the waiting for its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from nodectl.engine.node import GRACE, RunNode
from nodectl.engine.runtime import Runtime
from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.outcome import Outcome

# Ansible's default.
POLL = 15.0
# A job that ends at once is seen at once: the first looks come sooner than `poll`, each after twice the time of the one before.
FIRST = 0.05
# A node that restarts its network, or its sshd, comes back within that; a job does not outlive a reboot anyway.
AWAY = 120.0


def perform(run: Runtime, node: RunNode, module: str, args: Mapping[str, Any], seconds: float, poll: float) -> Outcome:
    """The job's own result, or with ``poll`` 0 that it was started. Raises Unreachable or Lost."""
    started = node.launch(module, args, seconds)
    if started.failed or not poll:
        return started
    job = str(started.values["ansible_job_id"])
    ended = _Wait(run, node, job, seconds, poll).to_the_end()
    if ended.values.get("finished") and ended.msg != "could not find job":
        node.step("async_status", {"jid": job, "mode": "cleanup"})
    return ended


class _Wait:
    """``seconds``: the node itself ends the job after that; ``GRACE`` later nobody waits any more."""

    def __init__(self, run: Runtime, node: RunNode, job: str, seconds: float, poll: float) -> None:
        self._run = run
        self._node = node
        self._job = job
        self._poll = poll
        self._seconds = seconds
        self._end = time.monotonic() + seconds + GRACE
        self._away = 0.0

    def to_the_end(self) -> Outcome:
        pause = min(FIRST, self._poll)
        while time.monotonic() < self._end:
            self._run.wait(pause)
            status = self._ask()
            if status is not None and status.values.get("finished"):
                return status
            pause = min(2 * pause, self._poll)
        return Outcome(failed=True, msg=f"async task did not complete within the requested time - {self._seconds:g}s", values={"ansible_job_id": self._job})

    def _ask(self) -> Outcome | None:
        """None while the node is away; one that stays away is gone, whatever its job does."""
        try:
            status = self._node.step("async_status", {"jid": self._job})
        except (Unreachable, Lost):
            self._away = self._away or time.monotonic()
            if time.monotonic() - self._away > AWAY:
                raise
            self._node.reset()
            return None
        self._away = 0.0
        return status
