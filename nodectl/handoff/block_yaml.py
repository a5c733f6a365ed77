"""YAML that any reader takes the same way: block style, and every text in double quotes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def block(value: Any, indent: int = 0) -> str:
    """Lines of ``value`` (dicts, lists, texts, integers, truths), each ended by a line break. Raises TypeError for anything else."""
    pad = " " * indent
    if isinstance(value, Mapping) and value:
        return "".join(f"{pad}{quoted(str(key))}:{_below(item, indent)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return "".join(f"{pad}-{_item(item, indent)}" for item in value)
    return f"{pad}{_scalar(value)}\n"


def _below(item: Any, indent: int) -> str:
    return f"\n{block(item, indent + 2)}" if _nested(item) else f" {_scalar(item)}\n"


def _item(item: Any, indent: int) -> str:
    """A mapping begins on the line of its dash."""
    return f" {block(item, indent + 2)[indent + 2:]}" if _nested(item) else f" {_scalar(item)}\n"


def _nested(value: Any) -> bool:
    return isinstance(value, (Mapping, Sequence)) and not isinstance(value, str) and bool(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, Sequence):
        return "[]"
    raise TypeError(f"{value!r} has no place in a handoff's YAML")


def quoted(text: str) -> str:
    """A plain word stays plain where YAML 1.1 and 1.2 agree that it is a text; everything else is quoted and escaped."""
    if _WORD.fullmatch(text) and text.lower() not in _NOT_TEXTS:
        return text
    return '"' + "".join(_escaped(char) for char in text) + '"'


# Begins with a letter, so it is no number, no date and no sign of YAML's.
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
# Words that one reader or another takes for a truth, a number or nothing.
_NOT_TEXTS = frozenset(["true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"])


def _escaped(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if 0xD800 <= code <= 0xDFFF:  # half a surrogate pair: no YAML may hold one, so what is seen is its escape
        return f"\\\\u{code:04x}"
    if char.isprintable():
        return char
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
