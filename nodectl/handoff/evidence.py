"""What was measured and what it was held against, so that `nodectl verify --replay` can judge it again: see nodectl/verify/evidence.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodectl.handoff.pool import Pool
from nodectl.verify.evidence import evidence_of
from nodectl.wire.event import Event


def evidence(pool: Pool, events: Sequence[Event]) -> dict[str, Any]:
    """JSON types, sealed by hashes."""
    return evidence_of(events, [node.host for node in pool.nodes], pool.world_size)
