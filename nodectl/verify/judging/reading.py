"""What one check brought: measurements, and what this node's own settings demand of them."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, TypeVar, get_args

from nodectl.verify.judging.judge import Expectation, Op
from nodectl.verify.judging.measurement import Measurement


@dataclass
class Reading:
    """Grows while a check runs; the judge reads it afterwards."""

    measurements: list[Measurement] = field(default_factory=list)
    expectations: list[Expectation] = field(default_factory=list)

    def add(self, measurement: Measurement, *expectations: Expectation) -> None:
        self.measurements.append(measurement)
        self.expectations.extend(expectations)

    def must_be_true(self, measurement: Measurement, why: str) -> None:
        """A measurement of unit bool that has to be true; its ``raw`` says what was found instead."""
        self.add(measurement, *(Expectation(measurement.name, "equals", True, "bool", why, host) for host in measurement.hosts))

    def join(self, others: Iterable[Reading]) -> Reading:
        for other in others:
            self.measurements += other.measurements
            self.expectations += other.expectations
        return self

    def without(self, hosts: Container[str]) -> Reading:
        """The same of the other nodes; a measurement of nobody else is left out."""
        kept = [replace(one, hosts=tuple(host for host in one.hosts if host not in hosts)) for one in self.measurements]
        return Reading([one for one in kept if one.hosts], [one for one in self.expectations if not one.host or one.host not in hosts])

    def to_json(self) -> dict[str, Any]:
        """As JSON knows it. ``reading_of`` makes a reading of it that the judge cannot tell from this one."""
        return {"measurements": [plain(asdict(_finite(one))) for one in self.measurements], "expectations": [plain(asdict(one)) for one in self.expectations]}


class BadReading(ValueError):
    """What should be a reading is none; the text says where."""


def reading_of(data: Mapping[str, Any]) -> Reading:
    """The reading that ``to_json`` wrote. Raises BadReading."""
    return Reading([_build(Measurement, one) for one in _entries(data, "measurements")], [_build(Expectation, one) for one in _entries(data, "expectations")])


def _entries(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = data.get(key)
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise BadReading(f"{key}: expected a list of mappings")
    return found


Part = TypeVar("Part", Measurement, Expectation)
_SCALAR = (str, bool, int, float, type(None))
_TYPES: Mapping[str, tuple[type, ...]] = {
    "value": _SCALAR, "conditions": (dict,), "simulated": (bool,), "gone": (bool,), "alone": (bool,), "hosts": (list,),
}


def _build(kind: type[Part], entry: Mapping[str, Any]) -> Part:
    names = {one.name: one.default is MISSING and one.default_factory is MISSING for one in fields(kind)}
    odd = sorted(set(entry) - set(names)) + sorted(name for name, needed in names.items() if needed and name not in entry)
    wrong = sorted(name for name, value in entry.items() if name in names and not isinstance(value, _TYPES.get(name, (str,))))
    if odd or wrong:
        what = entry.get("name", entry.get("metric", ""))
        raise BadReading(f"{kind.__name__.lower()} {what!r}: unknown, missing or of a wrong type: {', '.join(odd + wrong)}")
    if entry.get("op", "equals") not in get_args(Op):
        raise BadReading(f"expectation {entry['metric']!r}: op is {entry['op']!r}; expected one of {', '.join(get_args(Op))}")
    values: dict[str, Any] = {key: tuple(map(str, value)) if key == "hosts" else value for key, value in entry.items()}
    return kind(**values)


def _finite(measurement: Measurement) -> Measurement:
    """JSON has no nan and no inf. The judge says the same of either."""
    if isinstance(measurement.value, float) and not math.isfinite(measurement.value):
        return replace(measurement, value=None, error=measurement.error or f"the value is {measurement.value}: no measurement gives that")
    return measurement


def plain(value: Any) -> Any:
    """As JSON knows it: texts for what it has no word for, nan and inf among them."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, _SCALAR) else str(value)


def unknown(name: str, hosts: tuple[str, ...], method: str, error: str) -> Reading:
    """A check that could not be made."""
    return Reading([Measurement(name, None, "text", hosts, method, error=error)])


def absent(name: str, host: str, method: str, reason: str) -> Reading:
    """A node that is lost, was never reached, or whose settings nobody understands: unknown, and beyond any waiver."""
    return Reading([Measurement(name, None, "text", (host,), method, error=reason, gone=True)])
