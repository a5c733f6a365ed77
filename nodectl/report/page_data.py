"""A run as the data of its page: every text once, numbers as numbers, so that a thousand nodes fit into a few megabytes.

What is embedded is ASCII JSON, and what nodes said is made printable first: no text of a node can end the script element that
holds it, turn the reading direction, or steer a terminal into which it is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from nodectl.report.fold import BADNESS, HostSummary, Summary, waiver_text
from nodectl.report.human import printable, recap_counts
from nodectl.report.page_groups import sweeps_of
from nodectl.report.page_pairs import layers

# Characters of one raw output: fio's JSON of one job, or NCCL's log around the line that matters. The end holds the complaint.
RAW_EACH = 4_000
# Characters of all raw outputs together: a page stays below 5 MB, which a phone opens in a second or two.
RAW_ALL = 1_200_000
# Characters of a value that is a text, such as a list of versions.
VALUE_MOST = 300
WARNINGS_MOST = 200
# Verdicts and statuses are sent as their places here; the page has the same lists.
VERDICTS = ("none", "pass", "skipped", "unknown", "fail")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Texts:
    """Each text once; they are printable already. Places start at 1, so that 0 is "no text" and can be left out at a row's end."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places) + 1) if text else 0

    def all(self) -> list[str]:
        return list(self._places)


def page_data(summary: Summary) -> dict[str, Any]:
    """Everything the page's scripts work with, as JSON types."""
    texts, raws = Texts(), Texts()
    kept = _kept_raws(summary)
    names = list(summary.hosts)
    nodes = [_node(name, host, texts, raws, kept) for name, host in summary.hosts.items()]
    return {
        "proving": summary.proving,
        "nodes": nodes,
        "texts": texts.all(),
        "raws": raws.all(),
        "pairs": layers(summary.pairs, names),
        "sweeps": sweeps_of(summary.sweeps, names),
        "warnings": [printable(text) for text in summary.warnings[:WARNINGS_MOST]],
        "warnings_left_out": max(0, len(summary.warnings) - WARNINGS_MOST),
    }


def _node(name: str, host: HostSummary, texts: Texts, raws: Texts, kept: set[str]) -> dict[str, Any]:
    shown = {
        "name": printable(name), "verdict": VERDICTS.index(host.verdict), "status": host.status, "reason": printable(host.reason), "hint": printable(host.hint),
        "facts": _facts(host), "tasks": recap_counts(host) if any(asdict(host.stats).values()) else "",
        "reasons": [printable(text) for text in host.reasons], "pending": [printable(text) for text in host.pending_handlers],
        "checks": [_row(check, texts, raws, kept) for check in sorted(host.checks, key=lambda check: -BADNESS[check["verdict"]])],
    }
    return {key: value for key, value in shown.items() if value not in ("", [], None)}


def _facts(host: HostSummary) -> str:
    """Where the node is and what it has, as far as it was asked: "10.0.0.7, ib, 8 GPUs, torch 2.13.0"."""
    told = [_clean(host.node.get("address")), _clean(host.node.get("fabric"))]
    gpus = host.node.get("gpus")
    if isinstance(gpus, int) and not isinstance(gpus, bool):
        told.append(f"{gpus} GPU{'s' if gpus != 1 else ''}")
    torch = _clean(host.node.get("torch"))
    return ", ".join(part for part in [*told, f"torch {torch}" if torch else ""] if part)


def _row(check: dict[str, Any], texts: Texts, raws: Texts, kept: set[str]) -> list[Any]:
    """name, verdict, value, unit, floor, reason, its numbers, source, step, simulated, raw output, waiver; what is empty at the end is left out."""
    pattern, numbers = taken_apart(_clean(check["reason"]))
    name, unit, source, step = (texts.place(_clean(check[key])) for key in ("name", "unit", "source", "step"))
    raw = str(check["raw"] or "")
    row = [
        name, VERDICTS.index(check["verdict"]), _value(check["value"]), unit, _value(check["floor"]),
        texts.place(pattern), numbers, source, step, int(bool(check["simulated"])),
        raws.place(printable(cut(raw))) if raw in kept else -len(raw), texts.place(_clean(waiver_text(check["waiver"]))) if check["waiver"] else 0,
    ]
    while row and row[-1] in (0, ""):
        row.pop()
    return row


def _clean(text: Any) -> str:
    return "" if text is None else printable(str(text))


def taken_apart(sentence: str) -> tuple[str, str]:
    """(the sentence with NUL for each number, the numbers): thousands of nodes share a sentence and differ in its numbers.

    A sentence that is printable holds no NUL of its own.
    """
    return _NUMBER.sub("\0", sentence), " ".join(_NUMBER.findall(sentence))


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        # Six digits: more than any of these measurements repeats.
        return float(f"{value:.6g}") if abs(value) < 1e300 else "a number too large to be shown"
    text = printable(value if isinstance(value, str) else str(value))
    return text if len(text) <= VALUE_MOST else f"{text[:VALUE_MOST]}… ({len(text)} characters)"


def cut(raw: str) -> str:
    """The beginning says what ran, the end what became of it; what is left out in between is counted."""
    if len(raw) <= RAW_EACH:
        return raw
    head, tail = RAW_EACH // 4, RAW_EACH * 3 // 4
    return f"{raw[:head]}\n… {len(raw) - head - tail} characters left out; events.jsonl has them …\n{raw[-tail:]}"


def _kept_raws(summary: Summary) -> set[str]:
    """Raw outputs that the page holds: of the worst checks first, until the page would grow too large."""
    kept: set[str] = set()
    left = RAW_ALL
    for raw in _raws(summary):
        size = len(cut(raw))
        if raw not in kept and size <= left:
            kept.add(raw)
            left -= size
    return kept


def _raws(summary: Summary) -> Iterator[str]:
    checks: Iterable[dict[str, Any]] = (check for host in summary.hosts.values() for check in host.checks if check["raw"])
    yield from (str(check["raw"]) for check in sorted(checks, key=lambda check: -BADNESS[check["verdict"]]))
