"""The collectives that are measured, as data: where torch.distributed can put their result, and the sizes of a sweep. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

# Places as torch.distributed has them: True in place, False out of place. all_reduce, broadcast and reduce take one buffer there; for
# alltoall and sendrecv in place has no meaning (nccl-tests shows N/A for their values too).
PLACES: Mapping[str, tuple[bool, ...]] = MappingProxyType({
    "all_reduce": (True,), "all_gather": (False, True), "reduce_scatter": (False, True), "alltoall": (False,), "broadcast": (True,), "reduce": (True,),
    "sendrecv": (False,),
})
OPS = tuple(PLACES)
REDUCING = frozenset(["all_reduce", "reduce_scatter", "reduce"])
ROOTED = frozenset(["broadcast", "reduce"])
# torch's names, and nccl-tests' words for them.
DTYPES: Mapping[str, str] = MappingProxyType({
    "float32": "float", "float16": "half", "bfloat16": "bfloat16", "float64": "double", "int32": "int32", "int64": "int64", "int8": "int8", "uint8": "uint8",
})
REDOPS = ("sum", "prod", "min", "max", "avg")


@dataclass(frozen=True)
class Sizes:
    """nccl-tests' -b, -e and -f or -i: from ``begin`` to at most ``end`` bytes, times ``factor`` or plus ``step``."""

    begin: int
    end: int
    factor: int = 2
    step: int = 0

    def all(self) -> tuple[int, ...]:
        """Ascending, at least one. Raises ValueError for what never ends or holds nothing."""
        if not 1 <= self.begin <= self.end:
            raise ValueError(f"sizes from {self.begin} to {self.end} bytes: there is none")
        if self.step < 0 or (self.step == 0 and self.factor < 2):
            raise ValueError(f"factor {self.factor} and step {self.step} never reach the end: give a factor of at least 2, or a step above 0")
        if self.step:
            return tuple(range(self.begin, self.end + 1, self.step))
        sizes = [self.begin]
        while sizes[-1] * self.factor <= self.end:
            sizes.append(sizes[-1] * self.factor)
        return tuple(sizes)
