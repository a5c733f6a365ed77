"""Rates as people and `tc` write them: 100mbit, 1gbit, 20MB/s. Pure."""

from __future__ import annotations

import re

from nodectl.lab.problem import LabProblem

_BITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "bps": 8, "kbps": 8e3, "mbps": 8e6, "gbps": 8e9}
_BYTES = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)(?:/s)?")
# The kernel's token bucket is filled 250 times a second on Debian: a smaller bucket could not carry the rate.
_TICKS_PER_S = 250
# One GSO packet must fit into the bucket, or it never leaves.
_SMALLEST_BURST = 64 * 1024


def bits_per_second(text: str) -> int:
    """ "200mbit" → 200 000 000. `tc`'s words: bit is bits, bps is bytes. Raises LabProblem with the accepted forms."""
    return _parse(text, _BITS, "a link rate such as 100mbit or 1gbit")


def bytes_per_second(text: str) -> int:
    """ "20MB/s" → 20 000 000. Raises LabProblem with the accepted forms."""
    return _parse(text, _BYTES, "a disk rate such as 20MB/s or 64MiB/s")


def _parse(text: str, units: dict[str, float], expected: str) -> int:
    form = _FORM.fullmatch(text.strip())
    factor = units.get(form[2].lower()) if form else None
    if form is None or factor is None:
        raise LabProblem(f"{text!r} is not a rate: expected {expected} (units: {', '.join(units)})")
    rate = int(float(form[1]) * factor)
    if rate <= 0:
        raise LabProblem(f"{text!r}: a rate must be above zero; to cut a host off use the fault `down`")
    return rate


def burst_bytes(rate: int) -> int:
    """Size of the token bucket for a rate in bits per second."""
    return max(_SMALLEST_BURST, rate // 8 // _TICKS_PER_S)
