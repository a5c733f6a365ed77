"""/etc/fstab as text: pure functions that keep every line they are not about byte for byte."""

from __future__ import annotations

import os
from typing import List, NamedTuple, Optional

from nodectl.agent.blocks import unescape

PATH = "/etc/fstab"


class Entry(NamedTuple):
    """The six fields, unescaped."""

    spec: str
    point: str
    fstype: str
    opts: str
    dump: str = "0"
    passno: str = "0"


def escape(field: str) -> str:
    """Blanks, tabs, newlines, backslashes and a leading # as octal, as getmntent reads them."""
    out = field.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    return "\\043" + out[1:] if out.startswith("#") else out


def parse(line: str) -> Optional[Entry]:
    """The line's entry, or None for comments, blank lines and lines that are none of ours to understand."""
    fields = line.split()
    if len(fields) < 3 or fields[0].startswith("#"):
        return None
    fields += ["defaults", "0", "0"][max(len(fields) - 3, 0) :]
    return Entry(*(unescape(field) for field in fields[:6]))


def render(entry: Entry) -> str:
    return " ".join(escape(field) for field in entry)


def is_point(point: str) -> bool:
    """Swap lines and `none` are no mount points, and never duplicates of each other."""
    return point.startswith("/")


def _same(a: Entry, spec: str, point: str) -> bool:
    if is_point(a.point) and is_point(point):
        return os.path.normpath(a.point) == os.path.normpath(point)
    return not is_point(a.point) and not is_point(point) and a.spec == spec


def find(text: str, point: str, spec: str = "") -> List[Entry]:
    """All entries for one mount point, whatever way it is written (for swap: all with the same source)."""
    entries = (parse(line) for line in text.splitlines())
    return [entry for entry in entries if entry is not None and _same(entry, spec, point)]


def with_entry(text: str, entry: Entry) -> str:
    """``text`` with exactly one line for the entry's mount point: the first one is replaced, further ones go, else it is appended.

    A line that says the same already (in whatever spacing) stays byte for byte.
    """
    out: List[str] = []
    placed = False
    for line in text.splitlines(keepends=True):
        found = parse(line)
        if found is None or not _same(found, entry.spec, entry.point):
            out.append(line)
        elif not placed:
            placed = True
            out.append(line if found == entry else render(entry) + "\n")
    if not placed:
        if out and not out[-1].endswith("\n"):
            out[-1] += "\n"
        out.append(render(entry) + "\n")
    return "".join(out)


def without(text: str, point: str, spec: str = "") -> str:
    """``text`` without any line for the mount point."""
    kept = []
    for line in text.splitlines(keepends=True):
        found = parse(line)
        if found is None or not _same(found, spec, point):
            kept.append(line)
    return "".join(kept)
