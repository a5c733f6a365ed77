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
from nodectl.handoff.pool import HandedNode, Pool, pool_of, without
from nodectl.handoff.ssh_config import ssh_block, ssh_config
from nodectl.handoff.torchrun import torchrun
from nodectl.wire.event import Event


class NotWritten(Exception):
    """The handoff's folder cannot be written; names file and reason."""


@dataclass(frozen=True)
class Handoff:
    """``path`` is the folder; ``hosts`` those handed off, in order; ``excluded`` the reasons of the others; ``world_size`` all ranks together."""

    path: Path
    hosts: tuple[str, ...]
    excluded: Mapping[str, Mapping[str, Any]]
    world_size: int
    artefacts: tuple[str, ...]


def write_handoff(events: Sequence[Event], out: Path) -> Handoff:
    """Write all artefacts into ``out``. Without a passing node only excluded.json and evidence.json: nothing can be launched by accident.

    A node that no artefact can describe is left out with the reason. Raises NotWritten.
    """
    pool = pool_of(events)
    for node in pool.nodes:
        pool = _checked(pool, node)
    files = {"excluded.json": _json(excluded(pool)), "evidence.json": _json(evidence(pool))}
    if pool.nodes:
        nodes = [dataclasses.asdict(node) for node in pool.nodes]
        files.update({f"env/{node.host}.env": env_file(node) for node in pool.nodes})
        # The launcher last: where it stands, all that it reads is there.
        files.update({"hostfile": hostfile(pool), "ssh_config": ssh_config(pool), "nodes.json": _json(nodes), "torchrun.sh": torchrun(pool)})
    try:
        _write(out, files)
    except OSError as error:
        raise NotWritten(f"the handoff cannot be written: {error.filename or out}: {error.strerror}") from None
    return Handoff(out, tuple(node.host for node in pool.nodes), excluded(pool), pool.world_size, tuple(sorted(files)))


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
    """An older handoff in the same folder must not survive: a node that fails now may be in it."""
    for name in ("hostfile", "ssh_config", "torchrun.sh", "nodes.json"):
        (out / name).unlink(missing_ok=True)
    for path in out.glob("env/*.env"):
        path.unlink()


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=False, ensure_ascii=False) + "\n"
