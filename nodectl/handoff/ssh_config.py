"""How to log in to the nodes that passed, as OpenSSH reads it. Holds paths of keys, never a key or a password."""

from __future__ import annotations

from nodectl.handoff.pool import HandedNode, Pool

# Only what the inventory did not say: the first value wins in ssh_config. No prompt may hold up a launch; a dead node is
# noticed after 15 s x 4 of silence.
_DEFAULTS = {
    "batchmode": "yes", "stricthostkeychecking": "yes", "connecttimeout": "20", "serveraliveinterval": "15", "serveralivecountmax": "4", "loglevel": "ERROR",
}


def ssh_config(pool: Pool) -> str:
    """One Host block per node; use with ``ssh -F``. Raises ValueError for a value that would begin a line of its own."""
    return "\n".join(_block(node) for node in pool.nodes if node.connection == "ssh")


def _block(node: HandedNode) -> str:
    lines = {"hostname": node.address, "port": str(node.port)}
    if node.user:
        lines["user"] = node.user
    if node.key_file:
        lines.update(identityfile=node.key_file, identitiesonly="yes")
    lines.update({key.lower(): value for key, value in node.ssh_options.items()})
    lines.update({key: value for key, value in _DEFAULTS.items() if key not in lines})
    return f"Host {_word(node.host)}\n" + "".join(f"    {key} {_word(value)}\n" for key, value in lines.items())


def _word(value: str) -> str:
    if any(ord(char) < 32 for char in value) or '"' in value:
        raise ValueError(f"{value!r} cannot stand in an ssh_config: it holds a control character or a quote")
    return f'"{value}"' if any(char in value for char in " #'") else value
