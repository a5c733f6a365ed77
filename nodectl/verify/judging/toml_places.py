"""Where each key of a TOML file's [[tables]] stands: the standard library's reader keeps no positions. Pure.

It follows the file's lines, not its grammar: tables in double brackets, keys at the start of a line, and what runs over several lines (lists,
texts in three quotes) passed over. A key that it does not find has the place of its table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodectl.wire.origin import Origin

_HEADER = re.compile(r"^\s*\[\[\s*([A-Za-z0-9_.-]+)\s*\]\]")
_PLAIN_HEADER = re.compile(r"^\s*\[[^\[]")
_KEY = re.compile(r"""^(\s*)(["']?)([A-Za-z0-9_-]+)\2\s*=\s*""")
_STRING = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")
_SYNTAX = re.compile(r"\(at line (\d+), column (\d+)\)")


@dataclass(frozen=True)
class Table:
    """``at`` is the header; ``keys`` and ``values`` by key."""

    at: Origin
    keys: Mapping[str, Origin] = field(default_factory=dict)
    values: Mapping[str, Origin] = field(default_factory=dict)

    def value(self, key: str) -> Origin:
        return self.values.get(key, self.at)

    def key(self, key: str) -> Origin:
        return self.keys.get(key, self.at)


def tables(text: str, file: str, name: str) -> list[Table]:
    """The tables ``[[name]]`` in the order they are written."""
    found: list[Table] = []
    keys: dict[str, Origin] = {}
    values: dict[str, Origin] = {}
    inside, quotes, depth = False, "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if quotes:
            quotes = "" if line.count(quotes) % 2 else quotes
            continue
        if depth > 0:
            depth += _depth(line)
            continue
        header = _HEADER.match(line)
        if header:
            inside = header.group(1) == name
            if inside:
                keys, values = {}, {}
                found.append(Table(Origin(file, number, line.index("[") + 1, len(header.group(0).strip())), keys, values))
            continue
        if _PLAIN_HEADER.match(line):
            inside = False
            continue
        match = _KEY.match(line)
        if not match:
            continue
        rest = line[match.end():]
        if inside:
            keys.setdefault(match.group(3), Origin(file, number, len(match.group(1)) + 1, len(match.group(3))))
            values.setdefault(match.group(3), Origin(file, number, match.end() + 1, max(1, len(_uncommented(rest)))))
        quotes = next((three for three in ('"""', "'''") if rest.count(three) % 2), "")
        depth = 0 if quotes else _depth(rest)
    return found


def syntax_error(said: str, file: str) -> Origin | None:
    """The place that tomllib names in its message."""
    match = _SYNTAX.search(said)
    return Origin(file, int(match.group(1)), int(match.group(2))) if match else None


def _strings_out(text: str) -> str:
    return _STRING.sub(lambda one: "_" * len(one.group(0)), text)


def _uncommented(text: str) -> str:
    return text[: len(_strings_out(text).partition("#")[0].rstrip())] if "#" in text else text.rstrip()


def _depth(text: str) -> int:
    """How many brackets stay open behind this line."""
    if "[" not in text and "]" not in text:
        return 0
    plain = _strings_out(text).partition("#")[0]
    return plain.count("[") - plain.count("]")
