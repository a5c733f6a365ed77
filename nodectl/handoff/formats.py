"""The formats of a handoff: what makes each, what it is for, and how the next tool takes it. One table for the files, the index and the help."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nodectl.handoff.artefact import Artefact
from nodectl.handoff.env_file import env_file
from nodectl.handoff.hostfile import hostfile
from nodectl.handoff.kubernetes import kubernetes
from nodectl.handoff.nccl_conf import nccl_files
from nodectl.handoff.pool import Pool
from nodectl.handoff.skypilot import skypilot
from nodectl.handoff.slurm import slurm
from nodectl.handoff.ssh_config import ssh_config
from nodectl.handoff.torchrun import torchrun


@dataclass(frozen=True)
class Format:
    """``purpose`` in one sentence; ``use`` are command lines or steps, run in the handoff's folder."""

    purpose: str
    use: tuple[str, ...]
    make: Callable[[Pool], Artefact]


def _torchrun(pool: Pool) -> Artefact:
    """The launcher last: where it stands, all that it reads is there."""
    if not pool.nodes:
        return Artefact()
    return Artefact({**_nodes(pool), "ssh_config": ssh_config(pool), "torchrun.sh": torchrun(pool)})


def _nodes(pool: Pool) -> dict[str, str]:
    nodes = [dataclasses.asdict(node) | {"verdict": node.verdict} for node in pool.nodes]
    for node in nodes:
        del node["machine"]["nccl_files"]  # they have files of their own
    return {**{f"env/{node.host}.env": env_file(node) for node in pool.nodes}, "nodes.json": json.dumps(nodes, indent=2, ensure_ascii=False) + "\n"}


FORMATS: Mapping[str, Format] = {
    "torchrun": Format(
        "start a job with torchrun on the proven nodes, over plain ssh; nodes.json and env/ are the same for a launcher of your own",
        ("./torchrun.sh SCRIPT [ARGS...]",), _torchrun,
    ),
    "mpi": Format(
        "hosts with slots by their address on the fabric, for mpirun and DeepSpeed",
        ('mpirun --hostfile hostfile --mca plm_rsh_args "-F $PWD/ssh_config" PROGRAM', "deepspeed --hostfile hostfile SCRIPT"), hostfile,
    ),
    "nccl": Format(
        "NCCL's settings of each node as they held when it was measured, for containers that bring no /etc/nccl.conf",
        ("docker run -v $PWD/nccl/$HOST.conf:/etc/nccl.conf:ro IMAGE",), nccl_files,
    ),
    "slurm": Format(
        "node lines for slurm.conf and gres.conf; a script that drains the excluded nodes, each with its reason, and resumes what nodectl had drained",
        ("Include /path/to/nodes.conf (in slurm.conf)", "slurm/apply.sh --dry-run", "slurm/apply.sh"), slurm,
    ),
    "skypilot": Format(
        "the proven nodes as an SSH node pool",
        ("cp skypilot/ssh_node_pools.yaml ~/.sky/ssh_node_pools.yaml", "sky ssh up --infra nodectl"), skypilot,
    ),
    "kubernetes": Format(
        "labels on the proven nodes, a taint and the reason on the excluded ones; the same as Node objects",
        ("kubernetes/apply.sh --dry-run", "kubernetes/apply.sh"), kubernetes,
    ),
}
