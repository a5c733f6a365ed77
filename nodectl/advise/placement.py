"""Which place for which phase, under what the workload demands, and what a demand costs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodectl.advise.figure import Figure
from nodectl.advise.model import Places
from nodectl.advise.storage import Place, batch_seconds, load_seconds, save_seconds
from nodectl.advise.workload import Workload


@dataclass(frozen=True)
class Choice:
    """``order`` are all places with their seconds, fastest first; ``why`` says what the demand costs beside the fastest of all."""

    phase: str
    place: Place
    order: tuple[tuple[str, Figure], ...]
    why: str


def place(work: Workload, candidates: Sequence[Place]) -> list[Choice]:
    """For batches, model load, checkpoints and final weights. Raises ValueError where no place meets the demands."""
    fit = [one for one in candidates if work.capacity is None or one.capacity is None or one.capacity.value >= work.capacity.value]
    kept = [one for one in fit if one.durable or not work.durable]
    if not fit or not kept:
        raise ValueError("no storage meets the demands of the workload: " + ("none is durable" if fit else "none is large enough"))

    def reads(one: Place) -> Figure:
        return batch_seconds(work, one) or load_seconds(work, one)

    def loads(one: Place) -> Figure:
        return load_seconds(work, one)

    def saves(one: Place) -> Figure:
        return save_seconds(work, one)

    known = all(batch_seconds(work, one) is not None for one in fit)
    choices = [_choose("batch reads", fit, fit, reads, "" if known else "the workload names no sample size: ")]
    if work.same_place:
        both, why = min(kept, key=lambda one: _both(work, one)), "model and checkpoints in one place: "
        choices += [_fixed("model load", both, fit, loads, why), _fixed("checkpoints", both, fit, saves, why)]
    else:
        choices += [_choose("model load", kept, fit, loads, ""), _choose("checkpoints", kept, fit, saves, "")]
    durable = [one for one in fit if one.durable] or fit
    return [*choices, _choose("final weights", durable, fit, saves, "they outlive the nodes: ")]


def places_of(choices: Sequence[Choice]) -> Places:
    found = {choice.phase: choice.place for choice in choices}
    return Places(found["batch reads"], found["model load"], found["checkpoints"])


def _both(work: Workload, one: Place) -> float:
    return load_seconds(work, one).value + save_seconds(work, one).value * max(1, work.steps // work.interval)


def _choose(phase: str, allowed: Sequence[Place], everywhere: Sequence[Place], seconds: Callable[[Place], Figure], why: str) -> Choice:
    return _fixed(phase, min(allowed, key=lambda one: seconds(one).value), everywhere, seconds, why)


def _fixed(phase: str, chosen: Place, everywhere: Sequence[Place], seconds: Callable[[Place], Figure], why: str) -> Choice:
    order = sorted(((one.name, seconds(one)) for one in everywhere), key=lambda item: item[1].value)
    best, mine = order[0], seconds(chosen)
    more = mine.value - best[1].value
    text = "the fastest" if best[0] == chosen.name or more <= 0 else f"the demand costs {more:.3g} s each time beside {best[0]} ({best[1].value:.3g} s)"
    return Choice(phase, chosen, tuple(order), why + text)
