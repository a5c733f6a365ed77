"""What a step sends, computed from model and layout: nothing of it is tabled. Pure.

DDP: one all-reduce of the gradients. ZeRO-1 and -2: a reduce-scatter of the gradients and an all-gather of the weights. FSDP and ZeRO-3:
the weights are gathered for forward and again for backward (resharded between), for each micro batch, and the gradients reduce-scattered;
layer by layer, so that latencies count once per layer. Tensor parallelism: two all-reduces of the activations per layer and direction, and
two more where backward computes them anew. Pipeline: activations forward and gradients back over each boundary, for each micro batch, each
tensor rank its part of them (the next stage gathers them inside its node).
Experts: tokens go to their experts and back (two all-to-alls) in each layer with experts, and so again backward.
"""

from __future__ import annotations

from nodectl.advise.figure import Figure, derive, number, over, times
from nodectl.advise.layout import Layout
from nodectl.advise.network import Transfer
from nodectl.advise.workload import Workload


def transfers(work: Workload) -> list[Transfer]:
    found = [*_data(work, "data", _dense(work)), *_tensor(work), *_pipeline(work)]
    if work.experts and work.layout.expert > 1:
        found += [*_data(work, "expert_data", _experts(work)), *_expert(work)]
    return [one for one in found if one.group.ranks > 1]


def _held(work: Workload, parameters: Figure, name: str, parts: int) -> Figure:
    """Bytes of the weights of ``parameters`` that one group of data ranks holds together."""
    mine = over(f"{name} of a group", parameters, number("parts of the model", float(parts)))
    return derive(f"bytes of {name} of a group", "B", f"{mine.name} * bytes per parameter", lambda count, size: count * size, [mine, work.weight_bytes])


def _dense(work: Workload) -> Figure:
    """All parameters, or those that every rank has where experts are split."""
    layout = work.layout
    if work.experts and layout.expert > 1:
        how = "parameters - parameters of experts"
        shared = derive("parameters outside experts", "count", how, lambda a, b: a - b, [work.parameters], [work.expert_parameters])
        return _held(work, shared, shared.name, layout.tensor * layout.pipeline)
    return _held(work, work.parameters, "parameters", layout.tensor * layout.pipeline)


def _experts(work: Workload) -> Figure:
    layout = work.layout
    return _held(work, work.expert_parameters, "parameters of experts", layout.tensor * layout.pipeline * layout.expert)


def _data(work: Workload, kind: str, size: Figure) -> list[Transfer]:
    group, what = work.layout.group(kind), "" if kind == "data" else " of experts"
    gradients = times(f"bytes of gradients{what} of a group", size, over("gradient to weight", work.gradient_bytes, work.weight_bytes))
    layers = max(1, work.layers // work.layout.pipeline)
    if work.data == "ddp":
        return [Transfer("all_reduce", group, gradients, 1, f"gradients{what} (DDP)")]
    if work.data in ("zero1", "zero2"):
        scatter = Transfer("reduce_scatter", group, gradients, 1, f"gradients{what} ({work.data})")
        return [scatter, Transfer("all_gather", group, size, 1, f"weights{what} ({work.data})")]
    per_layer = number("layers of a stage", float(layers))
    part, back = over(f"bytes of weights{what} of a layer", size, per_layer), over(f"bytes of gradients{what} of a layer", gradients, per_layer)
    gathers = (2 if work.reshard else 1) * layers * work.micro_batches
    why = f"weights{what}, forward and backward" if work.reshard else f"weights{what}, forward"
    return [Transfer("all_gather", group, part, gathers, why), Transfer("reduce_scatter", group, back, layers * work.micro_batches, f"gradients{what}")]


def _activations(work: Workload) -> Figure:
    """Bytes of what one layer hands to the next for one micro batch of one rank."""
    tokens = over("tokens of a micro batch", work.tokens, number("data ranks * micro batches", float(work.layout.data * work.micro_batches)))
    how = f"{tokens.name} * hidden size * bytes per activation"
    return derive("bytes of activations", "B", how, lambda count, width, size: count * width * size, [tokens, work.hidden, work.activation_bytes])


def _tensor(work: Workload) -> list[Transfer]:
    layers = max(1, work.layers // work.layout.pipeline)
    per_layer = 6 if work.recompute else 4
    group = work.layout.group("tensor")
    return [Transfer("all_reduce", group, _activations(work), per_layer * layers * work.micro_batches, "activations (tensor parallel)")]


def _pipeline(work: Workload) -> list[Transfer]:
    mine = over("bytes of activations of a tensor rank", _activations(work), number("tensor ranks", float(work.layout.tensor)))
    return [Transfer("sendrecv", work.layout.group("pipeline"), mine, 2 * work.micro_batches, "activations over a stage's border")]


def _expert(work: Workload) -> list[Transfer]:
    layers = max(1, work.expert_layers // work.layout.pipeline)
    sent = times("bytes of tokens to experts", _activations(work), number("experts of a token", float(work.top_k)))
    again = 6 if work.recompute else 4
    return [Transfer("alltoall", work.layout.group("expert"), sent, again * layers * work.micro_batches, "tokens to experts and back")]


def bubble(layout: Layout, micro_batches: int) -> float:
    """Share of a step in which a pipeline's stages wait: (p-1) / (m+p-1)."""
    return (layout.pipeline - 1) / (micro_batches + layout.pipeline - 1)
