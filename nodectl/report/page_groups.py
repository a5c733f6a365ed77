"""Sweeps over message sizes as a page shows them: per size one row, of the ranks' times only the slowest."""

from __future__ import annotations

import statistics
from typing import Any

from nodectl.report.human import printable

# Sweeps in a page. The ones over most nodes come first; of a thousand nodes' inner sweeps the slow ones are found in the checks.
SWEEPS_MOST = 200
ROWS_MOST = 80


def sweeps_of(sweeps: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    places = {name: place for place, name in enumerate(names)}
    widest_first = sorted((sweep for sweep in sweeps if isinstance(sweep.get("rows"), list)), key=lambda sweep: -len(_hosts(sweep)))
    return {"all": [_sweep(sweep, places) for sweep in widest_first[:SWEEPS_MOST]], "left_out": max(0, len(widest_first) - SWEEPS_MOST)}


def _hosts(sweep: dict[str, Any]) -> list[str]:
    hosts = sweep.get("hosts")
    return [str(host) for host in hosts] if isinstance(hosts, list) else []


def _sweep(sweep: dict[str, Any], places: dict[str, int]) -> dict[str, Any]:
    hosts = _hosts(sweep)
    rows = [row for row in sweep["rows"] if isinstance(row, dict)]
    return {
        **{key: printable(str(sweep.get(key) or "")) for key in ("op", "dtype", "redop", "backend", "source", "note")},
        "ranks": number(sweep.get("ranks")), "in_place": bool(sweep.get("in_place")), "floor": number(sweep.get("floor")),
        "hosts": [places[host] for host in hosts if host in places],
        "rows": [_row(row, hosts) for row in rows[:ROWS_MOST]],
    }


def _row(row: dict[str, Any], hosts: list[str]) -> list[Any]:
    """bytes, time (s), algbw, busbw (B/s), wrong values, in place, the slowest rank as a sentence."""
    return [*(number(row.get(key)) for key in ("bytes", "time", "algbw", "busbw", "wrong")), int(bool(row.get("in_place"))), slowest(row.get("ranks"), hosts)]


def slowest(ranks: Any, hosts: list[str]) -> str:
    """"rank 5 on n3, 1.8 times the median"; "" where the ranks' times are not known."""
    times = [number(time) for time in ranks] if isinstance(ranks, list) else []
    known = [time for time in times if time is not None]
    if len(known) < 2 or len(known) != len(times):
        return ""
    worst = max(range(len(known)), key=lambda rank: known[rank])
    middle = statistics.median(known)
    # Ranks are numbered node by node, the same count on each.
    host = hosts[worst * len(hosts) // len(known)] if hosts else ""
    return f"rank {worst}{f' on {printable(host)}' if host else ''}, {known[worst] / middle:.2f} times the median" if middle > 0 else ""


def number(value: Any) -> float | None:
    """Six digits: more than a measurement repeats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
        return None
    return float(f"{value:.6g}") if isinstance(value, float) else value
