"""A resource limit that was found, against the one that hosts.yaml wants. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.judging.units import quantity

# RLIM_INFINITY as a figure: what "unlimited" is worth beside a configured number of bytes.
UNLIMITED = float(2**63 - 1)
_ENDLESS = ("unlimited", "infinity", "-1")


def judge_limit(
    reading: Reading, host: tuple[str, ...], name: str, found: Any, wanted: Any, unit: str, factor: float, why: str, method: str = "fresh login",
) -> None:
    """``found`` in base units, ``wanted`` as limits.conf writes it (KiB for memlock): both may be "unlimited"."""
    value = _soft(found)
    if value is None:
        reading.join([unknown(name, host, method, f"the probe gave no limit: {found!r}")])
    elif str(wanted) in _ENDLESS:
        shown = "unlimited" if value >= UNLIMITED else f"{value / factor:.0f} {'KiB' if unit == 'B' else ''}".strip()
        reading.add(Measurement(name, shown, "text", host, method), Expectation(name, "equals", "unlimited", "text", why, host[0]))
    else:
        bar = quantity(wanted, "count") * factor
        reading.add(Measurement(name, value, unit, host, method), Expectation(name, "at_least", bar, unit, why, host[0]))


def _soft(found: Any) -> float | None:
    value = found.get("soft") if isinstance(found, Mapping) else found
    if value == -1 or (isinstance(value, str) and value in _ENDLESS):
        return UNLIMITED
    if isinstance(value, str) and value.isdigit():
        return float(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
