"""How to log in to the nodes that passed, as OpenSSH reads it. Holds paths of keys, never a key or a password."""

from __future__ import annotations

import shlex

from nodectl.handoff.pool import HandedNode, Pool

# Not written: "22" is also what an inventory without a port says, and then a Port of ~/.ssh/config holds.
SSH_PORT = 22

# Only what the inventory did not say: the first value wins in ssh_config. No prompt may hold up a launch; a dead node is
# noticed after 15 s x 4 of silence.
_DEFAULTS = {
    "batchmode": "yes", "stricthostkeychecking": "yes", "connecttimeout": "20", "serveraliveinterval": "15", "serveralivecountmax": "4", "loglevel": "ERROR",
}


# Options whose value is several words, each of which may be quoted; and one that is the rest of its line, quotes and all.
_SEVERAL = frozenset(["userknownhostsfile", "globalknownhostsfile", "sendenv", "ipqos"])
_WHOLE = frozenset(["proxycommand"])
# What the run itself looked into, unless the inventory names a file with -F.
_INCLUDED = ("~/.ssh/config", "/etc/ssh/ssh_config")


def ssh_config(pool: Pool) -> str:
    """One Host block per node; use with ``ssh -F``. Raises ValueError for a value that would begin a line of its own."""
    return "\n".join(ssh_block(node) for node in pool.nodes if node.connection == "ssh")


def ssh_block(node: HandedNode) -> str:
    """The first value of a keyword wins in ssh, so the inventory comes first, then the user's own files, which -F would leave out."""
    options = {key.lower(): value for key, value in node.ssh_options.items()}
    files = [options.pop("configfile")] if "configfile" in options else list(_INCLUDED)
    keys = options.pop("identityfile", "").splitlines()
    # A percent sign is a token's beginning in these two, and a plain character in the inventory's variables.
    lines = {"hostname": node.address.replace("%", "%%")} if node.address != node.host else {}
    if node.port != SSH_PORT:
        lines["port"] = str(node.port)
    if node.user:
        lines["user"] = node.user
    if node.key_file:
        keys, lines["identitiesonly"] = [node.key_file.replace("%", "%%")], "yes"
    lines = {**options, **lines}
    lines.update({key: value for key, value in _DEFAULTS.items() if key not in lines})
    rows = [*lines.items(), *(("identityfile", key) for key in keys), *(("include", file) for file in files)]
    # mpirun and DeepSpeed log in by the address in the hostfile: the same node, reached the same way.
    names = dict.fromkeys([node.host, node.fabric_address])
    return f"Host {' '.join(map(_word, names))}\n" + "".join(f"    {key} {_value(key, value)}\n" for key, value in rows)


def _value(key: str, value: str) -> str:
    if key in _WHOLE:
        _refuse_control(value)
        shlex.split(value)  # one open quote, and ssh reads nothing of the whole file
        return value
    if key in _SEVERAL:
        return " ".join(_word(word) for word in shlex.split(value))
    return _word(value)


def _word(value: str) -> str:
    _refuse_control(value)
    if '"' in value or not value:
        raise ValueError(f"{value!r} cannot stand in an ssh_config: it is empty or holds a quote")
    return f'"{value}"' if any(char in value for char in " #'=") else value


def _refuse_control(value: str) -> None:
    if not value.isprintable():
        raise ValueError(f"{value!r} cannot stand in an ssh_config: it holds a control character")
