"""Who is left out, and why."""

from __future__ import annotations

from typing import Any

from nodectl.handoff.pool import Pool


def excluded(pool: Pool) -> dict[str, Any]:
    """By host: kind and reasons, worst first. Empty when every node was handed off."""
    return {item.host: {"kind": item.kind, "reasons": list(item.reasons)} for item in pool.excluded}
