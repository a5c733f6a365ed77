"""What the user excuses beforehand: `verify_waivers` of hosts.yaml, read before any node is asked. Pure: today's date is handed in.

    verify_waivers:
      - {check: disk.scratch.*, who: ada@example.org, why: "RMA 4711 is on its way", until: 2026-12-24}

A waiver that is not complete, or over, or fits no check at all, is a mistake at its place: silence would let a bad node through.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from nodectl.diagnostics.model import Collector
from nodectl.lang.document import Map, Seq
from nodectl.lang.unsafe import has_template
from nodectl.verify.judging.measurement import Check, Waiver
from nodectl.verify.kinds import check_names
from nodectl.wire.origin import Origin

VARIABLE = "verify_waivers"
KEYS = ("check", "who", "why", "until")
_SHAPE = "{check: disk.scratch.*, who: NAME, why: REASON, until: 2026-12-24}"


def waivers_of(variables: Mapping[str, Mapping[str, Any]], today: datetime.date, found: Collector) -> list[Waiver]:
    """The waivers of all hosts, ``variables`` being each host's as they are written. One that several hosts share is one waiver with several hosts."""
    hosts: dict[Any, list[str]] = {}
    values: dict[Any, Any] = {}
    for host, given in variables.items():
        value = given.get(VARIABLE)
        if value is not None:
            # A group's list is one object for all its hosts: its mistakes are told once.
            key = value.origin if isinstance(value, Seq) else repr(value)
            hosts.setdefault(key, []).append(host)
            values[key] = value
    return [waiver for key, value in values.items() for waiver in _list(value, tuple(hosts[key]), today, found)]


def _list(value: Any, hosts: tuple[str, ...], today: datetime.date, found: Collector) -> list[Waiver]:
    if not isinstance(value, list):
        found.error("E313", f"{VARIABLE} is {value!r}", _at(value), label="expected a list", help=f"write - {_SHAPE}")
        return []
    places = value.item_at if isinstance(value, Seq) else [None] * len(value)
    read = [_waiver(one, hosts, today, at, found) for one, at in zip(value, places, strict=True)]
    return [one for one in read if one is not None]


def _at(value: Any) -> Origin | None:
    return value.origin if isinstance(value, (Map, Seq)) else None


def _waiver(entry: Any, hosts: tuple[str, ...], today: datetime.date, at: Origin | None, found: Collector) -> Waiver | None:
    before = len(found.errors)
    if not isinstance(entry, Mapping):
        found.error("E313", f"a waiver is {entry!r}", at, label="expected a mapping", help=f"write {_SHAPE}")
        return None
    keys, places = (entry.key_at, entry.value_at) if isinstance(entry, Map) else ({}, {})
    for key in entry:
        if key not in KEYS:
            near = get_close_matches(str(key), KEYS, n=1)
            advice = f"did you mean '{near[0]}'?" if near else ""
            found.error("E313", f"a waiver has an unknown key '{key}'", keys.get(key, at), label=f"expected {', '.join(KEYS)}", help=advice)
    missing = [key for key in KEYS if entry.get(key) in (None, "")]
    if missing:
        advice = "who answers for it, why it is all right, and the last day on which it counts; nobody finds out later what is not written now"
        found.error("E313", f"a waiver lacks {', '.join(missing)}", at, label=f"expected {', '.join(KEYS)}", help=advice)
    for key in ("check", "who", "why"):
        _text(key, entry.get(key), places.get(key, at), found)
    until = _until(entry.get("until"), today, places.get("until", at), found)
    if isinstance(entry.get("check"), str) and entry["check"]:
        _known(entry["check"], places.get("check", at), found)
    if len(found.errors) > before or until is None:
        return None
    return Waiver(str(entry["check"]), str(entry["who"]), str(entry["why"]), until.isoformat(), hosts, str(at or ""))


def _text(key: str, value: Any, at: Origin | None, found: Collector) -> None:
    if value in (None, ""):
        return
    if not isinstance(value, str) or has_template(value) or not value.isprintable() or not value.strip():
        found.error("E313", f"{key} of a waiver is {value!r}", at, label="expected one line of text, without a template", help="write it out")


def _until(value: Any, today: datetime.date, at: Origin | None, found: Collector) -> datetime.date | None:
    if value in (None, ""):
        return None
    try:
        day = value if type(value) is datetime.date else datetime.date.fromisoformat(str(value))
    except ValueError:
        found.error("E313", f"until of a waiver is {value!r}", at, label="expected a date such as 2026-12-24", help="the last day on which the waiver counts")
        return None
    if day < today:
        advice = "mend what it excused and remove it; or, if it still holds, say anew until when"
        found.error("E313", f"this waiver ended on {day.isoformat()}", at, label="over", help=advice)
        return None
    return day


def _known(check: str, at: Origin | None, found: Collector) -> None:
    names = check_names()
    if not check.strip("*?[]!."):
        found.error("E313", f"the waiver of '{check}' would excuse everything", at, label="expected the name of a check", help="name what is excused")
    elif not any(meet(check, name) for name in names):
        near = get_close_matches(check, names, n=3, cutoff=0.5)
        advice = f"did you mean {' or '.join(near)}?" if near else f"names begin with {', '.join(sorted({name.partition('.')[0] for name in names}))}"
        found.error("E313", f"no check is called '{check}'", at, label="a waiver of nothing", help=advice)


def meet(one: str, other: str) -> bool:
    """True when some text fits both patterns; * stands for any text, ? for one character. A set in brackets counts as any one character."""
    return _meet(_tokens(one), _tokens(other))


def _tokens(pattern: str) -> tuple[str, ...]:
    found, index = [], 0
    while index < len(pattern):
        end = pattern.find("]", index + 2) if pattern[index] == "[" else -1
        found.append("?" if end > 0 else pattern[index])
        index = end + 1 if end > 0 else index + 1
    return tuple(found)


def _meet(one: Sequence[str], other: Sequence[str]) -> bool:
    """Over pairs of positions, each visited once."""
    todo, seen = [(0, 0)], {(0, 0)}
    while todo:
        i, j = todo.pop()
        if (i, j) == (len(one), len(other)):
            return True
        mine, theirs = one[i] if i < len(one) else "", other[j] if j < len(other) else ""
        if mine == "*":
            steps = [(i + 1, j), (i, j + 1)]  # * ends here, or takes one more of the other
        elif theirs == "*":
            steps = [(i, j + 1), (i + 1, j)]
        else:
            steps = [(i + 1, j + 1)] if mine and theirs and (mine == theirs or "?" in (mine, theirs)) else []
        for step in steps:
            if step not in seen and step[0] <= len(one) and step[1] <= len(other):
                seen.add(step)
                todo.append(step)
    return False


def unused(waivers: Sequence[Waiver], checks: Sequence[Check]) -> list[str]:
    """Sentences on waivers that excused nothing: what is left standing excuses the next fault."""
    used = {check.waiver for check in checks}
    return [
        f"the waiver of {one.check} ({one.origin or 'no file'}, {one.who}) excused nothing: its checks passed, or were not made on {', '.join(one.hosts)}"
        for one in waivers if one not in used
    ]
