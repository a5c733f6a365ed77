"""Units written out and converted in one place: tools mix MB with MiB and bits with bytes, and the error is 5 % to 800 %."""

from __future__ import annotations

import math
import re
import sys
from typing import NamedTuple


class UnitError(ValueError):
    """A unit or a quantity that cannot be understood; the text says what was expected."""


class Unit(NamedTuple):
    """``factor`` times a value in this unit is the value in ``base``."""

    base: str
    factor: float


_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_PREFIXES = {**_DECIMAL, **_BINARY}
_PLAIN = {
    "s": Unit("s", 1.0), "ms": Unit("s", 1e-3), "us": Unit("s", 1e-6), "ns": Unit("s", 1e-9), "min": Unit("s", 60.0), "ppm": Unit("ppm", 1.0),
    "degC": Unit("degC", 1.0), "percent": Unit("percent", 1.0),
    "count": Unit("count", 1.0), "bool": Unit("bool", 1.0), "text": Unit("text", 1.0), "1/s": Unit("1/s", 1.0), "IOPS": Unit("1/s", 1.0),
}
_BYTES = re.compile(r"^([kKMGT]?|[KMGT]i)(B|bit|b)(/s|ps)?$")
_QUANTITY = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z1][A-Za-z/]*)\s*$")


def unit(name: str) -> Unit:
    """The unit called ``name``. Bits become bytes. Raises UnitError."""
    if name in _PLAIN:
        return _PLAIN[name]
    found = _BYTES.match(name)
    if not found:
        raise UnitError(f"unknown unit {name!r}; expected for example B/s, MB/s, GiB/s, Gb/s, MiB, ms, count")
    prefix, what, per = found.groups()
    return Unit("B/s" if per else "B", _PREFIXES[prefix] * (1.0 if what == "B" else 0.125))


def to_base(value: float, name: str, base: str) -> float:
    """``value`` in unit ``name`` as a number in ``base``. Raises UnitError when they measure different things."""
    found = unit(name)
    if found.base != base:
        raise UnitError(f"{name} measures {found.base}, but {base} was expected")
    return value * found.factor


def quantity(value: object, base: str) -> float:
    """A number (already in ``base``) or a text such as "200 Mb/s" as a number in ``base``: finite and not below zero. Raises UnitError."""
    number = _quantity(value, base)
    if not 0 <= number < math.inf:  # a deadline without end, a floor that everything passes
        raise UnitError(f"{value!r} is not a quantity; expected a finite number from zero up, in {base} or with a unit")
    return number


def _quantity(value: object, base: str) -> float:
    if isinstance(value, bool) or value is None:
        raise UnitError(f"{value!r} is not a quantity; expected a number in {base} or a text with a unit")
    if isinstance(value, (int, float)):
        return float(value) if abs(value) <= sys.float_info.max else math.inf
    found = _QUANTITY.match(str(value))
    if found:
        return to_base(float(found.group(1)), found.group(2), base)
    if re.fullmatch(r"\s*[0-9]+(\.[0-9]+)?\s*", str(value)):
        return float(str(value))
    raise UnitError(f"{value!r} is not a quantity; expected a number in {base} or a text with a unit")


def human(value: float, base: str) -> str:
    """``value`` for a person: rates in decimal bytes and in bits, because links are sold in bits and tools print bytes."""
    if base == "B/s":
        return f"{_scaled(value)}B/s ({_scaled(value * 8)}b/s)"
    if base == "B":
        return f"{_scaled(value)}B"
    if base == "s":
        return f"{value * 1e3:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
    return f"{value:g}" if base in ("count", "bool", "text") else f"{value:g} {base}"


def _scaled(value: float) -> str:
    for prefix in ("T", "G", "M", "k"):
        factor = _DECIMAL[prefix]
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}"
    return f"{value:.4g} "
