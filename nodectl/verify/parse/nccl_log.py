"""What NCCL says of itself with NCCL_DEBUG=INFO. Pure."""

from __future__ import annotations

import re

_USING = re.compile(r"NCCL INFO Using network (?:AWS )?(\S+)")


def network_used(log: str) -> str:
    """The network of all communicators of one node ("IB", "Socket", "Libfabric"), several joined by a comma, "" when it is not said."""
    return ",".join(sorted(set(_USING.findall(log))))
