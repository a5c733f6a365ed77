"""The table of node checks as data: what is read from a probe's answer, what it must be, why, and who says so. TOML in, checked rows out.

A limit is a number in a file with its source, never a number in code; docs/verification.md shows the same rows, and a test keeps the two equal.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from nodectl.verify.judging.units import UnitError, quantity, unit

Op = Literal["at_least", "at_most", "equals", "same", "near"]
OPS: tuple[Op, ...] = ("at_least", "at_most", "equals", "same", "near")
_NEEDED = ("metric", "read", "unit", "op", "why", "source", "date", "how")
_KEYS = frozenset([*_NEEDED, "each", "value", "profile", "pin", "absent", "alone", "when", "detail", "doubt", "zero"])
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
FOLDER = Path(__file__).parent / "checks"


class TableError(ValueError):
    """A row that may not be used; names file, row and what is wrong."""


@dataclass(frozen=True)
class Row:
    """One check of one node.

    ``read`` is a dotted path in the probe's answer, below each item of the list ``each`` where that is given. Where it is a list, mapping or
    text and ``unit`` is count, the number of things found is the value. ``value`` is the limit (B, s, … in the base unit); ``profile`` names
    the entry of the SKU's profile that replaces it, ``pin`` the variable of hosts.yaml that replaces both.
    ``op``: "same" over the node's items and over the fleet; "near": at least ``value`` times the fleet's median.
    A check without any limit is held against the fleet; ``alone`` says what it is where there is no fleet: "omit" or "unknown".
    ``absent`` says what a null means: "omit" where the thing does not exist on such hardware, "unknown" where it could not be read.
    ``when`` lists what must be true of the node for the check to mean anything. ``detail`` is a path to things that explain the value.
    Of a check that is held against the fleet: ``doubt`` is a path to things that being like the others does not excuse: with any of them
    agreement is unknown. ``zero`` "omit": where no node has any there is nothing to agree on.
    """

    metric: str
    read: str
    unit: str
    op: Op
    why: str
    source: str
    date: str
    how: str
    each: str = ""
    value: float | bool | str | None = None
    profile: str = ""
    pin: str = ""
    absent: Literal["omit", "unknown"] = "unknown"
    alone: Literal["omit", "unknown"] = "omit"
    when: tuple[str, ...] = ()
    detail: str = ""
    doubt: str = ""
    zero: Literal["omit", "same"] = "same"

    def cite(self) -> str:
        return f"{self.source} ({self.date})"


@cache  # files of the package never change while it runs, and a fleet of thousands asks for each node
def load_table(kind: str) -> tuple[Row, ...]:
    """The rows of one kind of step. Raises TableError."""
    path = FOLDER / f"{kind}.toml"
    return rows_of(path.read_text("utf-8"), path.name)


def table_kinds() -> list[str]:
    """Kinds of steps that are judged by a table."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def rows_of(text: str, name: str) -> tuple[Row, ...]:
    """The rows in ``text``; ``name`` is for messages. Raises TableError."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{name} is not TOML: {error}") from None
    entries = tables.get("check", [])
    if set(tables) - {"check"} or not isinstance(entries, list):
        raise TableError(f"{name}: expected [[check]] tables only, found {', '.join(sorted(tables))}")
    rows = tuple(_row(entry, f"{name}, check {number}") for number, entry in enumerate(entries, 1))
    doubled = sorted({row.metric for row in rows if sum(other.metric == row.metric for other in rows) > 1})
    if doubled:
        raise TableError(f"{name}: {', '.join(doubled)} stands there twice")
    return rows


def _row(entry: Mapping[str, Any], where: str) -> Row:
    unknown = sorted(set(entry) - _KEYS)
    missing = [key for key in _NEEDED if not isinstance(entry.get(key), str) or not entry[key]]
    for problem, names in (("unknown key", unknown), ("missing", missing)):
        if names:
            raise TableError(f"{where}: {problem} {', '.join(names)}; known are {', '.join(sorted(_KEYS))}")
    where = f"{where} ({entry['metric']})"
    if entry["op"] not in OPS:
        raise TableError(f"{where}: op is {entry['op']!r}; expected one of {', '.join(OPS)}")
    if not _DATE.fullmatch(entry["date"]):
        raise TableError(f"{where}: date {entry['date']!r}; expected YYYY-MM, the month in which the source was read")
    for key in ("absent", "alone"):
        if entry.get(key, "omit") not in ("omit", "unknown"):
            raise TableError(f"{where}: {key} is {entry[key]!r}; expected omit or unknown")
    if entry.get("zero", "same") not in ("omit", "same"):
        raise TableError(f"{where}: zero is {entry['zero']!r}; expected omit or same")
    when = entry.get("when", [])
    if not isinstance(when, list) or not all(isinstance(word, str) for word in when):
        raise TableError(f"{where}: when is {when!r}; expected a list of words")
    return Row(**{**entry, "when": tuple(when), "value": _limit(entry, where)})


def _limit(entry: Mapping[str, Any], where: str) -> float | bool | str | None:
    """The limit in the base unit. Raises TableError for one that does not fit the unit or the comparison."""
    try:
        base = unit(entry["unit"]).base
        value = entry.get("value")
        if value is None:
            _may_lack_limit(entry, where)
            return None
        if base == "bool" and isinstance(value, bool):
            return value
        if base == "text" and isinstance(value, str) and entry["op"] == "equals":
            return value
        if base in ("bool", "text") or entry["op"] == "same":
            raise TableError(f"{where}: {value!r} is no limit for {entry['op']} in {base}")
        number = quantity(value, base)
    except UnitError as error:
        raise TableError(f"{where}: {error}") from None
    if entry["op"] == "near" and not 0 < number < 1:
        raise TableError(f"{where}: near {value!r}; expected a share of the median, between 0 and 1")
    return number


def _may_lack_limit(entry: Mapping[str, Any], where: str) -> None:
    if entry["op"] == "near" or (entry["op"] != "same" and not entry.get("profile") and not entry.get("pin")):
        raise TableError(f"{where}: {entry['op']} what? expected value, profile or pin")
