"""What a plain YAML word means: YAML 1.1 as Ansible reads it."""

from __future__ import annotations

import re
from typing import Any

from nodectl.wire.params import OctalInt

_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_TRUE = ("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_DECIMAL = re.compile(r"^[-+]?(0|[1-9][0-9_]*)$")
_OCTAL = re.compile(r"^[-+]?0[0-7_]+$")
_HEX = re.compile(r"^[-+]?0x[0-9a-fA-F_]+$")
_BINARY = re.compile(r"^[-+]?0b[01_]+$")
_SEXAGESIMAL = re.compile(r"^[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$")
_FLOAT = re.compile(r"^([-+]?([0-9][0-9_]*)\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?)$")
_INFINITE = re.compile(r"^([-+]?)\.(inf|Inf|INF)$")
_NAN = re.compile(r"^\.(nan|NaN|NAN)$")
# How every number, `.inf` and `.nan` begin: most words are none, and need no pattern.
_BEGINS = frozenset("+-.0123456789")
# Python refuses to turn longer digits into an int by default; such a word is text, not a number anybody counts with.
_MOST_DIGITS = 4000


def is_sexagesimal(word: str) -> bool:
    """`10:30` is the number 630 in YAML 1.1, which nobody means."""
    return ":" in word and bool(_SEXAGESIMAL.match(word))


def plain(word: str) -> Any:
    """The value of an unquoted word: None, bool, int, OctalInt, float or the text itself. Dates stay text."""
    if word in _WORDS:
        return None
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    if word[0] not in _BEGINS or len(word) > _MOST_DIGITS:
        return word
    number = _number(word)
    return word if number is None else number


def _number(word: str) -> int | float | None:
    digits = word.replace("_", "")
    if _DECIMAL.match(word):
        return int(digits)
    if _OCTAL.match(word):
        return OctalInt(int(digits, 8))
    if _HEX.match(word) and digits[-1] not in "xX":
        return int(digits, 16)
    if _BINARY.match(word) and digits[-1] not in "bB":
        return int(digits, 2)
    return _sexagesimal(digits) if is_sexagesimal(word) else _float(word, digits)


def _float(word: str, digits: str) -> float | None:
    if _FLOAT.match(word):
        return float(digits)
    infinite = _INFINITE.match(word)
    if infinite:
        return float(infinite.group(1) + "inf")
    return float("nan") if _NAN.match(word) else None


def _sexagesimal(digits: str) -> int | float:
    sign = -1 if digits.startswith("-") else 1
    total: float = 0
    for part in digits.lstrip("+-").split(":"):
        total = total * 60 + (float(part) if "." in part else int(part))
    return sign * total
