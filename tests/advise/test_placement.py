"""Where to keep what: the study's measured order of tiers, and what each demand costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.time_model import PHASES
from nodectl.advise.placement import Choice, place, places_of
from nodectl.advise.storage import Place
from nodectl.advise.workload import Workload
from tests.advise.jobs import disk, exact, shipped


def measured(name: str) -> Place:
    """A tier with the phases that the study measured on it."""
    batch, load, save = PHASES[name]
    phases = (("batch_read", exact("100 samples", batch, "s")), ("model_load", exact("load", load, "s")), ("checkpoint", exact("save", save, "s")))
    return disk(name, durable=name != "local NVMe", phases=phases)


STUDY = [measured(name) for name in PHASES]
NVME, SHARED, MOUNT, CACHED = PHASES


def choices(work: Workload, *places: Place) -> dict[str, Choice]:
    return {choice.phase: choice for choice in place(work, places or STUDY)}


@pytest.mark.parametrize(("phase", "order"), [
    ("batch reads", [NVME, SHARED, CACHED, MOUNT]), ("model load", [NVME, SHARED, MOUNT, CACHED]), ("checkpoints", [NVME, CACHED, SHARED, MOUNT]),
])
def test_the_order_is_the_measured_one(phase: str, order: list[str]) -> None:
    assert [name for name, _ in choices(shipped("12b"))[phase].order] == order


def test_durable_checkpoints_cost_what_they_cost() -> None:
    found = choices(shipped("12b"))
    assert {phase: choice.place.name for phase, choice in found.items()} == {
        "batch reads": NVME, "model load": SHARED, "checkpoints": CACHED, "final weights": CACHED,
    }
    assert found["checkpoints"].why == "the demand costs 34 s each time beside local NVMe (178 s)"
    assert found["batch reads"].why == "the fastest"
    assert places_of(list(found.values())).checkpoints.name == CACHED


def test_without_the_demand_the_fastest_is_taken() -> None:
    found = choices(shipped("12b", durable=False))
    assert found["checkpoints"].place.name == found["model load"].place.name == NVME
    assert found["final weights"].place.name == CACHED


def test_model_and_checkpoints_together() -> None:
    found = choices(shipped("12b", same_place=True))
    assert found["model load"].place.name == found["checkpoints"].place.name == CACHED
    assert "in one place" in found["model load"].why
    many = choices(replace(shipped("12b", same_place=True), interval=8))
    assert many["model load"].place.name == CACHED


def test_demands_that_nothing_meets_are_an_error() -> None:
    with pytest.raises(ValueError, match="none is durable"):
        choices(shipped("12b"), disk(durable=False))
    with pytest.raises(ValueError, match="none is large enough"):
        choices(shipped("12b", capacity=exact("asked", 2e12, "B")), disk(capacity=exact("has", 1e12, "B")))


def test_capacity_takes_small_places_out() -> None:
    work = shipped("12b", capacity=exact("asked", 2e12, "B"))
    found = choices(work, disk("small", write=9e9, capacity=exact("has", 1e12, "B")), disk("large", capacity=exact("has", 3e12, "B")), disk("unknown", write=1e6))
    assert found["checkpoints"].place.name == "large"
    assert [name for name, _ in found["checkpoints"].order] == ["large", "unknown"]
