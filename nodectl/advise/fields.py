"""What a workload file may say, as data: sections, keys, their kinds, and what counts where nothing is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nodectl.advise.assumptions import GPUS


class Needed:
    """The default of what has to be said."""


NEEDED = Needed()


@dataclass(frozen=True)
class Field:
    """``kind``: count (whole, from 1), number, bytes, time, share (may be [low, high]), flop, flops (per second), word, text, yes, money.

    ``default`` None means that nothing is known then, a text starting with "=" names the assumption that counts.
    """

    kind: str
    default: Any = None
    words: tuple[str, ...] = ()


FIELDS: Mapping[str, Mapping[str, Field]] = MappingProxyType({
    "": {
        "name": Field("text", NEEDED), "steps": Field("count", NEEDED), "gpu": Field("word", NEEDED, tuple(GPUS)), "price_per_node_hour": Field("money"),
        "model": Field("section"), "parallelism": Field("section"), "batch": Field("section"), "compute": Field("section"), "dataset": Field("section"),
        "checkpoint": Field("section"), "model_load": Field("section"), "constraints": Field("section"),
    },
    "model": {
        "parameters": Field("number", NEEDED), "active_parameters": Field("number"), "layers": Field("count", NEEDED), "hidden": Field("count", NEEDED),
        "experts": Field("count"), "experts_per_token": Field("count", 1), "expert_layers": Field("count"), "expert_parameters": Field("number"),
        "weights": Field("word", "bf16", ("fp32", "bf16", "fp16", "fp8")), "gradients": Field("word", None, ("fp32", "bf16", "fp16")),
    },
    "parallelism": {
        "nodes": Field("count", NEEDED), "gpus_per_node": Field("count", NEEDED), "data": Field("word", "fsdp", ("ddp", "zero1", "zero2", "zero3", "fsdp")),
        "tensor": Field("count", 1), "pipeline": Field("count", 1), "expert": Field("count", 1), "reshard_after_forward": Field("yes", True),
    },
    "batch": {"samples_per_step": Field("count", NEEDED), "tokens_per_sample": Field("count", NEEDED), "micro_batches": Field("count", 1)},
    "compute": {
        "seconds_per_step": Field("time"), "flop_per_step": Field("flop"), "achieved_per_gpu": Field("flops"), "activation_checkpointing": Field("yes", False),
        "overlap": Field("share", "=overlap"),
    },
    "dataset": {
        "bytes": Field("bytes"), "sample_bytes": Field("bytes"), "access": Field("word", "random", ("random", "sequential")),
        "read_ahead": Field("share", "=read_ahead"),
    },
    "checkpoint": {"bytes": Field("bytes"), "interval_steps": Field("count"), "blocking": Field("yes", True), "overhead": Field("time")},
    "model_load": {"bytes": Field("bytes"), "overhead": Field("time")},
    "constraints": {
        "durable": Field("yes", True), "model_and_checkpoints_together": Field("yes", False), "capacity": Field("bytes"),
        "cache": Field("bytes"),
    },
})
