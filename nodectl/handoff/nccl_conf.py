"""NCCL's settings as they held on each node when it was measured: one file per node, for containers that bring none of their own.

One truth: the role `nccl` decides what stands in /etc/nccl.conf, the verification measures with it, and this is what it measured with.
Nothing is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nodectl.handoff.artefact import Artefact
from nodectl.handoff.pool import HandedNode, Pool

# NCCL copies at most so many bytes of a name and of a value (src/misc/param.cc, 2.30: char[1024]), and says nothing when it cuts.
MOST = 1023
# The settings that NCCL and its network plugins read. Others in the environment are no business of this file.
_READ_BY_NCCL = re.compile(r"NCCL_\w+|OFI_NCCL_\w+|FI_\w+|UCX_\w+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Setting:
    """One line KEY=VALUE; ``line`` counts from 1."""

    key: str
    value: str
    line: int


def parse(text: str) -> tuple[list[Setting], list[str]]:
    """(settings, what is wrong) of a settings file, by NCCL's own rules (src/misc/param.cc).

    A # makes a comment in the first column only, nothing is trimmed, and the value goes to the end of its line. Wrong is what NCCL would
    drop, cut or set under a name that nothing reads, all of it in silence: "line 3: ...".
    """
    settings: list[Setting] = []
    wrong = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip(" \t") or line.startswith("#"):
            continue
        key, sign, value = line.partition("=")
        first = next((one for one in settings if one.key == key and one.value != value), None)
        fault = f"{key} has another value in line {first.line}, and the first one counts" if first else _fault(key, sign, value)
        if fault:
            wrong.append(f"line {number}: {fault}")
        if sign:
            settings.append(Setting(key, value, number))
    return settings, wrong


def _fault(key: str, sign: str, value: str) -> str:
    if not sign:
        return "no = in it: NCCL passes over the line"
    if not _NAME.fullmatch(key):
        return f"{key!r} is not the name of a variable: NCCL takes the line from its first column, blanks and all"
    if value != value.strip():
        return f"the value of {key} begins or ends with a blank or a carriage return, which NCCL keeps"
    if " #" in value:
        return f"the value of {key} holds ' #': NCCL knows no comment behind a value"
    if max(len(key.encode()), len(value.encode("utf-8", "surrogatepass"))) > MOST:
        return f"{key} is longer than the {MOST} bytes that NCCL reads"
    return "" if value.isprintable() else f"the value of {key} holds a control character"


def nccl_conf(node: HandedNode) -> tuple[str, list[str]]:
    """(text, what is wrong in the node's own files); no text where it has no settings.

    What a name was first given counts, in NCCL's order: the environment, the user's file, the machine's.
    """
    rows = [(key, value, "environment of the ranks") for key, value in sorted(node.env.items()) if _READ_BY_NCCL.fullmatch(key)]
    wrong: list[str] = []
    for path, text in node.machine.nccl_files:
        settings, found = parse(text)
        rows += [(one.key, one.value, f"{path}, line {one.line}") for one in settings]
        wrong += [f"{path}, {fault}" for fault in found]
    return _text(node, rows) if rows else "", wrong


def _text(node: HandedNode, rows: Sequence[tuple[str, str, str]]) -> str:
    seen: dict[str, tuple[str, str]] = {}
    for key, value, whence in rows:
        seen.setdefault(key, (value, whence))
    head = f"# NCCL's settings on {node.host} as they held when it was measured. Give it to a container as /etc/nccl.conf.\n"
    return head + "".join(f"# {_one_line(whence)}\n{key}={value}\n" for key, (value, whence) in seen.items())


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def nccl_files(pool: Pool) -> Artefact:
    """A file per node that has settings. A node whose own files NCCL would read otherwise than they look is refused: they must be mended first."""
    files, refused = {}, {}
    for node in pool.nodes:
        text, wrong = nccl_conf(node)
        if wrong:
            refused[node.host] = "; ".join(wrong[:3])
        elif text:
            files[f"nccl/{node.host}.conf"] = text
    return Artefact(files, refused)
