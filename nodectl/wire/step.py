"""One order to the agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Optional


@dataclass
class Step:
    """Run module ``module`` with ``args`` (already templated, JSON types only).

    ``timeout`` is in seconds; at its end the agent ends the step's process group and reports a failure.
    ``blobs`` maps a name to the id of bytes sent before in blob frames.
    ``needs`` is the id of a step sent before: if that one failed, this one is not run.
    ``background``: answer as soon as the step has begun, and let it go on when the line ends (`async`).
    """

    id: int
    module: str
    args: Dict[str, Any]
    check: bool = False
    diff: bool = False
    timeout: Optional[float] = None
    environment: Dict[str, str] = field(default_factory=dict)
    blobs: Dict[str, str] = field(default_factory=dict)
    needs: Optional[int] = None
    background: bool = False

    def to_json(self) -> Dict[str, Any]:
        return dict(vars(self))


def step_from_json(data: Dict[str, Any]) -> Step:
    """The inverse of ``Step.to_json``."""
    return Step(**data)
