"""What was measured and what it was held against: every check of every node, with the floor's source."""

from __future__ import annotations

import math
from typing import Any

from nodectl.handoff.pool import Pool

_SHOWN = ("name", "verdict", "value", "unit", "floor", "reason", "source", "simulated")


def _plain(value: Any) -> Any:
    """nan and inf as texts: JSON has neither."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def evidence(pool: Pool) -> dict[str, Any]:
    """JSON types. ``simulated`` at the top is True when any figure stands in for hardware: then nothing here promises speed."""
    hosts = {host: [{key: _plain(check.get(key)) for key in _SHOWN} for check in checks] for host, checks in pool.checks.items()}
    return {
        "run_id": pool.run_id,
        "world_size": pool.world_size,
        "handed_off": [node.host for node in pool.nodes],
        "simulated": any(check["simulated"] is True for checks in hosts.values() for check in checks),
        "checks": hosts,
    }
