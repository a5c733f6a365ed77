"""What a run's end means to the script that started it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Where several hold, ``first`` decides: a failed task before a missing node before a missing proof."""

    DONE = 0
    INPUT_WRONG = 1
    TASK_FAILED = 2
    NOT_PROVEN = 3
    UNREACHABLE = 4
    BUG = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 + SIGINT, as shells report it


# A failed task is listed first because it is what the user can mend in his own files; a node that is not there has no verdict
# either, so "not there" says more than "not proven".
ORDER = (ExitCode.TASK_FAILED, ExitCode.UNREACHABLE, ExitCode.NOT_PROVEN)

MEANING = {
    ExitCode.DONE: "done and proven",
    ExitCode.INPUT_WRONG: "the input is wrong; nothing was touched",
    ExitCode.TASK_FAILED: "a task failed on some node",
    ExitCode.NOT_PROVEN: "a verification failed or is unknown",
    ExitCode.UNREACHABLE: "a node was unreachable or lost",
    ExitCode.BUG: "a bug in nodectl",
    ExitCode.INTERRUPTED: "interrupted",
}


def first(codes: Iterable[ExitCode]) -> ExitCode:
    """The code to report for a run in which all of ``codes`` hold; DONE for none."""
    held = set(codes)
    return next((code for code in ORDER if code in held), ExitCode.DONE)
