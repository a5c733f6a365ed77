"""Figures of pairs as matrices that a page can hold: half a million pairs of a thousand nodes are 1.4 MB, not 50."""

from __future__ import annotations

import base64
import sys
from array import array
from dataclasses import dataclass, field
from typing import Any

from nodectl.report.human import printable

# Values are sent as 16 bits of the layer's largest: 0.002 % of it is far below what two measurements of one link differ by.
STEPS = 65_533
FAILED = 65_534
NOT_MEASURED = 65_535
ERRORS_MOST = 200
# Tools whose figure has a direction: from the first host to the second. An all-reduce of two has none.
DIRECTED = ("ib_",)


@dataclass
class _Layer:
    unit: str
    bytes: Any
    values: dict[tuple[int, int], float] = field(default_factory=dict)
    errors: dict[tuple[int, int], str] = field(default_factory=dict)

    def add(self, cell: tuple[int, int], value: float | None, error: str) -> None:
        """Of several tries the best counts: other load passes, a bad link does not."""
        if value is None:
            self.errors.setdefault(cell, error or "no value could be had")
            return
        had = self.values.get(cell)
        best = min if self.unit == "s" else max
        self.values[cell] = value if had is None else best(had, value)


def layers(pairs: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """One matrix per tool and rail, over the nodes in the order of ``names``; pairs with somebody else are left out."""
    places = {name: place for place, name in enumerate(names)}
    found: dict[tuple[str, str], _Layer] = {}
    for pair in pairs:
        cell = _cell(pair, places)
        if cell:
            key = str(pair.get("tool") or ""), str(pair.get("rail") or "")
            layer = found.setdefault(key, _Layer(str(pair.get("unit") or "B/s"), pair.get("bytes")))
            layer.add(cell, _number(pair.get("value")), str(pair.get("error") or ""))
    return [_packed(tool, rail, layer, len(names)) for (tool, rail), layer in found.items()]


def _cell(pair: dict[str, Any], places: dict[str, int]) -> tuple[int, int] | None:
    hosts = pair.get("hosts")
    if not isinstance(hosts, list) or len(hosts) != 2 or any(str(host) not in places for host in hosts):
        return None
    first, second = (places[str(host)] for host in hosts)
    directed = str(pair.get("tool") or "").startswith(DIRECTED)
    return (first, second) if directed or first < second else (second, first)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e300 else None


def _packed(tool: str, rail: str, layer: _Layer, count: int) -> dict[str, Any]:
    top = max(layer.values.values(), default=0.0)
    steps = {cell: round(value / top * STEPS) if top else 0 for cell, value in layer.values.items()}
    steps |= {cell: FAILED for cell in layer.errors if cell not in steps}
    return {
        "tool": printable(tool), "rail": printable(rail), "unit": printable(layer.unit), "bytes": _number(layer.bytes), "top": top, **_smallest(steps, count),
        "errors": [[*cell, printable(text)] for cell, text in layer.errors.items() if cell not in layer.values][:ERRORS_MOST],
        "failed": sum(step == FAILED for step in steps.values()),
    }


def _smallest(steps: dict[tuple[int, int], int], count: int) -> dict[str, str]:
    """Triples where few pairs were measured, else all rows one after the other: above the diagonal only, where nothing has a direction."""
    directed = any(first > second for first, second in steps)
    cells = count * (count - 1) // (1 if directed else 2)
    if 3 * len(steps) < cells:
        return {"triples": _base64([number for cell, step in steps.items() for number in (*cell, step)])}
    rows = [steps.get((first, second), NOT_MEASURED) for first in range(count) for second in range(0 if directed else first + 1, count)]
    return {"square" if directed else "triangle": _base64(rows)}


def _base64(numbers: list[int]) -> str:
    """Little-endian 16-bit numbers."""
    packed = array("H", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return base64.b64encode(packed.tobytes()).decode("ascii")
