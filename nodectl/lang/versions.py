"""Ordering of version numbers for the test `is version(…)`."""

from __future__ import annotations

import re
from typing import Any

_LOOSE = re.compile(r"(\d+|[a-z]+|\.)")
_SEMVER = re.compile(r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$")
OPERATORS = {
    "==": "eq", "=": "eq", "eq": "eq", "!=": "ne", "<>": "ne", "ne": "ne", "<": "lt", "lt": "lt",
    "<=": "le", "le": "le", ">": "gt", "gt": "gt", ">=": "ge", "ge": "ge",
}  # fmt: skip


def compare(value: Any, version: Any, operator: str = "==", version_type: str = "loose") -> bool:
    """Whether ``value operator version`` holds. Raises ValueError for texts that cannot be ordered."""
    if operator not in OPERATORS:
        raise ValueError(f"{operator!r} is not a comparison; known are {', '.join(sorted(OPERATORS))}")
    if version_type not in ("loose", "semver", "semantic"):
        raise ValueError(f"version_type {version_type!r} is not known here; use 'loose' or 'semver'")
    if not value or not version:
        raise ValueError("an empty version cannot be compared")
    key = loose if version_type == "loose" else semver
    left, right = key(str(value)), key(str(version))
    try:
        order = (left > right) - (left < right)
    except TypeError:
        raise ValueError(f"versions {str(value)!r} and {str(version)!r} cannot be ordered: a number stands where the other has a word") from None
    return {"eq": order == 0, "ne": order != 0, "lt": order < 0, "le": order <= 0, "gt": order > 0, "ge": order >= 0}[OPERATORS[operator]]


def loose(text: str) -> list[Any]:
    """Numbers and words in turn, dots dropped; what is neither stays as text between them."""
    parts = [part for part in _LOOSE.split(text) if part and part != "."]
    return [int(part) if part.isdecimal() else part for part in parts]


def semver(text: str) -> list[Any]:
    """A key that orders as semver.org says: a pre-release comes before its release, numbers before words."""
    match = _SEMVER.match(text)
    if not match:
        raise ValueError(f"{text!r} is not a semantic version (MAJOR.MINOR.PATCH)")
    major, minor, patch, before = match.groups()
    release = [(1, 0, "")] if before is None else [(0, 0, "")]
    words = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in (before or "").split(".") if part]
    return [int(major), int(minor), int(patch), release, words]
