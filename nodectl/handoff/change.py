"""What changed from one handoff to the next: who has to be taken out, who came back, and the commands that take out. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nodectl.handoff import kubernetes, slurm
from nodectl.handoff.artefact import Inexpressible
from nodectl.handoff.pool import Excluded, Pool


@dataclass(frozen=True)
class Change:
    """``out`` were handed off before and are excluded now; ``back`` the other way; ``unseen`` were handed off before, and the later run does not know them."""

    out: tuple[Excluded, ...]
    back: tuple[str, ...]
    unseen: tuple[str, ...]


def change(earlier: Pool, later: Pool) -> Change:
    """Hosts in the order in which the earlier run handed them off; those that came back in the later one's."""
    before = [node.host for node in earlier.nodes]
    now = {node.host for node in later.nodes}
    excluded = {item.host: item for item in later.excluded}
    return Change(
        tuple(excluded[host] for host in before if host in excluded and host not in now),
        tuple(node.host for node in later.nodes if node.host not in before),
        tuple(host for host in before if host not in now and host not in excluded),
    )


def _drain(item: Excluded) -> str:
    return shlex.join(["scontrol", "update", f"NodeName={slurm.name(item)}", "State=DRAIN", f"Reason={slurm.reason(item)}"])


def _taint(item: Excluded) -> str:
    return shlex.join(["kubectl", "taint", "node", kubernetes.name(item), "--overwrite", f"{kubernetes.TAINT}={kubernetes.label(item.kind)}:NoSchedule"])


# Formats in which a node is taken out by a command. Of the others it is enough that the new files do not name it.
COMMANDS: Mapping[str, Callable[[Excluded], str]] = {"slurm": _drain, "kubernetes": _taint}


def commands(found: Change, formats: Sequence[str]) -> str:
    """Lines for a shell; everything that is no command is a comment. ``formats`` are names of COMMANDS."""
    lines = []
    for item in found.out:
        lines.append(f"# out: {_plain(item.host)}: {_plain(item.sentence)}")
        lines += [_command(name, item) for name in formats]
    lines += [f"# back: {_plain(host)}: apply.sh of the new handoff lets it in again where nodectl had taken it out" for host in found.back]
    lines += [f"# unseen: {_plain(host)}: it was handed off before, and the later run did not look at it" for host in found.unseen]
    return "".join(f"{line}\n" for line in lines or ["# nothing changed"])


def _command(name: str, item: Excluded) -> str:
    try:
        return COMMANDS[name](item)
    except Inexpressible as error:
        return f"# not by {name}: {_plain(str(error))}"


def _plain(text: str) -> str:
    """What a node said must not begin a line of its own."""
    return "".join(char if char.isprintable() else " " for char in text)
