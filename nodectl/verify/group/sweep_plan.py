"""What a sweep runs: every operation with data types and reductions, in each place that it has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nodectl.verify.group.gang import Case
from nodectl.verify.group.operations import PLACES, REDUCING

# Where only the values count, not the time: above the sizes that take a short-cut, and quick on any network.
VARIANT_SIZE = 1 << 20


def sweep(ops: Iterable[str], dtypes: Sequence[str], redops: Sequence[str], sizes: Sequence[int], like: Case) -> tuple[Case, ...]:
    """Every operation with every data type, every reduction where it reduces, in each place: what nccl-tests' `-d all -o all` runs.

    ``like`` holds what is the same for all (warm-up, iterations, budget, root).
    """
    return tuple(
        replace(like, op=op, dtype=dtype, redop=redop, in_place=place, sizes=tuple(sizes))
        for op in ops for dtype in dtypes for redop in (redops if op in REDUCING else redops[:1]) for place in PLACES[op]
    )  # fmt: skip


def survey(ops: Sequence[str], dtypes: Sequence[str], redops: Sequence[str], sizes: Sequence[int], like: Case) -> tuple[Case, ...]:
    """Every operation on all sizes with the first data type and reduction, and its values with each other one on a single size."""
    main = sweep(ops, dtypes[:1], redops[:1], sizes, like)
    one = [max((size for size in sizes if size <= VARIANT_SIZE), default=sizes[0])]
    quick = replace(like, warmup=0, iterations=1)
    types = [case for op in ops for case in sweep([op], dtypes[1:], redops[:1], one, quick) if case.in_place == PLACES[op][0]]
    reductions = [case for op in ops if op in REDUCING for case in sweep([op], dtypes[:1], redops[1:], one, quick) if case.in_place == PLACES[op][0]]
    return (*main, *types, *reductions)
