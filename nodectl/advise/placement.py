"""Which place for which phase, under what the workload demands, and what a demand costs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nodectl.advise.figure import Figure
from nodectl.advise.model import Places
from nodectl.advise.storage import Place, batch_seconds, load_seconds, missing_room, save_seconds
from nodectl.advise.workload import Workload

PHASES = ("batch reads", "model load", "checkpoints", "final weights")
WRITTEN = PHASES[2:]
Seconds = Callable[[Place], Figure]
# Places with room for each phase.
Fit = Mapping[str, Sequence[Place]]


@dataclass(frozen=True)
class Choice:
    """``order`` are all places with their seconds, fastest first; ``why`` says what the demand costs beside the fastest of all."""

    phase: str
    place: Place
    order: tuple[tuple[str, Figure], ...]
    why: str


def place(work: Workload, candidates: Sequence[Place]) -> list[Choice]:
    """For batches, model load, checkpoints and final weights. Raises ValueError where no place meets the demands."""
    fit = {phase: [one for one in candidates if not missing_room(work, one, phase) and not (one.reads_only and phase in WRITTEN)] for phase in PHASES}
    kept = {phase: [one for one in fit[phase] if one.durable or not work.durable] for phase in ("model load", "checkpoints")}
    for phase in PHASES:
        if not kept.get(phase, fit[phase]):
            why = "none is durable" if fit[phase] else f"none is large enough for {phase}"
            raise ValueError(f"no storage meets the demands of the workload: {why}")

    def reads(one: Place) -> Figure:
        return batch_seconds(work, one) or load_seconds(work, one)

    def loads(one: Place) -> Figure:
        return load_seconds(work, one)

    def saves(one: Place) -> Figure:
        return save_seconds(work, one)

    known = all(batch_seconds(work, one) is not None for one in fit["batch reads"])
    choices = [_choose("batch reads", fit["batch reads"], fit, reads, "" if known else "the workload names no sample size: ")]
    if work.same_place:
        choices += _together(work, kept, fit, loads, saves)
    else:
        choices += [_choose("model load", kept["model load"], fit, loads, ""), _choose("checkpoints", kept["checkpoints"], fit, saves, "")]
    durable = [one for one in fit["final weights"] if one.durable] or fit["final weights"]
    return [*choices, _choose("final weights", durable, fit, saves, "they outlive the nodes: ")]


def _together(work: Workload, kept: Fit, fit: Fit, loads: Seconds, saves: Seconds) -> list[Choice]:
    shared = [one for one in kept["model load"] if one in kept["checkpoints"]]
    if not shared:
        raise ValueError("no storage meets the demands of the workload: none is large enough for model and checkpoints")
    both, why = min(shared, key=lambda one: _both(work, one)), "model and checkpoints in one place: "
    return [_fixed("model load", both, fit, loads, why), _fixed("checkpoints", both, fit, saves, why)]


def too_small(work: Workload, candidates: Sequence[Place]) -> list[str]:
    """What capacity rules out, in words."""
    return [why for one in candidates for phase in PHASES if (why := missing_room(work, one, phase))]


def places_of(choices: Sequence[Choice]) -> Places:
    found = {choice.phase: choice.place for choice in choices}
    return Places(found["batch reads"], found["model load"], found["checkpoints"])


def _both(work: Workload, one: Place) -> float:
    return load_seconds(work, one).value + save_seconds(work, one).value * max(1, work.steps // work.interval)


def _choose(phase: str, allowed: Sequence[Place], everywhere: Fit, seconds: Seconds, why: str) -> Choice:
    return _fixed(phase, min(allowed, key=lambda one: seconds(one).value), everywhere, seconds, why)


def _fixed(phase: str, chosen: Place, everywhere: Fit, seconds: Seconds, why: str) -> Choice:
    order = sorted(((one.name, seconds(one)) for one in everywhere[phase]), key=lambda item: item[1].value)
    best, mine = order[0], seconds(chosen)
    more = mine.value - best[1].value
    text = "the fastest" if best[0] == chosen.name or more <= 0 else f"the demand costs {more:.3g} s each time beside {best[0]} ({best[1].value:.3g} s)"
    return Choice(phase, chosen, tuple(order), why + text)
