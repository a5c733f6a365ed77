"""T = T_gpu + T_net + T_io: what a step and a run cost. Pure.

T_net and T_io are what the GPUs wait for, beyond what runs beside the compute: the terms sum to the total.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodectl.advise.assumptions import GPUS, assume
from nodectl.advise.figure import Figure, derive, number, over, times, total
from nodectl.advise.network import Network, seconds
from nodectl.advise.storage import Place, batch_seconds, load_seconds, save_seconds
from nodectl.advise.volumes import bubble, transfers
from nodectl.advise.workload import Workload


@dataclass(frozen=True)
class Places:
    """Where each phase keeps its files."""

    batches: Place
    model: Place
    checkpoints: Place


@dataclass(frozen=True)
class Estimate:
    """Per step: ``gpu`` + ``net`` + ``io`` = ``step``. ``sent`` are the collectives in full, ``reading`` and ``saving`` the parts of io.

    Per run: ``run_gpu`` + ``run_net`` + ``run_io`` = ``run``; ``load`` is in run_io alone. ``idle`` is the share of the run in which GPUs wait.
    """

    work: Workload
    network: Network
    places: Places
    gpu: Figure
    net: Figure
    io: Figure
    step: Figure
    sent: tuple[Figure, ...]
    sending: Figure
    reading: Figure
    saving: Figure
    load: Figure
    run_gpu: Figure
    run_net: Figure
    run_io: Figure
    run: Figure
    idle: Figure
    cost: Figure | None


def estimate(work: Workload, network: Network, places: Places) -> Estimate:
    gpu = compute(work)
    sent = tuple(seconds(one, network) for one in transfers(work))
    sending = total("all collectives of a step", sent) if sent else Figure("all collectives of a step", 0.0, "s", "one GPU: nobody to talk to", "workload")
    net = exposed("T_net", sending, gpu, work.overlap)
    reading, saving = _reading(work, places.batches, gpu, net), _saving(work, places.checkpoints, gpu, net)
    io = total("T_io", [reading, saving])
    step = total("step", [gpu, net, io])
    steps, load = number("steps", float(work.steps)), load_seconds(work, places.model)
    run_gpu, run_net = times("run: T_gpu", gpu, steps), times("run: T_net", net, steps)
    run_io = total("run: T_io", [times("reading and saving", io, steps), load])
    run = total("run", [run_gpu, run_net, run_io])
    return Estimate(
        work, network, places, gpu, net, io, step, sent, sending, reading, saving, load, run_gpu, run_net, run_io, run, idle(run_gpu, [run_net, run_io]),
        _cost(work, run),
    )


def compute(work: Workload) -> Figure:
    """Measured, or FLOP over what the GPUs reach; a pipeline's bubble on top."""
    if work.seconds is not None:
        return Figure("T_gpu", work.seconds.value, "s", work.seconds.name, "computed", (work.seconds,), work.seconds.low, work.seconds.high)
    flops = work.flops or _flops(work)
    rate = work.rate or times("FLOP/s that a GPU reaches", _peak(work), assume("compute_efficiency"))
    all_gpus = times("FLOP/s of all GPUs", rate, number("GPUs", float(work.layout.ranks)))
    waste = number("1 / (1 - bubble)", 1 / (1 - bubble(work.layout, work.micro_batches)), "1", "bubble = (stages - 1) / (micro batches + stages - 1)")
    return times("T_gpu", over("compute of a step", flops, all_gpus), waste)


def _peak(work: Workload) -> Figure:
    return Figure(f"dense bf16 peak of {work.gpu}", GPUS[work.gpu][1], "FLOP/s", "data sheet", "assumed")


def _flops(work: Workload) -> Figure:
    """6 for each parameter and token: 2 forward and 4 backward; 8 where backward computes the activations anew."""
    why = "2 forward, 4 backward, 2 where activations are computed anew"
    each = Figure("FLOP per parameter and token", 8.0 if work.recompute else 6.0, "FLOP", why, "assumed")
    how = "FLOP per parameter and token * parameters used for a token * tokens per step"
    return derive("FLOP of a step", "FLOP", how, lambda a, b, c: a * b * c, [each, work.active, work.tokens])


def exposed(name: str, waiting: Figure, beside: Figure, share: Figure) -> Figure:
    """What is left of ``waiting`` when ``share`` of ``beside`` runs at the same time."""
    how = f"{waiting.name} - {share.name} * the shorter of it and {beside.name}"
    return derive(name, waiting.unit, how, lambda wait, run, part: wait - part * min(run, wait), [waiting], [beside, share])


def _reading(work: Workload, place: Place, gpu: Figure, net: Figure) -> Figure:
    whole = batch_seconds(work, place)
    if whole is None:
        return Figure("reading", 0.0, "s", "the workload does not say how large a sample is: not counted", "workload")
    how = f"{whole.name} - read_ahead * the shorter of it and (T_gpu + T_net)"

    def left(wait: float, compute: float, send: float, part: float) -> float:
        return wait - part * min(compute + send, wait)

    return derive("reading", "s", how, left, [whole], [gpu, net, work.read_ahead])


def _saving(work: Workload, place: Place, gpu: Figure, net: Figure) -> Figure:
    """Of one step. In the background the step waits for the copy to memory, and for a save that is not done when the next begins."""
    saves = number("saves in a run / steps", (work.steps // work.interval) / work.steps, "1", "steps // interval / steps")
    whole = save_seconds(work, place)
    if work.blocking:
        return times("saving", whole, saves)
    between = number("steps between saves", float(work.interval))

    def left(save: float, copy: float, share: float, steps: float, compute: float, send: float) -> float:
        return share * (copy + max(0.0, save - steps * (compute + send)))

    how = f"saves / steps * (snapshot + what of {whole.name} is left when the next begins)"
    return derive("saving", "s", how, left, [whole, assume("snapshot"), saves], [between, gpu, net])


def idle(busy: Figure, waiting: list[Figure]) -> Figure:
    """Share of the time in which GPUs wait."""
    wait = total("waiting", waiting)
    return derive("idle share", "1", "(T_net + T_io) / (T_gpu + T_net + T_io)", lambda lost, run: lost / (lost + run) if lost + run else 0.0, [wait], [busy])


def _cost(work: Workload, run: Figure) -> Figure | None:
    if work.price is None:
        return None
    return times("cost", times("price of all nodes", work.price, number("nodes", float(work.layout.nodes))), run)


def bottleneck(found: Estimate) -> str:
    """The largest part of the run, by name."""
    steps = found.work.steps
    parts = {
        "GPU compute": found.run_gpu.value, f"storage: loading the model ({found.places.model.name})": found.load.value,
        f"storage: reading batches ({found.places.batches.name})": found.reading.value * steps,
        f"storage: saving checkpoints ({found.places.checkpoints.name})": found.saving.value * steps,
        f"network: {max(found.sent, key=lambda one: one.value).name if found.sent else 'none'} ({found.network.name})": found.run_net.value,
    }
    return max(parts, key=lambda name: parts[name])
