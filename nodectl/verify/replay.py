"""Judge a run again from its evidence: the same readings, floors, waivers and day. Pure; no node is asked.

The verdicts must come out as they are recorded. Beside them it is said what has changed since: the suite, the floors, nodectl itself, the waivers'
days, and which verdicts would be others today.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodectl.verify.evidence import BadEvidence, Given, readings_in
from nodectl.verify.judging.floor_load import Floor, floor_of_json
from nodectl.verify.judging.judge import judge, node_verdict, reasons, said
from nodectl.verify.judging.measurement import Check, Verdict, Waiver, check_data
from nodectl.wire.event import Event

# Sentences of one kind; a fleet of a thousand nodes would fill the screen with one and the same.
MOST = 20


@dataclass(frozen=True)
class Today:
    """What a run of today would be judged by: the floors that come with nodectl, the shipped suites' texts by name, the version, the day."""

    floors: Sequence[Floor]
    suites: Mapping[str, str]
    version: str
    day: str


@dataclass(frozen=True)
class Replay:
    """``events`` tell the run again: what a report or a closing table is made of. ``broken`` are sentences on verdicts and checks that did not come
    out as recorded (empty for evidence that holds); ``changed`` on what is different today."""

    events: tuple[Event, ...]
    verdicts: Mapping[str, Verdict]
    broken: tuple[str, ...]
    changed: tuple[str, ...]


def replay(evidence: Mapping[str, Any], today: Today) -> Replay:
    """Raises BadEvidence for evidence that holds together by its hashes, and yet is none."""
    readings = readings_in(evidence)
    floors, waivers, day = _floors(evidence), _waivers(evidence), str(_inputs(evidence).get("today") or "")
    every = _judged(readings, floors, waivers, day)
    judged = [(one.step, check) for one, check in every if said(check, one.repetition)]
    of_host = _by_host([check for _, check in judged])
    verdicts = {host: node_verdict(of_host.get(host, [])) for host in _hosts(evidence)}
    sites = [floor for floor in floors if floor.site]
    now = _judged(readings, [*today.floors, *sites], waivers, day)
    return Replay(
        tuple(_events(evidence, judged, verdicts)), verdicts, tuple(_broken(evidence, judged, verdicts)),
        (*_new_floors(floors, today), *_other_today(every, now), *_surroundings(evidence, today), *_over(waivers, today.day)),
    )


Judged = Sequence[tuple[str, Check]]


def _by_host(checks: Sequence[Check]) -> dict[str, list[Check]]:
    found: dict[str, list[Check]] = {}
    for check in checks:
        found.setdefault(check.host, []).append(check)
    return found


def _judged(readings: Sequence[Given], floors: Sequence[Floor], waivers: Sequence[Waiver], day: str) -> list[tuple[Given, Check]]:
    return [(one, check) for one in readings for check in judge(one.reading.measurements, floors, one.reading.expectations, waivers, day)]


def _inputs(evidence: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(evidence.get("inputs"), "inputs")


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadEvidence(f"{what} is no mapping")
    return value


def _floors(evidence: Mapping[str, Any]) -> list[Floor]:
    try:
        return [floor_of_json(_mapping(one, "a floor")) for one in evidence["floors"]]
    except (ValueError, TypeError) as error:
        raise BadEvidence(f"floors: {error}") from None


def _waivers(evidence: Mapping[str, Any]) -> list[Waiver]:
    try:
        return [Waiver(**{**_mapping(one, "a waiver"), "hosts": tuple(one["hosts"])}) for one in _inputs(evidence).get("waivers", [])]
    except (TypeError, KeyError) as error:
        raise BadEvidence(f"waivers: {error}") from None


def _hosts(evidence: Mapping[str, Any]) -> list[str]:
    """Those that were verified. Others of the run (a task failed there) have checks, none, and no verdict."""
    return [host for host, noted in _mapping(evidence["verdicts"], "verdicts").items() if isinstance(noted, Mapping) and "verdict" in noted]


def _events(evidence: Mapping[str, Any], judged: Judged, verdicts: Mapping[str, Verdict]) -> list[Event]:
    """The journal of a verification without its nodes."""
    at = float(_mapping(evidence["run"], "run").get("started") or 0.0)
    # In the order of the verdicts, which is the inventory's; then those that were never verified.
    hosts = list(dict.fromkeys([*verdicts, *_mapping(evidence["checks"], "checks")]))
    run = {key: evidence["run"].get(key) for key in ("run_id", "argv", "inventory")}
    version = _mapping(evidence["versions"], "versions").get("nodectl", "")
    events = [Event("run.start", at, "", {**run, "command": "verify", "version": version, "hosts": hosts})]
    events += [Event("check", at, check.host, check_data(check, step)) for step, check in judged]
    for host, noted in evidence["verdicts"].items():
        away, why = (str(noted.get("away", "")), str(noted.get("why", ""))) if isinstance(noted, Mapping) else ("", "")
        if away in ("lost", "unreachable", "stopped"):
            events.append(Event(f"host.{away}", at, host, {"reason": why, "why": away}))
        elif away == "failed":
            events.append(Event("task.end", at, host, {"status": "failed", "task": "", "result": {"msg": why}}))
    of_host = _by_host([check for _, check in judged])
    for host, verdict in verdicts.items():
        events.append(Event("verdict", at, host, {"verdict": verdict, "reasons": reasons(of_host.get(host, []))}))
    return events


def _broken(evidence: Mapping[str, Any], judged: Judged, verdicts: Mapping[str, Verdict]) -> list[str]:
    before = {host: evidence["verdicts"][host]["verdict"] for host in verdicts}
    texts = [f"{host}: recorded {before[host]}, judged {verdict}" for host, verdict in verdicts.items() if before[host] != verdict]
    recorded = {host: _marks(checks) for host, checks in evidence["checks"].items()}
    again: dict[str, list[tuple[str, str]]] = {host: [] for host in recorded}
    for _, check in judged:
        again.setdefault(check.host, []).append((check.name, check.verdict))
    for host, marks in again.items():
        one, other = sorted(set(recorded.get(host, [])) - set(marks)), sorted(set(marks) - set(recorded.get(host, [])))
        texts += [f"{host} {name}: recorded {verdict}, which its readings do not give" for name, verdict in one]
        texts += [f"{host} {name}: judged {verdict}, which is not recorded" for name, verdict in other]
    return _some(texts)


def _marks(checks: Any) -> list[tuple[str, str]]:
    return [(str(one.get("name")), str(one.get("verdict"))) for one in checks if isinstance(one, Mapping)] if isinstance(checks, list) else []


def _some(texts: list[str]) -> list[str]:
    return texts if len(texts) <= MOST else [*texts[:MOST], f"and {len(texts) - MOST} more of this kind"]


def _new_floors(floors: Sequence[Floor], today: Today) -> list[str]:
    """Floors that this run was judged by and that are others now."""
    known = set(today.floors)
    return _some([
        f"the floor of {floor.metric} from {floor.cite()}, {floor.floor:g} {floor.unit}, is no longer shipped as it was"
        for floor in floors if not floor.site and floor not in known
    ])


def _other_today(judged: Sequence[tuple[Given, Check]], now: Sequence[tuple[Given, Check]]) -> list[str]:
    pairs = zip(judged, now, strict=True)  # the same measurements in the same order
    return _some([
        f"{one.host} {one.name}: {one.verdict} then, {other.verdict} with today's floors: {other.reason}"
        for (_, one), (_, other) in pairs if one.verdict != other.verdict
    ])


def _surroundings(evidence: Mapping[str, Any], today: Today) -> list[str]:
    suite = _mapping(_inputs(evidence).get("suite"), "suite")
    name, text = str(suite.get("name", "")), str(suite.get("text", ""))
    texts = []
    if name in today.suites and today.suites[name] != text:
        texts.append(f"suite {name} is not what it was: a run of today checks something else")
    version = _mapping(evidence["versions"], "versions").get("nodectl", "")
    if version != today.version:
        texts.append(f"the run was made by nodectl {version or '(unknown)'}, this is {today.version}")
    return texts


def _over(waivers: Sequence[Waiver], day: str) -> list[str]:
    return [f"the waiver of {one.check} ({one.who}) ended on {one.until}: today the check counts" for one in waivers if one.until < day]
