"""Write the handoff of a run: what a training job needs to start on the nodes that passed, and the evidence for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodectl.handoff.env_file import env_file
from nodectl.handoff.evidence import evidence
from nodectl.handoff.excluded import excluded
from nodectl.handoff.formats import FORMATS
from nodectl.handoff.index import index, readme
from nodectl.handoff.pool import HandedNode, Pool, pool_of, without
from nodectl.handoff.ssh_config import ssh_block
from nodectl.wire.event import Event


class NotWritten(Exception):
    """The handoff's folder cannot be written; names file and reason."""


@dataclass(frozen=True)
class Handoff:
    """``path`` is the folder; ``hosts`` those handed off, in order; ``excluded`` the reasons of the others; ``world_size`` all ranks together.

    ``waived`` are the hosts that are handed off although a check of theirs was waived; ``refused`` by format: hosts that it cannot express, with why.
    """

    path: Path
    hosts: tuple[str, ...]
    excluded: Mapping[str, Mapping[str, Any]]
    world_size: int
    artefacts: tuple[str, ...]
    waived: tuple[str, ...] = ()
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def write_handoff(events: Sequence[Event], out: Path, formats: Sequence[str] = tuple(FORMATS)) -> Handoff:
    """Write the artefacts of ``formats`` into ``out``. Without a passing node nothing can be launched by accident: only who is to be taken out is said.

    A node that no artefact can describe is left out with the reason. Raises NotWritten.
    """
    pool = handed_off(events)
    made = {name: FORMATS[name].make(pool) for name in FORMATS if name in formats}
    files = {
        "excluded.json": _json(excluded(pool)), "evidence.json": _json(evidence(pool, events)),
        "handoff.json": _json(index(pool, made)), "README.md": readme(pool, made),
    }
    # The launcher last: where it stands, all that it reads is there.
    for artefact in reversed(made.values()):
        files.update(artefact.files)
    try:
        _write(out, files)
    except OSError as error:
        raise NotWritten(f"the handoff cannot be written: {error.filename or out}: {error.strerror}") from None
    waived = tuple(node.host for node in pool.nodes if node.waivers)
    refused = {name: one.refused for name, one in made.items() if one.refused}
    return Handoff(out, tuple(node.host for node in pool.nodes), excluded(pool), pool.world_size, tuple(sorted(files)), waived, refused)


def handed_off(events: Sequence[Event]) -> Pool:
    """The pool of a run, without nodes that passed and that no login and no environment can describe."""
    pool = pool_of(events)
    for node in pool.nodes:
        pool = _checked(pool, node)
    return pool


def _checked(pool: Pool, node: HandedNode) -> Pool:
    try:
        env_file(node)
        ssh_block(node)
    except ValueError as error:
        return without(pool, node.host, str(error))
    return pool


def _write(out: Path, files: Mapping[str, str]) -> None:
    _clear(out)
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Half a surrogate pair (undecodable output of a node) becomes its escape, which JSON reads back.
        path.write_text(text, "utf-8", errors="backslashreplace")
        if name.endswith(".sh"):
            path.chmod(0o755)


def _clear(out: Path) -> None:
    """An older handoff in the same folder must not survive: a node that fails now may be in it. Nothing but what a handoff writes is removed."""
    for pattern in _OURS:
        for path in out.glob(pattern):
            path.unlink()


_OURS = (
    "torchrun.sh", "hostfile", "ssh_config", "nodes.json", "env/*.env", "nccl/*.conf", "slurm/nodes.conf", "slurm/gres.conf", "slurm/apply.sh",
    "skypilot/ssh_node_pools.yaml", "kubernetes/nodes.yaml", "kubernetes/apply.sh", "handoff.json", "README.md",
)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=False, ensure_ascii=False) + "\n"
