"""Write the handoff of a run: what a training job needs to start on the nodes that passed, and the evidence for it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodectl.handoff.env_file import env_file
from nodectl.handoff.evidence import evidence
from nodectl.handoff.excluded import excluded
from nodectl.handoff.hostfile import hostfile
from nodectl.handoff.pool import pool_of
from nodectl.handoff.ssh_config import ssh_config
from nodectl.handoff.torchrun import torchrun
from nodectl.wire.event import Event


@dataclass(frozen=True)
class Handoff:
    """``path`` is the folder; ``hosts`` those handed off, in order; ``excluded`` the reasons of the others; ``world_size`` all ranks together."""

    path: Path
    hosts: tuple[str, ...]
    excluded: Mapping[str, Mapping[str, Any]]
    world_size: int
    artefacts: tuple[str, ...]


def write_handoff(events: Sequence[Event], out: Path) -> Handoff:
    """Write all artefacts into ``out``. Without a passing node only excluded.json and evidence.json: nothing can be launched by accident."""
    pool = pool_of(events)
    files = {"excluded.json": _json(excluded(pool)), "evidence.json": _json(evidence(pool))}
    if pool.nodes:
        nodes = [dataclasses.asdict(node) for node in pool.nodes]
        files.update({"hostfile": hostfile(pool), "ssh_config": ssh_config(pool), "torchrun.sh": torchrun(pool), "nodes.json": _json(nodes)})
        files.update({f"env/{node.host}.env": env_file(node) for node in pool.nodes})
    _clear(out)
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if name.endswith(".sh"):
            path.chmod(0o755)
    return Handoff(out, tuple(node.host for node in pool.nodes), excluded(pool), pool.world_size, tuple(sorted(files)))


def _clear(out: Path) -> None:
    """An older handoff in the same folder must not survive: a node that fails now may be in it."""
    for name in ("hostfile", "ssh_config", "torchrun.sh", "nodes.json"):
        (out / name).unlink(missing_ok=True)
    for path in out.glob("env/*.env"):
        path.unlink()


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=False, ensure_ascii=False) + "\n"
