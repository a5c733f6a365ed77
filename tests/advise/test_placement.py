"""Where to keep what: the study's measured order of tiers, and what each demand costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.time_model import PHASES
from nodectl.advise.placement import Choice, place, places_of, too_small
from nodectl.advise.storage import Place, save_seconds
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


ROOMS: list[tuple[str, dict[str, Any], dict[str, float], list[str]]] = [
    # what the workload says, free bytes of (a disk of the node, a shared place), who is left out of what
    ("room for all", {}, {"disk": 1e12, "shared": 1e12}, []),
    ("not known", {"dataset_size": exact("dataset", 1e15, "B")}, {}, []),
    ("a share fits, not the model", {}, {"disk": 80e9, "shared": 1e12}, []),
    ("the share does not", {}, {"disk": 70e9, "shared": 1e12}, ["disk has no room for checkpoints: 79.3 GB (bytes of a checkpoint on a node), 70 GB free"]),
    ("the dataset does not", {"dataset_size": exact("dataset", 2e12, "B")}, {"disk": 1e12}, ["disk has no room for batch reads: 2 TB (dataset), 1 TB free"]),
    ("a shared place takes the whole", {}, {"shared": 158e9}, ["shared has no room for checkpoints: 158.6 GB (bytes of a checkpoint), 158 GB free"]),
]


@pytest.mark.parametrize(("changes", "free", "words"), [case[1:] for case in ROOMS], ids=[case[0] for case in ROOMS])
def test_what_is_free_rules_places_out_phase_by_phase(changes: dict[str, Any], free: dict[str, float], words: list[str]) -> None:
    work = shipped("12b", durable=False, **changes)
    rooms = {name: exact("free", size, "B") for name, size in free.items()}
    candidates = [disk("disk", durable=False, capacity=rooms.get("disk")), disk("shared", write=1e6, read=1e6, capacity=rooms.get("shared")), disk("far", write=1e5, read=1e5)]
    assert too_small(work, candidates) == words
    ruled_out = {(line.split()[0], line.partition(" for ")[2].partition(":")[0]) for line in words}
    for choice in place(work, candidates):
        assert {(one.name, choice.phase) for one in candidates} - {(name, choice.phase) for name, _ in choice.order} == {one for one in ruled_out if one[1] == choice.phase}


def test_a_copy_is_read_and_nothing_is_kept_there() -> None:
    found = choices(shipped("12b", durable=False), disk("/data (a copy on /scratch)", durable=False, reads_only=True), disk("scratch", durable=False))
    assert {phase: choice.place.name for phase, choice in found.items()} == {
        "batch reads": "/data (a copy on /scratch)", "model load": "/data (a copy on /scratch)", "checkpoints": "scratch", "final weights": "scratch",
    }


@pytest.mark.parametrize(("cache", "seconds"), [(None, 79.3), (80e9, 79.3), (79.3e9, 79.3), (39.3e9, 39.3 + 400), (1.0, 793.0)])
def test_a_checkpoint_above_the_cache_waits_for_the_store(cache: float | None, seconds: float) -> None:
    """12b: 79.3 GB of each node, acknowledged at 1 GB/s, taken by the store at 100 MB/s."""
    room = None if cache is None else exact("cache", cache, "B")
    for work, where in ((shipped("12b"), disk(safe=exact("safe", 1e8, "B/s"), cache=room)), (shipped("12b", cache=room), disk(safe=exact("safe", 1e8, "B/s")))):
        assert save_seconds(work, where).value == pytest.approx(seconds)


def test_capacity_takes_small_places_out() -> None:
    work = shipped("12b", capacity=exact("asked", 2e12, "B"))
    found = choices(work, disk("small", write=9e9, capacity=exact("has", 1e12, "B")), disk("large", capacity=exact("has", 3e12, "B")), disk("unknown", write=1e6))
    assert found["checkpoints"].place.name == "large"
    assert [name for name, _ in found["checkpoints"].order] == ["large", "unknown"]
