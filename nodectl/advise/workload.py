"""A training job as the model sees it: what the workload file says, checked, with where each figure stands. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from nodectl.advise.figure import Figure
from nodectl.advise.layout import Layout


@dataclass(frozen=True)
class Workload:
    """``data`` is ddp, zero1, zero2 or fsdp (the same as zero3). Figures in base units; None where the file says nothing.

    ``seconds`` is the compute of a step where it was measured; else ``flops`` of a step (of all GPUs) or, without it, tokens and parameters say it.
    ``sample_size`` is what is read for one sample; ``random`` says that samples are files, or places, of their own.
    ``dataset_size`` is all of it. ``cache`` is what a place may hold that acknowledges before its store has the bytes, where that was not measured.
    ``durable`` wants checkpoints that outlive the node; ``same_place`` wants model and checkpoints in one place.
    """

    name: str
    gpu: str
    layout: Layout
    data: str
    reshard: bool
    micro_batches: int
    layers: int
    hidden: Figure
    parameters: Figure
    active: Figure
    weight_bytes: Figure
    gradient_bytes: Figure
    activation_bytes: Figure
    experts: int
    top_k: int
    expert_layers: int
    expert_parameters: Figure
    tokens: Figure
    samples: Figure
    recompute: bool
    seconds: Figure | None
    flops: Figure | None
    rate: Figure | None
    overlap: Figure
    sample_size: Figure | None
    dataset_size: Figure | None
    random: bool
    read_ahead: Figure
    checkpoint_size: Figure
    interval: int
    blocking: bool
    save_overhead: Figure
    model_size: Figure
    load_overhead: Figure
    steps: int
    price: Figure | None
    durable: bool
    same_place: bool
    capacity: Figure | None
    cache: Figure | None
