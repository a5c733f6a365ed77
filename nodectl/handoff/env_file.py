"""Environment of one node's ranks: plain KEY=value lines, as docker and systemd read them too."""

from __future__ import annotations

from nodectl.handoff.pool import HandedNode


def env_file(node: HandedNode) -> str:
    """Sorted, so that two runs can be compared. Raises ValueError for a value that would begin a line of its own."""
    for key, value in node.env.items():
        if "\n" in value or "\r" in value or "=" in key or not key:
            raise ValueError(f"{node.host}: environment variable {key!r} holds a line break or has no name")
    return "".join(f"{key}={value}\n" for key, value in sorted(node.env.items()))
