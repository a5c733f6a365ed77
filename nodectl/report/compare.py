"""Two runs side by side: what got slower, what got faster, whose verdict changed, who came and went. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from nodectl.report.fold import BADNESS, HostSummary, Summary
from nodectl.report.page_groups import number

# A figure that moves by less is taken for noise. A choice: well below what a lost lane, a narrower PCIe link or a throttled disk takes away
# (a fourth to a half). Hosts that share a machine, as lab hosts do, differ by far more from run to run: that is what --noise is for.
NOISE = 0.10
# Units in which more is better, and in which less is. Of others (a count, a version) only that they changed can be said.
BETTER: dict[str, int] = {"B/s": 1, "1/s": 1, "s": -1}
# Seconds that measure no work: a clock that is 0.2 ms off instead of 0.03 is not slower.
NO_SPEED = ("clock.", "uptime.")
Kind = Literal["verdict", "slower", "faster", "changed"]


@dataclass(frozen=True)
class Change:
    """One check of one node in both runs, or a figure of several nodes (``host`` names them; their verdicts are "none").

    ``ratio`` is how good the later figure is beside the earlier: 0.5 is half as fast.
    """

    kind: Kind
    host: str
    check: str
    unit: str
    before: Any
    after: Any
    verdict_before: str
    verdict_after: str
    ratio: float | None = None
    simulated: bool = False

    @property
    def worse(self) -> bool:
        return self.kind == "slower" or (self.kind == "verdict" and BADNESS[self.verdict_after] > BADNESS[self.verdict_before])


@dataclass(frozen=True)
class Comparison:
    """``verdicts``: nodes whose state changed, (host, before, after). ``changes``: worst first. ``same``: figures within the noise."""

    before: str
    after: str
    noise: float
    verdicts: list[tuple[str, str, str]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    same: int = 0
    nodes_gone: list[str] = field(default_factory=list)
    nodes_come: list[str] = field(default_factory=list)
    checks_gone: list[tuple[str, str]] = field(default_factory=list)
    checks_come: list[tuple[str, str]] = field(default_factory=list)


def compare(before: Summary, after: Summary, noise: float = NOISE) -> Comparison:
    """What the later run has that the earlier had not. ``noise`` is a part of the earlier figure: 0.1 is 10 %."""
    both = [name for name in after.hosts if name in before.hosts]
    figures = _moved(_figures(before), _figures(after), noise)
    found = [change for change in figures if change]
    same, gone, come = figures.count(None), [], []
    for name in both:
        old, new = _checks(before.hosts[name]), _checks(after.hosts[name])
        changes = [_change(name, old[check], new[check], noise) for check in new if check in old]
        found += [change for change in changes if change]
        same += changes.count(None)
        gone += [(name, check) for check in old if check not in new]
        come += [(name, check) for check in new if check not in old]
    return Comparison(
        before.run_id, after.run_id, noise, _verdicts(before, after, both), sorted(found, key=_order), same,
        [name for name in before.hosts if name not in after.hosts], [name for name in after.hosts if name not in before.hosts], gone, come,
    )


@dataclass(frozen=True)
class Figure:
    """What was measured between nodes, and judged only as a part of something: a pair, one size of a sweep."""

    unit: str
    value: float


def _figures(summary: Summary) -> dict[tuple[str, str], Figure]:
    """By (whose, what): the best figure of each pair, and the bus bandwidth of each size of each sweep."""
    found: dict[tuple[str, str], Figure] = {}
    for pair in summary.pairs:
        hosts, value, unit = pair.get("hosts"), number(pair.get("value")), str(pair.get("unit") or "")
        if isinstance(hosts, list) and len(hosts) == 2 and value:
            rail = f", rail {pair['rail']}" if pair.get("rail") else ""
            key = " <-> ".join(sorted(map(str, hosts))), f"pair, {pair.get('tool')}{rail}"
            had = found.get(key)
            better = had is None or (value < had.value if unit == "s" else value > had.value)
            found[key] = Figure(unit, value) if better else had or Figure(unit, value)
    for sweep in summary.sweeps:
        found |= dict(_sizes(sweep))
    return found


def _sizes(sweep: dict[str, Any]) -> Iterator[tuple[tuple[str, str], Figure]]:
    hosts, rows = sweep.get("hosts"), sweep.get("rows")
    names = [str(host) for host in hosts] if isinstance(hosts, list) else []
    whose = ", ".join(names) if len(names) <= 3 else f"{len(names)} nodes"
    for row in rows if isinstance(rows, list) else []:
        busbw = number(row.get("busbw")) if isinstance(row, dict) else None
        if busbw:
            what = " ".join(str(sweep.get(key)) for key in ("op", "dtype", "redop") if sweep.get(key) not in (None, "", "none"))
            yield (whose, f"busbw of {what}, {row.get('bytes')} B{', in place' if row.get('in_place') else ''}"), Figure("B/s", busbw)


def _moved(before: dict[tuple[str, str], Figure], after: dict[tuple[str, str], Figure], noise: float) -> list[Change | None]:
    return [_figure(key, before[key], after[key], noise) for key in after if key in before]


def _figure(key: tuple[str, str], old: Figure, new: Figure, noise: float) -> Change | None:
    ratio = _ratio(old.value, new.value, new.unit) if old.unit == new.unit else None
    kind = _pace(ratio, noise) if ratio is not None else None
    return Change(kind, key[0], key[1], new.unit, old.value, new.value, "none", "none", ratio) if kind else None


def _pace(ratio: float, noise: float) -> Kind | None:
    """Both ways from the earlier figure: to fall by a tenth and to rise by a tenth are the same step."""
    return "slower" if ratio < 1 - noise else "faster" if ratio > 1 + noise else None


def _verdicts(before: Summary, after: Summary, both: list[str]) -> list[tuple[str, str, str]]:
    """Those that got worse first."""
    changed = [name for name in both if before.hosts[name].state != after.hosts[name].state]
    changed.sort(key=lambda name: before.hosts[name].badness - after.hosts[name].badness)
    return [(name, before.hosts[name].state, after.hosts[name].state) for name in changed]


def _checks(host: HostSummary) -> dict[str, dict[str, Any]]:
    """By name; where a check was made more than once, its worst."""
    found: dict[str, dict[str, Any]] = {}
    for check in host.checks:
        name = str(check["name"])
        if name not in found or BADNESS[check["verdict"]] > BADNESS[found[name]["verdict"]]:
            found[name] = check
    return found


def _change(host: str, old: dict[str, Any], new: dict[str, Any], noise: float) -> Change | None:
    unit = str(new["unit"] or "")
    speed = old["unit"] == new["unit"] and not str(new["name"]).startswith(NO_SPEED)
    ratio = _ratio(old["value"], new["value"], unit) if speed else None
    kind = _kind(old, new, ratio, noise)
    if kind is None:
        return None
    simulated = bool(new["simulated"] or old["simulated"])
    return Change(kind, host, str(new["name"]), unit, old["value"], new["value"], old["verdict"], new["verdict"], ratio, simulated)


def _kind(old: dict[str, Any], new: dict[str, Any], ratio: float | None, noise: float) -> Kind | None:
    if old["verdict"] != new["verdict"]:
        return "verdict"
    if ratio is not None:
        return _pace(ratio, noise)
    # A clock's offset, a temperature: figures without a better end change all the time, and their verdict says whether it matters.
    figures = all(isinstance(one["value"], (int, float)) and not isinstance(one["value"], bool) for one in (old, new))
    return None if figures and old["unit"] == new["unit"] and new["unit"] != "count" else "changed" if old["value"] != new["value"] else None


def _ratio(old: Any, new: Any, unit: str) -> float | None:
    """New beside old where more is better, old beside new where less is; None where there is no better, or no figure."""
    way = BETTER.get(unit, 0)
    if not way or any(isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0 for value in (old, new)):
        return None
    return float(new / old if way > 0 else old / new)


def _order(change: Change) -> tuple[int, float, str, str]:
    rank = {"verdict": 0 if change.worse else 2, "slower": 1, "faster": 3, "changed": 4}[change.kind]
    by = change.ratio if change.ratio is not None and change.kind != "faster" else -(change.ratio or 0.0)
    return rank, by, change.host, change.check
