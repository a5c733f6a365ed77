"""mdadm.conf as text, and the two ways an array's UUID is written. Pure."""

from __future__ import annotations

import re
from typing import AbstractSet, List

# What mdadm, udev and a path under /dev/md all take as it stands.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_UUID = re.compile(r"\buuid=([0-9a-f:-]+)", re.IGNORECASE)


def bare(uuid: str) -> str:
    """Only the digits: blkid writes 8-4-4-4-12 with dashes, mdadm four groups of eight with colons."""
    return re.sub(r"[^0-9a-f]", "", uuid.lower())


def colons(uuid: str) -> str:
    digits = bare(uuid)
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8))


def with_array(text: str, path: str, uuid: str, gone: AbstractSet[str] = frozenset()) -> str:
    """``text`` with exactly one ARRAY line for ``uuid`` ("" = for none), and none for the UUIDs in ``gone``. Every other line stays byte for byte."""
    line = f"ARRAY {path} UUID={colons(uuid)}\n"
    mine = bare(uuid)
    forget = {bare(one) for one in gone} | ({mine} if mine else set())
    out: List[str] = []
    placed = not mine
    for block in _blocks(text):
        found = _array_uuid(block)
        if found and found == mine and not placed:
            placed = True
            out.append(line)
        elif not found or found not in forget:
            out.append(block)
    if not placed:
        if out and not out[-1].endswith("\n"):
            out[-1] += "\n"
        out.append(line)
    return "".join(out)


def _array_uuid(block: str) -> str:
    """The digits of an ARRAY line's UUID, "" for every other line and for one that names its array in another way."""
    words = block.split(None, 1)
    found = _UUID.search(block) if words and len(words[0]) >= 3 and "array".startswith(words[0].lower()) else None
    return bare(found.group(1)) if found else ""


def _blocks(text: str) -> List[str]:
    """Lines, each with the indented ones that continue it."""
    out: List[str] = []
    for line in text.splitlines(keepends=True):
        if out and line[:1] in (" ", "\t") and line.strip():
            out[-1] += line
        else:
            out.append(line)
    return out
