"""evidence.json: all that the verdicts of a run rest on, so that they can be judged again without a node. Pure.

It holds the inputs (suite, settings of hosts.yaml, waivers), the versions, the floors that were used with their sources, every reading exactly as
the judge had it (raw outputs too), every check, and the verdicts. Each part has its SHA-256, and so has the whole: a file that was changed by
accident, or by somebody who did not know better, is refused. It is no signature: who wants to deceive can compute hashes too, so keep the file
where only you can write, or sign it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodectl.verify.judging.floor_load import floor_of_json
from nodectl.verify.judging.reading import BadReading, Reading, plain, reading_of
from nodectl.wire.event import Event

FORMAT = 1
PARTS = ("run", "inputs", "versions", "floors", "readings", "checks", "verdicts")
_SHOWN = ("step", "name", "verdict", "value", "unit", "floor", "reason", "source", "simulated", "waiver")


class BadEvidence(ValueError):
    """The file is no evidence of nodectl, or was changed after it was written; the text says which part."""


def evidence_of(events: Sequence[Event], handed_off: Sequence[str], world_size: int) -> dict[str, Any]:
    """JSON types. ``simulated`` at the top is True when any figure stands in for hardware: then nothing here promises speed."""
    start = _first(events, "run.start")
    suite = _first(events, "suite")
    readings = [{key: event.data.get(key) for key in ("step", "repetition", "measurements", "expectations")} for event in events if event.kind == "reading"]
    parts = plain({
        "run": {"started": events[0].at if events else 0.0, **{key: start.get(key) for key in ("run_id", "command", "argv", "inventory", "playbook")}},
        "inputs": {
            "suite": {key: suite.get(key, "") for key in ("name", "text")}, "today": suite.get("today", ""), "waivers": suite.get("waivers", []),
            "settings": suite.get("settings", {}),
        },
        "versions": _versions(events, start, readings),
        "floors": _used(suite.get("floors", []), readings),
        "readings": readings,
        "checks": _checks(events),
        "verdicts": _verdicts(events),
    })
    simulated = any(check["simulated"] is True for checks in parts["checks"].values() for check in checks)
    head = {"format": FORMAT, "run_id": start.get("run_id", ""), "world_size": world_size, "handed_off": list(handed_off), "simulated": simulated}
    return sealed({**head, **parts})


def sealed(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """With the hashes of what is in it."""
    body = {key: value for key, value in evidence.items() if key != "sha256"}
    return {**body, "sha256": {**{part: _digest(body.get(part)) for part in PARTS}, "all": _digest(body)}}


def _digest(value: Any) -> str:
    """Of one spelling of JSON: keys sorted, no blanks, ASCII. Layout and order of keys in the file do not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")).hexdigest()


def read_evidence(text: str) -> dict[str, Any]:
    """The evidence in ``text``, whole and unchanged. Raises BadEvidence."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadEvidence(f"it is not JSON: {error}") from None
    if not isinstance(found, dict) or "sha256" not in found or not all(part in found for part in PARTS):
        raise BadEvidence(f"it is no evidence of nodectl: expected {', '.join(PARTS)} and sha256")
    if found.get("format") != FORMAT:
        raise BadEvidence(f"it has format {found.get('format')!r}; this nodectl reads {FORMAT}")
    check_seal(found)
    return found


def check_seal(evidence: Mapping[str, Any]) -> None:
    """Raises BadEvidence where a part is not what its hash says."""
    said = evidence["sha256"]
    try:
        right = sealed(evidence)["sha256"]
    except (ValueError, RecursionError) as error:
        raise BadEvidence(f"it cannot be hashed: {error}") from None
    if not isinstance(said, dict) or said != right:
        changed = [part for part in PARTS if not isinstance(said, dict) or said.get(part) != right[part]] or ["what stands beside the parts"]
        raise BadEvidence(f"it was changed after it was written: what it says of its own hash does not hold for {', '.join(changed)}")


@dataclass(frozen=True)
class Given:
    """One thing that the judge was given: by which step, and which time of how many."""

    step: str
    repetition: tuple[int, int]
    reading: Reading


def readings_in(evidence: Mapping[str, Any]) -> list[Given]:
    """Raises BadEvidence."""
    found = []
    for number, one in enumerate(_list(evidence, "readings"), 1):
        try:
            first, last = one.get("repetition") or (1, 1)
            found.append(Given(str(one["step"]), (int(first), int(last)), reading_of(one)))
        except (BadReading, KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadEvidence(f"reading {number} cannot be read: {error}") from None
    return found


def _list(evidence: Mapping[str, Any], key: str) -> list[Any]:
    value = evidence.get(key)
    if not isinstance(value, list):
        raise BadEvidence(f"{key} is no list")
    return value


def _first(events: Sequence[Event], kind: str) -> Mapping[str, Any]:
    return next((event.data for event in events if event.kind == kind), {})


def _versions(events: Sequence[Event], start: Mapping[str, Any], readings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of nodectl, of each node's torch, and the tools that measured as they name themselves."""
    methods = {str(one.get("method", "")) for reading in readings for one in _mappings(reading, "measurements")}
    torch = {event.host: event.data.get("torch", "") for event in events if event.kind == "node"}
    return {"nodectl": start.get("version", ""), "torch": torch, "methods": sorted(methods - {""})}


def _mappings(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = data.get(key)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _used(floors: Any, readings: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Those that speak about something that was measured."""
    # A thousand nodes have the same few conditions.
    measured: dict[tuple[str, str], Mapping[str, Any]] = {}
    for one in (one for reading in readings for one in _mappings(reading, "measurements")):
        if isinstance(one.get("conditions"), Mapping):
            measured.setdefault((str(one.get("name", "")), json.dumps(one["conditions"], sort_keys=True)), one["conditions"])
    kept = []
    for data in floors if isinstance(floors, list) else []:
        try:
            floor = floor_of_json(data)
        except ValueError:
            continue
        if any(floor.fits(name, conditions) for (name, _), conditions in measured.items()):
            kept.append(data)
    return kept


def _checks(events: Sequence[Event]) -> dict[str, list[dict[str, Any]]]:
    """By host, failed and passed alike; every host that the run knows has an entry."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event.host:
            mine = found.setdefault(event.host, [])
            if event.kind == "check":
                mine.append({key: event.data.get(key) for key in _SHOWN})
    return found


def _verdicts(events: Sequence[Event]) -> dict[str, dict[str, Any]]:
    """By host: the verdict, its reasons, and where the node is gone, was stopped or had a task that failed: how and why."""
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.kind == "verdict":
            found.setdefault(event.host, {}).update({"verdict": event.data.get("verdict", "unknown"), "reasons": event.texts("reasons")})
        elif event.kind in ("host.lost", "host.unreachable", "host.stopped"):
            found.setdefault(event.host, {}).update({"away": event.kind.partition(".")[2], "why": str(event.data.get("reason", ""))})
        elif event.kind == "task.end" and event.data.get("status") == "failed":
            why = f"task '{event.data.get('task', '')}': {event.mapping('result').get('msg', '')}"
            found.setdefault(event.host, {}).update({"away": "failed", "why": why})
    return found
