"""The longest time that a suite can take, whatever the nodes do: said before it starts. Pure.

It is the sum of all deadlines with every retry used, so a healthy fleet needs a small part of it.
"""

from __future__ import annotations

from nodectl.transport.channel import Limits
from nodectl.verify.group.gang import INIT_TIMEOUT, PORT_DEADLINE
from nodectl.verify.group.hunt import CONTESTED, RETESTS
from nodectl.verify.group.narrow import most_levels
from nodectl.verify.group.pace_checks import LOOKS
from nodectl.verify.group.rdma_pair import SERVER_ENDS
from nodectl.verify.group.shared_step import BRIEF
from nodectl.verify.machine import DEADLINE
from nodectl.verify.node.node_checks import CLOCK_TRIES
from nodectl.verify.node.storage_checks import LOOK
from nodectl.verify.session import CLEANUP, GRACE
from nodectl.verify.suite_load import Suite, SuiteStep

# A group that breaks is formed again without whoever broke it: one more bad node each time, then the step is unknown.
ATTEMPTS = 3


def longest(suite: Suite, mounts: int, limits: Limits | None = None, disks: int = 1, nodes: int = 2) -> float:
    """Seconds. ``mounts`` and ``disks`` are the largest numbers of file mounts and scratch disks of a node; ``limits`` those of the connections;
    ``nodes`` how many there are."""
    allowed = limits or Limits()
    # One connection for all questions, and a fresh one for the limits of a new login.
    describe = DEADLINE + GRACE
    return 2 * (allowed.connect + allowed.start) + describe + sum(step.repeat * step_bound(step, mounts, disks, nodes) for step in suite.steps)


def step_bound(step: SuiteStep, mounts: int, disks: int, nodes: int) -> float:
    """Seconds that one repetition of the step can take."""
    question = step.deadline + GRACE
    group = question + PORT_DEADLINE + GRACE + INIT_TIMEOUT  # once more where the port was taken meanwhile
    known = {
        "clock": CLOCK_TRIES * question,
        "route": 2 * question,  # routes, then full packets over them
        "host": 2 * question,  # the system, then limits of a service
        "hca": 2 * question,  # ports, then the kernel's log
        "gpu": 2 * question,  # GPUs, then the kernel's log
        "mounts": (disks + 2 + 2 * mounts) * question + mounts * GRACE,  # each scratch disk, their list, the system's, each mount and its store
        "torch": 2 * question,  # the node's python3, then the environment of the role
        "node_all_reduce": group,
        # Once more where it is slow, then its parts, then what lies outside the slow part; looks at slow ranks.
        "all_reduce": (ATTEMPTS + 1 + LOOKS + most_levels(nodes) + (most_levels(nodes) > 0)) * group,
        "collectives": ATTEMPTS * (group + question) + question + group,  # counters before each and after; once more where one is slow
        "shared": mounts * (question + 2 * (BRIEF + GRACE)),  # looked for; written before, removed afterwards
        "scratch": step.deadline + disks * (GRACE + CLEANUP),
        "mount_io": step.deadline + mounts * (GRACE + CLEANUP),
        "phases": step.deadline + mounts * (GRACE + CLEANUP),
        "flush": step.deadline + mounts * (1 + LOOK + GRACE),  # each mount has a second, and a last look
    }
    if step.kind == "rdma":
        # Ports of all nodes; then each round, whose last measurement asks for a port and waits for both ends.
        return question + (step.option("rounds") + RETESTS + CONTESTED) * (step.deadline + PORT_DEADLINE + SERVER_ENDS + 3 * GRACE)
    # One more where a slow node is asked which way it is slow.
    return (step.option("rounds") + RETESTS + CONTESTED + 1 + LOOKS) * group if step.kind == "pairs" else known.get(step.kind, question)
