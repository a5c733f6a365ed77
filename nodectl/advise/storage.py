"""A place to keep files, and how long a training run waits for it. Pure.

Rates are those of one node; all nodes work at once, and a shared store's own limit is a rate of all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodectl.advise.figure import Figure, derive, number, over
from nodectl.advise.workload import Workload


@dataclass(frozen=True)
class Place:
    """``read``, ``load`` and ``write`` in B/s of a node; ``safe`` is the rate until a checkpoint outlives the node (B/s), None where it never does.

    ``files`` are samples opened and read per second, where they are what is slow. ``seconds`` holds whole phases that were measured
    for this very model ("batch_read" per 100 samples, "model_load", "checkpoint"): they count before any rate.
    """

    name: str
    read: Figure
    load: Figure
    write: Figure
    durable: bool
    safe: Figure | None = None
    files: Figure | None = None
    capacity: Figure | None = None
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
    mine = over("bytes of the model that a node reads", work.model_size, number("stages", float(work.layout.pipeline)))
    how = f"{mine.name} / load rate of a node ({place.name}) + building the model"
    return derive(f"loading the model from {place.name}", "s", how, _transfer, [mine, work.load_overhead], [place.load])


def save_seconds(work: Workload, place: Place) -> Figure:
    """The trainer waits until each node has written its share of the shards."""
    known = place.phase("checkpoint")
    return known if known is not None else _saved(f"saving a checkpoint to {place.name}", work, f"write rate of a node ({place.name})", place.write)


def safe_seconds(work: Workload, place: Place) -> Figure | None:
    """Until a checkpoint would outlive the node; None where it never does."""
    if not place.durable:
        return None
    if place.safe is None:
        return save_seconds(work, place)
    return _saved(f"until a checkpoint is safe in {place.name}", work, f"rate until the store has it ({place.name})", place.safe)


def _saved(name: str, work: Workload, what: str, rate: Figure) -> Figure:
    """Each node's share of a checkpoint at ``rate``, which ``what`` names."""
    share = over("bytes of a checkpoint on a node", work.checkpoint_size, number("nodes", float(work.layout.nodes)))
    how = f"bytes of a checkpoint / nodes / {what} + gathering and serialising"
    return derive(name, "s", how, _transfer, [share, work.save_overhead], [rate])


def _transfer(size: float, overhead: float, rate: float) -> float:
    return size / rate + overhead
