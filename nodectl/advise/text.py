"""An advice for a person, and for a program. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from nodectl.advise.advice import Advice
from nodectl.advise.figure import Figure
from nodectl.advise.model import Estimate, bottleneck
from nodectl.verify.judging.units import human

_UNITS = {"B": "B", "B/s": "B/s"}


def shown(figure: Figure) -> str:
    """The value with its unit, and its range where it has one."""
    value, low, high = (amount(end, figure.unit) for end in (figure.value, figure.low, figure.high))
    return value if low == high else f"{value} ({low} to {high})"


def amount(value: float, unit: str) -> str:
    if unit == "s":
        return _time(value)
    if unit == "1":
        return f"{value:.0%}"
    if unit == "money":
        return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    if unit in ("FLOP", "FLOP/s"):
        return f"{value / 1e12:.4g} T{unit}"
    if unit == "B/s":
        return human(value, "B/s").partition(" (")[0]
    if unit == "money/s":
        return f"{value * 3600:,.2f} an hour"
    return human(value, _UNITS.get(unit, "count")) if unit in ("B", "count") else f"{value:.4g} {unit}"


def _time(value: float) -> str:
    if value >= 7200:
        return f"{value / 3600:.1f} h"
    if value >= 300:
        return f"{value / 60:.1f} min"
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def lines(advice: Advice) -> list[str]:
    found = advice.found
    return [
        title(found), *(f"note: {note}" for note in advice.notes), "", *_step(found), "", *_run(found), "", *_what_if("network", advice.networks), "",
        *_what_if("storage (all of it in one place)", advice.storage), "", *_placement(advice), "", *_narrow(advice),
    ]


def title(found: Estimate) -> str:
    """The workload and its layout in one line."""
    work, layout = found.work, found.work.layout
    degrees = (("tensor", layout.tensor), ("pipeline", layout.pipeline), ("expert", layout.expert))
    split = "".join(f", {name} {degree}" for name, degree in degrees if degree > 1)
    return f"{work.name}: {layout.nodes} nodes with {layout.gpus} x {work.gpu}, {work.data}{split}"


def terms(found: Estimate) -> list[tuple[str, Figure, Figure, str]]:
    """(name, of a step, of the run, what it is in words)."""
    waiting = f"waiting for the network ({found.network.name})"
    return [
        ("T_gpu", found.gpu, found.run_gpu, "compute"), ("T_net", found.net, found.run_net, waiting), ("T_io", found.io, found.run_io, "waiting for storage"),
    ]


def _step(found: Estimate) -> Iterator[str]:
    yield f"a step takes {shown(found.step)}"
    for term, figure, _, what in terms(found):
        yield f"  {term}  {shown(figure):<34} {what}"
    for one in found.sent:
        yield f"         {shown(one):<34} {one.name}, before overlap"


def _run(found: Estimate) -> Iterator[str]:
    yield f"a run of {found.work.steps} steps takes {shown(found.run)}; GPUs wait {shown(found.idle)} of it"
    yield f"  T_gpu {shown(found.run_gpu)}, T_net {shown(found.run_net)}, T_io {shown(found.run_io)}, of which {shown(found.load)} to load the model"
    yield f"  bottleneck: {bottleneck(found)}"
    if found.cost is not None:
        yield f"  cost: {shown(found.cost)}"


def _what_if(title: str, rows: Sequence[tuple[str, Estimate]]) -> Iterator[str]:
    yield f"{'what if: ' + title:<44}{'step':>12}{'run':>12}{'idle':>8}{'cost':>12}"
    for name, found in rows:
        cost = amount(found.cost.value, "money") if found.cost else "-"
        yield f"  {name:<42}{_time(found.step.value):>12}{_time(found.run.value):>12}{found.idle.value:>8.0%}{cost:>12}"


def _placement(advice: Advice) -> Iterator[str]:
    yield "where to keep what"
    for choice in advice.choices:
        others = ", ".join(f"{name} {_time(figure.value)}" for name, figure in choice.order)
        yield f"  {choice.phase:<14} {choice.place.name}: {choice.why}"
        yield f"                 {others}"


def _narrow(advice: Advice) -> Iterator[str]:
    if advice.narrow:
        yield "what would narrow it (measure it, or say it in the workload)"
        for one in advice.narrow:
            yield f"  {one.name}: {shown(one)}; {one.how}"


def explained(advice: Advice) -> list[str]:
    """Each figure of the answer down to what it rests on."""
    rows, seen = [], set[Told]()
    for what, figures in answers(advice):
        rows.append(what)
        for figure in figures:
            rows += tree(figure, 1, seen)
        rows.append("")
    return rows


def answers(advice: Advice) -> list[tuple[str, list[Figure]]]:
    """(of what, the figures in which all others end): all that the answer says."""
    placed = [took for choice in advice.choices for _, took in choice.order]
    what_if = [(f"with {name}", _ends(found)) for name, found in (*advice.networks, *advice.storage)]
    return [(title(advice.found), _ends(advice.found)), ("where to keep what", placed), *what_if]


def _ends(found: Estimate) -> list[Figure]:
    return [found.step, found.run, found.idle, *([found.cost] if found.cost else [])]


# A figure that was told: several estimates share it, each with an object of its own.
Told = tuple[str, str, float]


def told(figure: Figure) -> Told:
    return figure.name, figure.how, figure.value


def source(figure: Figure) -> str:
    """Whether it was measured, is said in the workload, is assumed, or by which formula it follows."""
    return {"measured": "", "workload": "workload, ", "assumed": "assumed: ", "computed": "= "}[figure.kind] + figure.how


def tree(figure: Figure, depth: int, seen: set[Told]) -> Iterator[str]:
    """The figure and what it is computed from; what is in ``seen`` is not told again."""
    again = told(figure) in seen and bool(figure.inputs)
    seen.add(told(figure))
    yield f"{'  ' * depth}{figure.name}: {shown(figure)}  [{source(figure)}]" + (" (as above)" if again else "")
    if not again:
        for part in figure.inputs:
            yield from tree(part, depth + 1, seen)


def as_json(advice: Advice) -> str:
    found = advice.found
    data: dict[str, Any] = {
        "workload": found.work.name, "network": found.network.name, "notes": list(advice.notes), "bottleneck": bottleneck(found),
        "step": {key: _figure(figure) for key, figure in (("total", found.step), ("gpu", found.gpu), ("net", found.net), ("io", found.io))},
        "run": {
            key: _figure(figure) for key, figure in (
                ("total", found.run), ("gpu", found.run_gpu), ("net", found.run_net), ("io", found.run_io), ("model_load", found.load), ("idle", found.idle),
                *((("cost", found.cost),) if found.cost else ()),
            )
        },
        "collectives": [_figure(one) for one in found.sent],
        "what_if": {
            kind: [{"name": name, **_row(one)} for name, one in rows]
            for kind, rows in (("network", advice.networks), ("storage", advice.storage))
        },
        "placement": [
            {"phase": one.phase, "place": one.place.name, "why": one.why, "order": [[name, figure.value] for name, figure in one.order]}
            for one in advice.choices
        ],
        "rests_on": [{**_figure(leaf), "kind": leaf.kind} for leaf in found.run.leaves()],
    }
    return json.dumps(data, indent=2) + "\n"


def _row(found: Estimate) -> dict[str, Any]:
    cost = _figure(found.cost) if found.cost else None
    return {"step": _figure(found.step), "run": _figure(found.run), "idle": _figure(found.idle), "cost": cost}


def _figure(figure: Figure) -> dict[str, Any]:
    return {"name": figure.name, "value": figure.value, "low": figure.low, "high": figure.high, "unit": figure.unit, "how": figure.how}
