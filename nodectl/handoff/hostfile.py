"""The MPI way to name nodes: one `address slots=N` per node. DeepSpeed and mpirun read it."""

from __future__ import annotations

from nodectl.handoff.pool import Pool


def hostfile(pool: Pool) -> str:
    """Addresses of the fabric, not names: a name may resolve to 127.0.1.1 on the node itself."""
    return "".join(f"{node.fabric_address} slots={node.nproc}\n" for node in pool.nodes)
