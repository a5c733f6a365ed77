"""What perftest printed, as a figure. Pure. Its table changed over the years; what a column is, its heading says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

# perftest's "MB" are 2^20 bytes, its "Gb" 10^9 bits (format_factor in src/perftest_parameters.c).
_RATE = {"BW average[MB/sec]": 2.0**20, "BW average[MiB/sec]": 2.0**20, "BW average[Gb/sec]": 1e9 / 8}
# The median; a tool that measures for a time instead of a number gives only the mean.
_LATENCY = ("t_typical[usec]", "t_avg[usec]")
_HEADING = re.compile(r"\S+(?: \S+)*?(?=\s{2,}|\s*$)")
_HEADS = ("#bytes", "#iterations")
# Lines of a failed run that say why, in the order of what explains most.
_WHY = (
    "Incompatibility issue", "Failed to modify QP", "Unable to Connect the HCA", "Couldn't connect to", "IB device",
    "Unable to find the Infiniband/RoCE device", "Invalid", "invalid",
    "Couldn't allocate MR", "Failed to create", "Completion with error", "Port number", "not active", "Unable",
)  # fmt: skip


@dataclass(frozen=True)
class Perftest:
    """``value``: B/s of ib_write_bw, s of ib_write_lat; None with ``error``. ``bytes`` of one message, ``iterations`` that were made."""

    value: float | None
    error: str = ""
    bytes: int = 0
    iterations: int = 0


def perftest(tool: str, ended: Mapping[str, object]) -> Perftest:
    """From what probe_perftest gave back."""
    if ended.get("installed") is False:
        return Perftest(None, f"{tool} is not installed: apt-get install perftest")
    output = f"{ended.get('stdout', '')}\n{ended.get('stderr', '')}"
    if ended.get("timed_out"):
        return Perftest(None, f"{tool} did not end within its deadline{_words(output)}")
    if ended.get("rc") != 0:
        return Perftest(None, f"{tool} ended with {ended.get('rc')}{_words(output)}")
    row = _row(output)
    if not row:
        return Perftest(None, f"{tool} printed no result{_words(output)}")
    value = _latency(row) if tool == "ib_write_lat" else _bandwidth(row)
    if value is None:
        return Perftest(None, f"{tool} printed columns that are not known: {', '.join(row)}")
    return Perftest(value, "", int(row.get("#bytes", 0)), int(row.get("#iterations", 0)))


def _row(output: str) -> dict[str, float]:
    """The last line of figures by its headings; empty without one."""
    headings: list[str] = []
    found: dict[str, float] = {}
    for line in output.splitlines():
        if line.strip().startswith("#bytes"):
            headings = [one.strip() for one in _HEADING.findall(line.strip())]
            headings = [part for one in headings for part in _parted(one)]
            continue
        figures = _figures(line)
        if headings and figures and len(figures) <= len(headings):
            found = dict(zip(headings, figures, strict=False))
    return found


def _parted(heading: str) -> list[str]:
    """ "#bytes #iterations" is two columns: perftest puts one blank between them in some versions."""
    return heading.split(" ") if heading.split(" ")[0] in _HEADS else [heading]


def _figures(line: str) -> list[float]:
    try:
        values = [float(word) for word in line.split()]
    except ValueError:
        return []
    return values if all(math.isfinite(value) and value >= 0 for value in values) else []


def _bandwidth(row: Mapping[str, float]) -> float | None:
    return next((row[name] * unit for name, unit in _RATE.items() if name in row), None)


def _latency(row: Mapping[str, float]) -> float | None:
    return next((row[name] / 1e6 for name in _LATENCY if name in row), None)


def _words(output: str) -> str:
    """": " and the line that says most, or nothing."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = next((line for words in _WHY for line in lines if words in line), "")
    return f": {said[:300]}" if said else ""
