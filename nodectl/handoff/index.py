"""handoff.json and README.md: what lies here, what for, and how to use it. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from nodectl.handoff.artefact import Artefact
from nodectl.handoff.formats import FORMATS
from nodectl.handoff.pool import Pool


def index(pool: Pool, made: Mapping[str, Artefact]) -> dict[str, Any]:
    """JSON types; ``made`` by the format's name. ``waived`` are the nodes that are here although a check of theirs is no pass."""
    return {
        "run_id": pool.run_id,
        "judged": pool.judged,
        "world_size": pool.world_size,
        "simulated": pool.simulated,
        "handed_off": [node.host for node in pool.nodes],
        "waived": {node.host: [dataclasses.asdict(waiver) for waiver in node.waivers] for node in pool.nodes if node.waivers},
        "excluded": {item.host: item.sentence for item in pool.excluded},
        "formats": {
            name: {"for": FORMATS[name].purpose, "use": list(FORMATS[name].use), "files": sorted(one.files), "refused": dict(one.refused)}
            for name, one in made.items()
        },
    }


def readme(pool: Pool, made: Mapping[str, Artefact]) -> str:
    """The same for a person."""
    count = f"{len(pool.nodes)} node{'' if len(pool.nodes) == 1 else 's'}"
    when = f" Judged {pool.judged}: a node is what it was then." if pool.judged else ""
    parts = [f"# Handoff of run {_plain(pool.run_id)}\n\n{count} proven, {len(pool.excluded)} excluded, world size {pool.world_size}.{when}\n"]
    if pool.simulated:
        parts.append("Some figures were measured on stand-ins for hardware (gloo, loop devices): the way is proven, the speed is not.\n")
    waived = [f"- {node.host}: {waiver.check}, waived by {waiver.who} until {waiver.until}: {waiver.why}" for node in pool.nodes for waiver in node.waivers]
    if waived:
        parts.append("## Here although not all checks passed\n\n" + _lines(waived))
    if pool.excluded:
        parts.append("## Excluded\n\n" + _lines([f"- {item.host}: {item.sentence}" for item in pool.excluded]))
    for name, one in made.items():
        if not one.files and not one.refused:
            continue
        parts.append(_section(name, one))
    return "\n".join([*parts, _PROOF])


_PROOF = """## Proof

`evidence.json`: every check with its floor and source. `excluded.json`: who is left out, and why. `handoff.json`: this page for programs.
"""


def _section(name: str, one: Artefact) -> str:
    refused = _lines([f"- not in it: {host}, because {why}" for host, why in one.refused.items()])
    commands = "".join(f"    {line}\n" for line in (FORMATS[name].use if one.files else ()))
    return f"## {name}: {FORMATS[name].purpose}\n\n" + "\n".join(part for part in (_files(one), commands, refused) if part)


def _files(one: Artefact) -> str:
    """Folders of one file per node by their name alone."""
    names = dict.fromkeys(re.sub(r"^(env|nccl)/.*", r"\1/", name) for name in sorted(one.files))
    return f"Files: {', '.join(f'`{name}`' for name in names) or 'none'}\n"


def _lines(lines: list[str]) -> str:
    return "".join(f"{_plain(line)}\n" for line in lines)


def _plain(text: str) -> str:
    """One line, whatever a node said."""
    return "".join(char if char.isprintable() else " " for char in text)
