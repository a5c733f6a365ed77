"""A place to keep files, and how long a training run waits for it. Pure.

Rates are those of one node; all nodes work at once, and a shared store's own limit is a rate of all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodectl.advise.figure import Figure, derive, number, over
from nodectl.advise.workload import Workload
from nodectl.verify.judging.units import human


@dataclass(frozen=True)
class Place:
    """``read``, ``load`` and ``write`` in B/s of a node; ``safe`` is the rate until a checkpoint outlives the node (B/s), None where it never does.

    ``capacity`` is what is free there, of each node where it does not outlive the node. ``cache`` is what it takes at ``write`` before its store has it.
    ``reads_only``: nothing new is kept there. ``files`` are samples opened and read per second, where they are what is slow. ``seconds``
    holds whole phases that were measured for this very model ("batch_read" per 100 samples, "model_load", "checkpoint"): they count before any rate.
    """

    name: str
    read: Figure
    load: Figure
    write: Figure
    durable: bool
    safe: Figure | None = None
    files: Figure | None = None
    capacity: Figure | None = None
    cache: Figure | None = None
    reads_only: bool = False
    phases: tuple[tuple[str, Figure], ...] = ()

    def phase(self, name: str) -> Figure | None:
        return dict(self.phases).get(name)


def batch_seconds(work: Workload, place: Place) -> Figure | None:
    """To read a step's samples, each node its own share. None where the workload does not say how large a sample is."""
    hundred = place.phase("batch_read")
    if hundred is not None:
        share = number("samples per step / 100", work.samples.value / 100)
        return derive(f"reading a batch from {place.name}", "s", f"{hundred.name} * {share.name}", lambda a, b: a * b, [hundred, share])
    if work.sample_size is None:
        return None
    mine = over("samples of a node", work.samples, number("nodes", float(work.layout.nodes)))

    def seconds(count: float, size: float, rate: float, files: float = float("inf")) -> float:
        return max(count * size / rate, count / files)

    falling = [place.read] if place.files is None or not work.random else [place.read, place.files]
    how = "samples of a node * bytes of a sample / read rate" + ("" if len(falling) == 1 else ", or samples / files per second, whichever is longer")
    return derive(f"reading a batch from {place.name}", "s", how, seconds, [mine, work.sample_size], falling)


def load_seconds(work: Workload, place: Place) -> Figure:
    """Each node reads the weights of its pipeline stage once; all of them without a pipeline."""
    known = place.phase("model_load")
    if known is not None:
        return known
    mine = _stage(work)
    how = f"{mine.name} / load rate of a node ({place.name}) + building the model"
    return derive(f"loading the model from {place.name}", "s", how, _transfer, [mine, work.load_overhead], [place.load])


def _stage(work: Workload) -> Figure:
    return over("bytes of the model that a node reads", work.model_size, number("stages", float(work.layout.pipeline)))


def save_seconds(work: Workload, place: Place) -> Figure:
    """The trainer waits until each node has written its share of the shards."""
    known = place.phase("checkpoint")
    if known is not None:
        return known
    name, cache = f"saving a checkpoint to {place.name}", place.cache or work.cache
    if cache is None or place.safe is None:
        return _saved(name, work, f"write rate of a node ({place.name})", place.write)
    return _cached(name, work, place.write, place.safe, cache)


def _cached(name: str, work: Workload, write: Figure, safe: Figure, cache: Figure) -> Figure:
    """What does not fit into the cache waits until the store has taken as much."""
    share = _share(work)

    def seconds(size: float, overhead: float, fast: float, slow: float, room: float) -> float:
        return min(size, room) / fast + max(0.0, size - room) / min(fast, slow) + overhead

    how = "bytes of a checkpoint / nodes / write rate of a node, what is above its cache at the rate of its store, + gathering and serialising"
    return derive(name, "s", how, seconds, [share, work.save_overhead], [write, safe, cache])


def _share(work: Workload) -> Figure:
    return over("bytes of a checkpoint on a node", work.checkpoint_size, number("nodes", float(work.layout.nodes)))


def safe_seconds(work: Workload, place: Place) -> Figure | None:
    """Until a checkpoint would outlive the node; None where it never does."""
    if not place.durable:
        return None
    if place.safe is None:
        return save_seconds(work, place)
    return _saved(f"until a checkpoint is safe in {place.name}", work, f"rate until the store has it ({place.name})", place.safe)


def _saved(name: str, work: Workload, what: str, rate: Figure) -> Figure:
    """Each node's share of a checkpoint at ``rate``, which ``what`` names."""
    share = _share(work)
    how = f"bytes of a checkpoint / nodes / {what} + gathering and serialising"
    return derive(name, "s", how, _transfer, [share, work.save_overhead], [rate])


def _transfer(size: float, overhead: float, rate: float) -> float:
    return size / rate + overhead


def needed(work: Workload, place: Place) -> dict[str, Figure | None]:
    """What each phase keeps in the place (B), None where the workload does not say; a place of one node keeps that node's share."""
    local = not place.durable
    return {
        "batch reads": work.dataset_size, "model load": _stage(work) if local else work.model_size,
        "checkpoints": _share(work) if local else work.checkpoint_size, "final weights": work.model_size,
    }


def missing_room(work: Workload, place: Place, phase: str) -> str:
    """ "" where the phase fits into what is free there, or where either is not known."""
    asked = [one for one in (needed(work, place)[phase], work.capacity) if one is not None]
    most = max(asked, key=lambda one: one.value, default=None)
    if most is None or place.capacity is None or most.value <= place.capacity.value:
        return ""
    return f"{place.name} has no room for {phase}: {human(most.value, 'B')} ({most.name}), {human(place.capacity.value, 'B')} free"
