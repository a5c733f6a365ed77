"""From measurements to checks. Pure: no clock, no node, no torch.

One-sided: better than expected always passes. What could not be measured, or has nothing to be compared with, is `unknown`,
and unknown is never a pass. A node is as good as the worst of its checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from nodectl.verify.judging.floor_load import Floor, best_floor
from nodectl.verify.judging.measurement import Check, Measurement, Verdict, Waiver
from nodectl.verify.judging.units import UnitError, human, to_base, unit

Op = Literal["at_least", "at_most", "equals"]
# The worse, the higher: a node that says no stays a failed node, whatever else could not be found out about it.
_RANK: Mapping[Verdict, int] = {"pass": 0, "skipped": 1, "unknown": 2, "fail": 3}
# With these a node is handed off: all passed, or what did not was excused by the user beforehand.
GOOD: frozenset[Verdict] = frozenset(["pass", "skipped"])


@dataclass(frozen=True)
class Expectation:
    """What one measurement must be. ``host`` "" means every host. ``why`` completes the sentence "expected … (why)".

    Numbers are compared in the base unit of ``unit``. ``alone`` False: it can make a node fail, but not pass. A fleet that is slow as a whole
    agrees with itself, so being like the others proves nothing where no absolute bar stands beside it.
    """

    metric: str
    op: Op
    value: float | bool | str
    unit: str
    why: str
    host: str = ""
    source: str = ""
    alone: bool = True

    def about(self, metric: str, host: str) -> bool:
        return self.metric == metric and self.host in ("", host)


def judge(
    measurements: Sequence[Measurement], floors: Sequence[Floor], expectations: Sequence[Expectation], waivers: Sequence[Waiver] = (), today: str = "",
) -> list[Check]:
    """One check per measurement and host. All expectations about it and the best fitting floor must hold.

    ``waivers`` turn what is not a pass into "skipped" on the days up to their last; ``today`` is an ISO date, "" for none: then no waiver counts.
    """
    return [
        _waived(_check(measurement, host, floors, expectations), measurement, waivers, today)
        for measurement in measurements for host in measurement.hosts
    ]


def _waived(check: Check, measurement: Measurement, waivers: Sequence[Waiver], today: str) -> Check:
    """A node that is not there, or could not be asked, is not what anybody excused."""
    if check.verdict == "pass" or measurement.gone:
        return check
    mine = [one for one in waivers if check.host in one.hosts and fnmatchcase(check.name, one.check) and today and today <= one.until]
    if not mine:
        return check
    waiver = mine[0]
    words = f"waived by {waiver.who} until {waiver.until}: {waiver.why}; it would be {check.verdict}: {check.reason}"
    return replace(check, verdict="skipped", reason=words, waiver=waiver)


def said(check: Check, repetition: Sequence[int]) -> bool:
    """Of a step that is done several times (number, of how many), what passes is said once, at the last time; what does not, each time."""
    number, of = repetition
    return number >= of or check.verdict != "pass"


def node_verdict(checks: Sequence[Check]) -> Verdict:
    """The worst of a node's checks; a node of which nothing is known is unknown."""
    return max((check.verdict for check in checks), key=lambda verdict: _RANK[verdict], default="unknown")


def reasons(checks: Sequence[Check]) -> list[str]:
    """Why a node does not pass, worst first; empty when it does."""
    worse = sorted((check for check in checks if check.verdict != "pass"), key=lambda check: -_RANK[check.verdict])
    return [f"{check.name}: {check.reason}" for check in worse] or ([] if checks else ["nothing was measured"])


def _check(measurement: Measurement, host: str, floors: Sequence[Floor], expectations: Sequence[Expectation]) -> Check:
    if measurement.value is None or measurement.error:
        return _result(measurement, host, "unknown", measurement.error or "no value could be had")
    if isinstance(measurement.value, float) and not math.isfinite(measurement.value):
        return _result(replace(measurement, value=None), host, "unknown", f"the value is {measurement.value}: no measurement gives that")
    mine = [expectation for expectation in expectations if expectation.about(measurement.name, host)]
    floor = best_floor(floors, measurement.name, measurement.conditions)
    if floor is not None:
        mine.append(Expectation(floor.metric, "at_least", floor.floor, floor.unit, floor.reason or f"floor of {floor.statistic}", source=floor.cite()))
    results = [_compare(measurement, host, expectation) for expectation in mine]
    if all(check.verdict == "pass" for check in results) and not any(expectation.alone for expectation in mine):
        return replace(_result(measurement, host, "unknown", _no_floor(measurement)), unfloored=True)
    return max(results, key=lambda check: (_RANK[check.verdict], isinstance(check.floor, float), check.floor if isinstance(check.floor, float) else 0.0))


def _no_floor(measurement: Measurement) -> str:
    """What was measured, and the two ways to a bar."""
    seen = f"measured {_shown(measurement.value, measurement.unit)}, but no floor is known for {_conditions(measurement)}: give one in hosts.yaml"
    rate = not isinstance(measurement.value, (str, bool)) and measurement.unit in ("B/s", "1/s")
    return f"{seen}, or make what healthy nodes reach the site's own: nodectl verify HOSTS --adopt" if rate else seen


def _compare(measurement: Measurement, host: str, expectation: Expectation) -> Check:
    try:
        holds, bar = _holds(measurement, expectation)
    except UnitError as error:
        return _result(measurement, host, "unknown", f"cannot be compared: {error}", expectation)
    words = {"at_least": "at least ", "at_most": "at most ", "equals": ""}[expectation.op]
    seen = f"measured {_shown(measurement.value, measurement.unit)}, expected {words}{_shown(bar, measurement.unit)}"
    detail = f": {measurement.detail}" if not holds and measurement.detail else ""
    return _result(measurement, host, "pass" if holds else "fail", f"{seen} ({expectation.why}){detail}", expectation, bar)


def _holds(measurement: Measurement, expectation: Expectation) -> tuple[bool, float | bool | str]:
    """Raises UnitError when the two are not of one kind."""
    value, wanted = measurement.value, expectation.value
    base = unit(measurement.unit).base
    if expectation.op == "equals":
        if unit(expectation.unit).base != base:
            raise UnitError(f"{measurement.unit} and {expectation.unit} are of two kinds")
        return value == wanted, wanted
    if isinstance(value, (str, bool)) or isinstance(wanted, (str, bool)) or value is None:
        raise UnitError(f"{value!r} and {wanted!r} are not both numbers")
    number, bar = to_base(value, measurement.unit, base), to_base(wanted, expectation.unit, base)
    if not math.isfinite(bar):
        raise UnitError(f"{wanted} is no bar")
    return (number >= bar if expectation.op == "at_least" else number <= bar), bar


def _result(
    measurement: Measurement, host: str, verdict: Verdict, reason: str, expectation: Expectation | None = None, bar: float | bool | str | None = None,
) -> Check:
    simulated = " [simulated]" if measurement.simulated else ""
    return Check(
        host, measurement.name, verdict, reason + simulated, measurement.value, measurement.unit,
        float(bar) if isinstance(bar, int) and not isinstance(bar, bool) else bar,
        expectation.source if expectation else "", measurement.simulated, measurement.raw,
    )


def _shown(value: float | bool | str | None, name: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) or value is None:
        return str(value)
    try:
        return human(value, unit(name).base)
    except UnitError:
        return f"{value:g} {name}"


def _conditions(measurement: Measurement) -> str:
    named = [f"{key} {measurement.conditions[key]}" for key in ("sku", "fabric", "device", "collective", "nodes", "gpus") if measurement.conditions.get(key)]
    return f"{measurement.name} ({', '.join(named)})" if named else measurement.name
