"""A `sweep` event as nccl-tests prints it, so that whoever reads such tables reads this one: the same columns and units, one line per size.

Two things are added: the operation in the heading, and the slowest rank where it stands out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

# nccl-tests' words for torch's types.
TYPES = {"float32": "float", "float16": "half", "float64": "double"}
# A rank this much above the median of all ranks stands out; less is what ranks that end one after the other differ by.
OUTSTANDING = 1.25
PLACES = (False, True)
WIDTHS = (14, 14, 9, 7, 6)
PART = 38


def sweep_lines(data: Mapping[str, Any], single: bool = True) -> Iterator[Text]:
    """Heading and rows. ``single``: also a sweep of one size, which only shows that values are right."""
    rows = [row for row in data.get("rows") or () if isinstance(row, Mapping)]
    by_size: dict[Any, dict[bool, Mapping[str, Any]]] = {}
    for row in rows:
        by_size.setdefault((row.get("bytes"), row.get("count")), {})[row.get("in_place") is True] = row
    if data.get("note") and (single or not rows):
        yield Text(f"# {data.get('op')} {_type(data)} {data.get('redop') or ''}: {data['note']}".replace(" :", ":"), style="yellow")
    wrong = any(row.get("wrong") for row in rows)
    if not rows or (len(by_size) < 2 and not single and not wrong):
        return
    yield Text()
    yield Text(f"# {data.get('op')} over {data.get('ranks')} ranks on {len(data.get('hosts') or ())} nodes, {data.get('backend')}{_floor(data)}", style="bold")
    yield from (Text(line.rstrip(), style="dim") for line in _heading())
    for (size, count), places in by_size.items():
        yield _row(data, size, count, places)


def _floor(data: Mapping[str, Any]) -> str:
    floor = data.get("floor")
    return f"; busbw of the largest size at least {_short(floor / 1e9)} GB/s ({data.get('source')})" if isinstance(floor, (int, float)) else ""


def _heading() -> Iterator[str]:
    part = f"{'time':>11}{'algbw':>10}{'busbw':>10}{'#wrong':>7}"
    units = f"{'(us)':>11}{'(GB/s)':>10}{'(GB/s)':>10}{'':>7}"
    yield "#" + " " * (sum(WIDTHS) - 1) + "out-of-place".center(PART) + "in-place".center(PART)
    yield _left("size", "count", "type", "redop", "root") + part + part + "  slowest rank"
    yield _left("(B)", "(elements)", "", "", "") + units + units


def _left(*words: str) -> str:
    return "#" + "".join(word.rjust(width) for word, width in zip(words, WIDTHS, strict=True))[1:]


def _row(data: Mapping[str, Any], size: Any, count: Any, places: Mapping[bool, Mapping[str, Any]]) -> Text:
    left = (str(size), str(count), _type(data), str(data.get("redop") or "none"), str(data.get("root", -1)))
    text = " " + _left(*left)[1:] + "".join(_part(places.get(place)) for place in PLACES)
    slowest = ", ".join(dict.fromkeys(filter(None, (_slowest(data, row) for row in places.values()))))
    bad = any(row.get("wrong") for row in places.values())
    return Text(f"{text}  {slowest}".rstrip(), style="bold red" if bad else "")


def _part(row: Mapping[str, Any] | None) -> str:
    """What torch.distributed cannot do in this place is N/A, as in nccl-tests."""
    if row is None:
        return f"{'N/A':>11}{'':>10}{'':>10}{'N/A':>7}"
    time, algbw, busbw = (_number(row.get(key)) for key in ("time", "algbw", "busbw"))
    return f"{_scaled(time, 1e6):>11}{_scaled(algbw, 1e-9):>10}{_scaled(busbw, 1e-9):>10}{row.get('wrong')!s:>7}"


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _scaled(value: float | None, factor: float) -> str:
    return "-" if value is None else _short(value * factor)


def _short(value: float) -> str:
    """nccl-tests' two digits behind the point; of what is smaller than one, four that say something (100 Mb/s are 0.0125 GB/s)."""
    return f"{value:.2f}" if value >= 1 or value == 0 else f"{value:.4g}"


def _type(data: Mapping[str, Any]) -> str:
    name = str(data.get("dtype"))
    return TYPES.get(name, name)


def _slowest(data: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    times = [time for time in row.get("ranks") or () if isinstance(time, (int, float))]
    if len(times) < 2:
        return ""
    middle = sorted(times)[len(times) // 2 - (len(times) % 2 == 0)]
    worst = max(range(len(times)), key=times.__getitem__)
    return f"{worst} ({_host(data, worst)}): {times[worst] / middle:.1f}x" if middle > 0 and times[worst] > OUTSTANDING * middle else ""


def _host(data: Mapping[str, Any], rank: int) -> str:
    hosts: Sequence[Any] = data.get("hosts") or ()
    place = rank // (data.get("nproc") or 1)
    return str(hosts[place]) if place < len(hosts) else "?"
