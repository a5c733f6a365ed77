"""A probe's answer held against the table's rows. Pure: one measurement per row, of several GPUs or ports the worst, with all that are odd named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodectl.verify.answer import Garbled
from nodectl.verify.judging.judge import Expectation, Op
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading
from nodectl.verify.judging.units import human, quantity, unit
from nodectl.verify.node.node_table import Row
from nodectl.verify.node.profiles import NO_PROFILE, Profile
from nodectl.verify.node.traits import Trait

Value = float | bool | str
# Of things found, this many are spelled out: a log with thousands of lines must stay a sentence.
SHOWN = 8
_MOST_RAW = 4000


@dataclass(frozen=True)
class Context:
    """``true`` are the words that hold for this node (rows ask for them with ``when``)."""

    host: str
    true: frozenset[str] = frozenset()
    profile: Profile = NO_PROFILE
    variables: Mapping[str, Any] | None = None
    simulated: bool = False


@dataclass(frozen=True)
class _Limit:
    value: Value
    why: str
    source: str


def read_rows(rows: Sequence[Row], answer: Mapping[str, Any], context: Context) -> tuple[Reading, dict[str, Trait]]:
    """(what can be judged now, what must be held against the fleet). Raises Garbled where the answer lacks what a row reads, UnitError for a wrong pin."""
    reading, traits = Reading(), {}
    for row in rows:
        if not set(row.when) <= context.true:
            continue
        found = _found(row, answer)
        if not found:
            continue
        trait = _judged(row, found, answer, context, reading)
        if trait is not None:
            traits[row.metric] = trait
    return reading, traits


def _found(row: Row, answer: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(label, raw value) of each item; those whose value is absent for good are left out."""
    if not row.each:
        items = [("", answer)]
    else:
        listed = answer.get(row.each)
        if not isinstance(listed, (list, tuple)) or not all(isinstance(item, Mapping) for item in listed):
            raise Garbled(f"{row.how} gave no list of {row.each}: {row.metric} cannot be read from it")
        items = [(str(item.get("label", "")), item) for item in listed]
    values = [(label, _at(item, row)) for label, item in items]
    return [(label, value) for label, value in values if value is not None or row.absent != "omit"]


def _at(item: Mapping[str, Any], row: Row) -> Any:
    """The value at the dotted path. A counter that a device does not have is absent; any other name that is not there is a broken answer."""
    value: Any = item
    for part in row.read.split("."):
        if not isinstance(value, Mapping):
            return None
        if part not in value:
            if row.absent == "omit":
                return None
            raise Garbled(f"{row.how} gave nothing for {row.read}: {row.metric} cannot be read from it")
        value = value[part]
    return value


def _judged(row: Row, found: Sequence[tuple[str, Any]], answer: Mapping[str, Any], context: Context, reading: Reading) -> Trait | None:
    """Adds the measurement to ``reading``, or gives the trait that is compared later."""
    unread = [label for label, raw in found if raw is None]
    if unread:
        what = f"{row.read} of {_list(unread)}" if any(unread) else row.read
        reading.add(_measurement(row, None, context, error=f"{what} could not be read ({row.how}; much of it only root may read)"))
        return None
    values = [(label, _value(raw, row)) for label, raw in found]
    detail = _things(found[0][1]) if len(found) == 1 and not row.each else ""
    detail = _things(answer.get(row.detail)) if row.detail else detail
    limit = _limit(row, context)
    if limit is None or row.op == "near":
        return _compared(row, values, context, reading, detail, _things(answer.get(row.doubt)) if row.doubt else "")
    op: Op = "at_least" if row.op == "at_least" else "at_most" if row.op == "at_most" else "equals"
    wrong = [(label, value) for label, value in values if not _holds(op, value, limit.value)]
    worst = _worst(op, [value for _, value in wrong or values])
    odd = f"{_list([f'{label}: {_plain(value, row)}' for label, value in wrong])}; all others are as expected" if row.each and wrong else detail
    expectation = Expectation(row.metric, op, limit.value, row.unit, limit.why, context.host, limit.source)
    reading.add(_measurement(row, worst, context, raw=_raw(values, row), detail=odd), expectation)
    return None


def _compared(row: Row, values: Sequence[tuple[str, Value]], context: Context, reading: Reading, detail: str, doubt: str) -> Trait | None:
    """Items of one node must be alike before nodes can be."""
    kinds = list(dict.fromkeys(value for _, value in values))
    if len(kinds) > 1:
        common = max(kinds, key=[value for _, value in values].count)
        odd = [f"{label}: {_plain(value, row)}" for label, value in values if value != common]
        worst = next(value for _, value in values if value != common)
        measurement = _measurement(row, worst, context, raw=_raw(values, row), detail=f"{_list(odd)}; {row.why}")
        reading.add(measurement, Expectation(row.metric, "equals", common, row.unit, "as most of this node's others have it", context.host, row.cite()))
        return None
    value = float(kinds[0]) if isinstance(kinds[0], bool) else kinds[0]
    share = float(row.value) if row.op == "near" and isinstance(row.value, float) else 0.0
    return Trait(value, row.unit, row.how, row.why, share, row.alone, context.simulated, detail, doubt, row.zero)


def _limit(row: Row, context: Context) -> _Limit | None:
    """hosts.yaml before the profile before the table's own."""
    pinned = (context.variables or {}).get(row.pin) if row.pin else None
    if pinned not in (None, ""):
        return _Limit(_pinned(row, pinned), f"{row.pin} of the inventory; {row.why}", "hosts.yaml")
    entry = context.profile.entry(row.profile, "bare_metal" in context.true) if row.profile else None
    if entry is not None:
        return _Limit(entry.value, f"profile {context.profile.name}; {row.why}", entry.source)
    return None if row.value is None else _Limit(row.value, row.why, row.cite())


def _pinned(row: Row, value: Any) -> Value:
    if row.unit == "text":
        return str(value)
    return value if row.unit == "bool" and isinstance(value, bool) else quantity(value, unit(row.unit).base)


def _holds(op: Op, value: Value, limit: Value) -> bool:
    if op == "equals":
        return value == limit
    return float(value) >= float(limit) if op == "at_least" else float(value) <= float(limit)


def _worst(op: Op, values: Sequence[Value]) -> Value:
    choose: Mapping[str, Callable[[Sequence[Any]], Any]] = {"at_least": min, "at_most": max, "equals": lambda found: found[0]}
    worst: Value = choose[op](values)
    return worst


def _value(raw: Any, row: Row) -> Value:
    """As the row's unit wants it. Raises Garbled for what is neither."""
    if row.unit == "text":
        if isinstance(raw, str):
            return raw
    elif row.unit == "bool":
        if isinstance(raw, bool):
            return raw
    elif row.unit == "count" and isinstance(raw, (list, tuple, Mapping)):
        return float(len(raw))
    elif row.unit == "count" and isinstance(raw, str):
        return float(bool(raw))
    elif isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return float(raw)
    raise Garbled(f"{row.how} gave {raw!r} for {row.read}; expected {row.unit}: nothing can be concluded from it")


def _things(raw: Any) -> str:
    """What was found, where it is things and not a figure."""
    if isinstance(raw, Mapping):
        return _list([f"{key}: {value}" for key, value in raw.items()])
    return _list([str(item) for item in raw]) if isinstance(raw, (list, tuple)) else raw if isinstance(raw, str) else ""


def _list(things: Sequence[str]) -> str:
    more = len(things) - SHOWN
    return "; ".join(things[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _plain(value: Value, row: Row) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else human(value, unit(row.unit).base) if isinstance(value, float) else value


def _raw(values: Sequence[tuple[str, Value]], row: Row) -> str:
    return "; ".join(f"{label} {_plain(value, row)}".strip() for label, value in values)[:_MOST_RAW] if len(values) > 1 else ""


def _measurement(row: Row, value: Value | None, context: Context, error: str = "", raw: str = "", detail: str = "") -> Measurement:
    return Measurement(row.metric, value, row.unit, (context.host,), row.how, raw=raw, error=error, simulated=context.simulated, detail=detail)
