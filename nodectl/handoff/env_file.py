"""Environment of one node's ranks: plain KEY=value lines, as docker and systemd read them too."""

from __future__ import annotations

import re

from nodectl.handoff.pool import HandedNode

# What `env` takes for a name and not for an option of its own.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def env_file(node: HandedNode) -> str:
    """Sorted, so that two runs can be compared. Raises ValueError for what no line KEY=value can hold."""
    for key, value in node.env.items():
        if not _NAME.fullmatch(key):
            raise ValueError(f"{key!r} is not a name of an environment variable")
        if not value.isprintable():
            raise ValueError(f"the value of environment variable {key} holds a line break or another control character")
    return "".join(f"{key}={value}\n" for key, value in sorted(node.env.items()))
