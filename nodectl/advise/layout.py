"""Which ranks talk to each other, and over which links. Pure.

Ranks are numbered as frameworks do: tensor fastest, then expert, then data, pipeline slowest; a node holds ``gpus`` ranks in a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """``ranks`` in one group, ``inside`` of them on each of its ``nodes``; ``beside`` groups of the kind share each node's network at once."""

    name: str
    ranks: int
    inside: int
    nodes: int
    beside: int


@dataclass(frozen=True)
class Layout:
    """Degrees of parallelism; their product is the number of GPUs."""

    nodes: int
    gpus: int
    tensor: int = 1
    expert: int = 1
    pipeline: int = 1

    @property
    def ranks(self) -> int:
        return self.nodes * self.gpus

    @property
    def data(self) -> int:
        """Replicas, or shards of one, of the whole model."""
        return self.ranks // (self.tensor * self.pipeline)

    def group(self, name: str) -> Group:
        """tensor, expert, data (of what is not split over experts), expert_data (of what is), or pipeline."""
        ranks, stride = {
            "tensor": (self.tensor, 1), "expert": (self.expert, self.tensor), "data": (self.data, self.tensor),
            "expert_data": (self.data // self.expert, self.tensor * self.expert), "pipeline": (self.pipeline, self.tensor * self.data),
        }[name]
        inside = max(1, min(ranks, math.ceil(self.gpus / stride))) if stride < self.gpus else 1
        nodes = math.ceil(ranks / inside)
        return Group(name, ranks, inside, nodes, max(1, self.gpus // inside))
