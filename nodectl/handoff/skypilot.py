"""SkyPilot: an SSH node pool of the proven nodes. Excluded nodes are not in it.

Written for ~/.sky/ssh_node_pools.yaml of SkyPilot 0.14 (sky/ssh_node_pools/utils.py reads it).
"""

from __future__ import annotations

import re
from typing import Any

from nodectl.handoff.artefact import Artefact, Inexpressible
from nodectl.handoff.block_yaml import block
from nodectl.handoff.pool import HandedNode, Pool
from nodectl.handoff.ssh_config import SSH_PORT

POOL = "nodectl"
# SkyPilot makes a node of K3s out of it: K3S_NODE_NAME and a label carry the same word.
_NODE = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
# SkyPilot puts both on lines of a shell (deploy/utils.py, run_remote with use_shell) and quotes neither.
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_FILE = re.compile(r"[A-Za-z0-9._/+@%,:-]+")
# What SkyPilot decides itself, or what changes nothing about where a login leads; any other option needs an ssh_config.
_NO_MATTER = frozenset([
    "userknownhostsfile", "globalknownhostsfile", "stricthostkeychecking", "connecttimeout", "serveraliveinterval", "serveralivecountmax", "batchmode",
    "loglevel", "identitiesonly", "compression", "controlmaster", "controlpath", "controlpersist", "tcpkeepalive",
])

_HEAD = """# Proven nodes of nodectl's run {run} as an SSH node pool of SkyPilot.
# Copy it to ~/.sky/ssh_node_pools.yaml (or its content below what is there), then: sky ssh up --infra {pool}
"""
_BY_NAME = """# Hosts given by name alone need what only an ssh_config can say (a port, a jump host). Put this line at the top of ~/.ssh/config:
#     Include {folder}/ssh_config
"""


def skypilot(pool: Pool) -> Artefact:
    """The pool's file, or none where no node can stand in it."""
    hosts: list[HandedNode] = []
    refused = {}
    for node in pool.nodes:
        try:
            _entry(node, "", "")
            hosts.append(node)
        except Inexpressible as error:
            refused[node.host] = str(error)
    if not hosts:
        return Artefact({}, refused)
    first = next((node for node in hosts if not _needs_config(node)), None)
    user, key = (first.user, _key(first)) if first else ("", "")
    entries = [_entry(node, user, key) for node in hosts]
    shared = {name: value for name, value in (("user", user), ("identity_file", key)) if value}
    head = _HEAD.format(run="".join(char if char.isprintable() else "?" for char in pool.run_id), pool=POOL)
    by_name = _BY_NAME.format(folder="/path/to/handoff") if any(isinstance(entry, str) for entry in entries) else ""
    return Artefact({"skypilot/ssh_node_pools.yaml": head + by_name + block({POOL: {**shared, "hosts": entries}})}, refused)


def _entry(node: HandedNode, user: str, key: str) -> Any:
    """A mapping with the address, or the bare name where only the handoff's ssh_config can say how to log in. Raises Inexpressible."""
    if node.connection != "ssh":
        raise Inexpressible("it is this machine itself: SkyPilot logs in to its nodes with ssh")
    if not _NODE.fullmatch(node.host):
        raise Inexpressible(f"{node.host!r} is no name for SkyPilot's Kubernetes: small letters, digits, dots and -, at most 63 of them")
    if _needs_config(node):
        return node.host
    for what, value, pattern in (("address", node.address, _NODE), ("user", node.user, _USER), ("key file", _key(node), _FILE)):
        if value and not pattern.fullmatch(value):
            raise Inexpressible(f"its {what} is {value!r}, which SkyPilot would put on a command line without quotes")
    return {"ip": node.address, **({"user": node.user} if node.user != user else {}), **({"identity_file": _key(node)} if _key(node) != key else {})}


def _needs_config(node: HandedNode) -> bool:
    options = {name.lower() for name in node.ssh_options} - _NO_MATTER - {"identityfile"}
    return node.port != SSH_PORT or bool(options) or len(_keys(node)) > 1


def _keys(node: HandedNode) -> list[str]:
    if node.key_file:
        return [node.key_file]
    return next((value.splitlines() for name, value in node.ssh_options.items() if name.lower() == "identityfile"), [])


def _key(node: HandedNode) -> str:
    return next(iter(_keys(node)), "")
