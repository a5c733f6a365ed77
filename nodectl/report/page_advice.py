"""What a training run would cost on the nodes of this run: the last section of its page, as plain HTML that reads without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodectl.advise.advice import Advice
from nodectl.advise.figure import Figure
from nodectl.advise.model import Estimate, bottleneck
from nodectl.advise.text import Told, amount, answers, shown, source, terms, title, told
from nodectl.report.page_table import safe, table

_IF = ("With", "A step", "The run", "GPUs wait", "Cost")
_TITLE = '<h2 id="advice-title">Where the time goes</h2>'


def advice_html(advice: Advice) -> str:
    found = advice.found
    parts = (
        f"<p>{safe(title(found))}</p><p><strong>{safe(_sentence(found))}</strong></p>", _list(advice.notes), _terms(found), _sent(found),
        table("What another network would change", _IF, map(_if, advice.networks)),
        table("What another storage would change, with everything in it", _IF, map(_if, advice.storage)), _places(advice), _narrow(advice), _explained(advice),
    )
    return f'<section id="advice" aria-labelledby="advice-title">{_TITLE}{"".join(parts)}</section>'


def _sentence(found: Estimate) -> str:
    cost = f" It costs {shown(found.cost)}." if found.cost else ""
    run = f"a run of {found.work.steps} steps takes {shown(found.run)}, and GPUs wait {shown(found.idle)} of it"
    return f"A step takes {shown(found.step)}; {run}. The bottleneck is {bottleneck(found)}.{cost}"


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{safe(text)}</li>' for text in texts)}</ul>" if texts else ""


def _terms(found: Estimate) -> str:
    rows = [(name, shown(step), shown(run), f"{_share(run, found.run):.0%}", f"{what}: {step.how}") for name, step, run, what in terms(found)]
    rows.append(("T", shown(found.step), shown(found.run), "100%", f"the sum; the run with {shown(found.load)} to load the model"))
    return table("T = T_gpu + T_net + T_io", ("Term", "A step", "The run", "Of the run", "What it is"), rows)


def _share(part: Figure, whole: Figure) -> float:
    return part.value / whole.value if whole.value else 0.0


def _sent(found: Estimate) -> str:
    rows = [(one.name, shown(one), one.how) for one in found.sent]
    return table("What a step sends, before anything runs beside it", ("Collective", "Takes", "Formula"), rows) if rows else ""


def _if(row: tuple[str, Estimate]) -> tuple[str, ...]:
    name, found = row
    cost = amount(found.cost.value, found.cost.unit) if found.cost else "the workload names no price"
    return name, amount(found.step.value, "s"), amount(found.run.value, "s"), amount(found.idle.value, "1"), cost


def _places(advice: Advice) -> str:
    rows = [(one.phase, one.place.name, one.why, ", ".join(f"{name} {amount(took.value, 's')}" for name, took in one.order)) for one in advice.choices]
    return table("Where to keep what", ("Phase", "Place", "Why", "Every place, the fastest first"), rows)


def _narrow(advice: Advice) -> str:
    texts = [f"{one.name}: {shown(one)}; {one.how}" for one in advice.narrow]
    return f"<h3>What would narrow the range: measure it, or say it in the workload</h3>{_list(texts)}" if texts else ""


def _explained(advice: Advice) -> str:
    seen: set[Told] = set()
    parts = ((what, "".join(item for figure in figures for item in _figure(figure, seen))) for what, figures in answers(advice))
    lists = "".join(f"<h3>{safe(what)}</h3><ul>{items}</ul>" for what, items in parts)
    return f"<details><summary>Every figure, down to a measurement, the workload or a named assumption</summary>{lists}</details>"


def _figure(figure: Figure, seen: set[Told]) -> Iterator[str]:
    """A list in a list; what was told above is not told again."""
    again = told(figure) in seen and bool(figure.inputs)
    seen.add(told(figure))
    yield f'<li>{safe(f"{figure.name}: {shown(figure)}")} <span class="quiet">{safe(source(figure))}{" (as above)" if again else ""}</span>'
    if figure.inputs and not again:
        yield from ("<ul>", *(item for part in figure.inputs for item in _figure(part, seen)), "</ul>")
    yield "</li>"
