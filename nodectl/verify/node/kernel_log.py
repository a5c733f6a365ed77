"""The kernel's log of a node, asked with a deadline, for the steps that read GPUs and links from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.verify.answer import Answer
from nodectl.verify.session import Session


def kernel_events(session: Session, root: str, deadline: float) -> tuple[list[Mapping[str, Any]] | None, float, str]:
    """(events, the node's own time in seconds, ""), or (None, 0, why the log says nothing). Raises Gone, Garbled."""
    # The log's own deadline lies inside the step's, so that a journal that hangs is named instead of the step.
    outcome = session.ask("probe_kernel_log", {"root": root, "timeout": deadline / 2}, deadline, root=True)
    if outcome.failed:
        return None, 0.0, outcome.msg
    said = Answer("probe_kernel_log", outcome.values)
    error = said.text("error")
    return (None, 0.0, error) if error else (said.parts("events"), said.number("now"), "")
