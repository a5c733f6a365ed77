"""Ask something that may hang, and go on without it."""

from __future__ import annotations

import threading
from typing import Callable, List, Tuple, TypeVar

from nodectl.agent.contract import Failed

T = TypeVar("T")


def bounded(what: str, ask: Callable[[], T], default: T, timeout: float) -> Tuple[T, str]:
    """(answer, "") or (default, why there is none). A thread that hangs in the kernel is left behind; it holds nothing."""
    answers: List[T] = []
    problems: List[str] = []

    def work() -> None:
        try:
            answers.append(ask())
        except Failed as failed:
            problems.append(failed.msg)
        except (OSError, ValueError, KeyError, IndexError) as error:
            problems.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=work, name=f"facts-{what}", daemon=True)
    thread.start()
    thread.join(timeout)
    if answers:
        return answers[0], ""
    reason = problems[0] if problems else f"no answer within {timeout:g} s"
    return default, f"facts about {what} are missing: {reason}"
