"""The MPI way to name nodes: one `address slots=N` per node. DeepSpeed and mpirun read it."""

from __future__ import annotations

import re

from nodectl.handoff.artefact import Artefact
from nodectl.handoff.pool import Pool
from nodectl.handoff.ssh_config import ssh_config

# What Open MPI takes for a node: it packs the names of a job into one expression, which knows no colon (orte_node_regex).
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


def hostfile(pool: Pool) -> Artefact:
    """Addresses of the fabric, not names: a name may resolve to 127.0.1.1 on the node itself."""
    lines, refused = [], {}
    for node in pool.nodes:
        if _NAME.fullmatch(node.fabric_address):
            lines.append(f"{node.fabric_address} slots={node.nproc}\n")
        else:
            refused[node.host] = f"its address on the fabric is {node.fabric_address}, which is no node name of Open MPI: letters, digits, dots and -"
    return Artefact({"hostfile": "".join(lines), "ssh_config": ssh_config(pool)} if lines else {}, refused)
