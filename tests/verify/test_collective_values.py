"""The check of values itself: right results pass for every operation, type, reduction and size of group; each kind of damage is seen.

The network is made up: what the ranks put in is put together here, in whole numbers, independently of the code that is tried.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed: pip install 'nodectl[torch]'", allow_module_level=True)

import torch

from nodectl.verify.group.operations import DTYPES, OPS, PLACES, REDOPS, REDUCING
from nodectl.verify.workloads import collective
from nodectl.verify.workloads.collective import PERIODS, Operation, Values, fill, mixed, wrong_in

CPU = torch.device("cpu")
Damage = Callable[[list[torch.Tensor], torch.Tensor], None]


def nothing(given: list[torch.Tensor], result: torch.Tensor) -> None:
    return None


def case(op: str, dtype: str = "float32", redop: str = "sum", in_place: bool | None = None, root: int = 0) -> dict[str, Any]:
    return {"op": op, "dtype": dtype, "redop": redop, "root": root, "in_place": PLACES[op][0] if in_place is None else in_place}


class MadeUp(Operation):
    """One rank of a group whose other ranks exist only as what they put in. ``damage`` may change that, and what comes out."""

    damage: Damage = staticmethod(nothing)
    pattern = 0

    def run(self) -> None:
        given = [self.input_of(rank) for rank in range(self.world)]
        given = [one.clone() for one in given]
        result = self.result(given)
        self.damage(given, result)
        if self.damage_inputs:
            result = self.result(given)
        if result is not None and result.numel():
            self.receive.copy_(result)

    damage_inputs = False

    def input_of(self, rank: int) -> torch.Tensor:
        if rank == self.rank:
            return self.send
        other = Operation(dict(self.case), self.bytes, rank, self.world, CPU)
        values = Values(self.case, self.world, self.pattern)
        for block, view in other._inputs():
            fill(view, values.given([rank], block)[0])
        return other.send

    def result(self, given: list[torch.Tensor]) -> torch.Tensor:
        if self.op == "broadcast":
            return given[self.root].clone()
        if self.op == "sendrecv":
            return given[(self.rank - 1) % self.world].clone()
        if self.op == "all_gather":
            return torch.cat(given)
        mine = slice(self.rank * self.count, (self.rank + 1) * self.count)
        if self.op == "alltoall":
            return torch.cat([one[mine] for one in given])
        if self.op == "reduce" and self.rank != self.root:
            return torch.empty(0, dtype=self.dtype)
        return self.reduced([one[mine] if self.op == "reduce_scatter" else one for one in given])

    def reduced(self, given: list[torch.Tensor]) -> torch.Tensor:
        """Rank after rank in the type itself, as a ring does: rounding would be seen."""
        total = given[0].clone()
        for one in given[1:]:
            if self.case["redop"] in ("sum", "avg"):
                total += one
            elif self.case["redop"] == "prod":
                total *= one
            else:
                total = torch.minimum(total, one) if self.case["redop"] == "min" else torch.maximum(total, one)
        if self.case["redop"] != "avg":
            return total
        return total / self.world if total.is_floating_point() else torch.div(total, self.world, rounding_mode="floor")


def wrong(given: dict[str, Any], world: int, rank: int, pattern: int = 0, size: int = 6000, damage: Damage = nothing, inputs: bool = False) -> int:
    operation = MadeUp(given, size, rank, world, CPU)
    operation.damage = damage
    operation.damage_inputs = inputs
    operation.pattern = pattern
    return operation.checked(pattern)


EVERY = [
    (op, dtype, redop, place)
    for op in OPS for dtype in DTYPES for redop in (REDOPS if op in REDUCING else REDOPS[:1]) for place in PLACES[op]
]  # fmt: skip


@pytest.mark.parametrize("world", [2, 3, 8])
@pytest.mark.parametrize(("op", "dtype", "redop", "place"), EVERY)
def test_right_values_pass(op: str, dtype: str, redop: str, place: bool, world: int) -> None:
    for pattern, rank in ((0, 0), (1, world - 1), (2, world // 2)):
        assert wrong(case(op, dtype, redop, place), world, rank, pattern) == 0


@pytest.mark.parametrize("redop", REDOPS)
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_sums_of_hundreds_of_ranks_stay_exact(dtype: str, redop: str) -> None:
    assert wrong(case("all_reduce", dtype, redop), 300, 7, size=3000) == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("world", [2, 3, 7, 12])
def test_an_average_that_is_scaled_before_the_sum_passes_too(dtype: str, world: int) -> None:
    """NCCL multiplies each rank's value by 1/n first, and rounds it."""

    class Scaled(MadeUp):
        def reduced(self, given: list[torch.Tensor]) -> torch.Tensor:
            total = torch.zeros_like(given[0])
            for one in given:
                total += one * (1.0 / self.world)
            return total

    operation = Scaled(case("all_reduce", dtype, "avg"), 6000, 0, world, CPU)
    assert operation.checked(0) == 0


def one_element(given: list[torch.Tensor], result: torch.Tensor) -> None:
    result[len(result) // 2] += 1


def zeroed(given: list[torch.Tensor], result: torch.Tensor) -> None:
    result[64:128] = 0


def shifted(given: list[torch.Tensor], result: torch.Tensor) -> None:
    """A chunk of a ring one place further than it belongs; chunks are powers of two."""
    result[256:512] = result[:256].clone()


def rolled(given: list[torch.Tensor], result: torch.Tensor) -> None:
    result.copy_(result.roll(1))


def not_a_number(given: list[torch.Tensor], result: torch.Tensor) -> None:
    result[3] = float("nan") if result.is_floating_point() else 127


@pytest.mark.parametrize("damage", [one_element, zeroed, shifted, rolled, not_a_number])
@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("op", OPS)
def test_damage_of_the_result_is_seen(op: str, dtype: str, damage: Damage) -> None:
    assert wrong(case(op, dtype), 4, 0, size=16384, damage=damage) > 0


@pytest.mark.parametrize("redop", REDOPS)
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_one_wrong_element_in_a_reduction_is_counted_once(dtype: str, redop: str) -> None:
    assert wrong(case("all_reduce", dtype, redop), 4, 0, damage=one_element) == 1


@pytest.mark.parametrize("world", [2, 3, 8, 300])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_one_element_of_one_rank_is_seen_by_all_where_it_is_summed(dtype: str, world: int) -> None:
    def damage(given: list[torch.Tensor], result: torch.Tensor) -> None:
        given[world - 1][5] += 1

    assert wrong(case("all_reduce", dtype), world, 0, damage=damage, inputs=True) == 1


@pytest.mark.parametrize("op", ["all_gather", "alltoall"])
def test_swapped_ranks_are_seen(op: str) -> None:
    def damage(given: list[torch.Tensor], result: torch.Tensor) -> None:
        quarter = len(result) // 4
        first, second = result[:quarter].clone(), result[quarter : 2 * quarter].clone()
        result[:quarter], result[quarter : 2 * quarter] = second, first

    assert wrong(case(op), 4, 0, size=16384, damage=damage) > 1000


@pytest.mark.parametrize(("op", "taken"), [("reduce_scatter", 1), ("sendrecv", 1), ("broadcast", 1)])
def test_the_block_of_another_rank_is_seen(op: str, taken: int) -> None:
    class Elsewhere(MadeUp):
        def result(self, given: list[torch.Tensor]) -> torch.Tensor:
            if op == "reduce_scatter":
                return self.reduced([one[2 * self.count : 3 * self.count] for one in given])
            return given[taken].clone()

    assert Elsewhere(case(op), 16384, 0, 4, CPU).checked(0) > 500


@pytest.mark.parametrize("op", OPS)
def test_a_buffer_left_as_it_was_is_seen_even_after_a_right_run(op: str) -> None:
    """Stale: the call does nothing. What is there from the pattern before, or from the poison, is not what belongs there."""
    root, rank = (1, 1) if op == "reduce" else (0, 1)
    operation = MadeUp(case(op, root=root), 6000, rank, 4, CPU)
    assert operation.checked(0) == 0
    operation.run = lambda: None  # type: ignore[method-assign]
    assert operation.checked(1) > 0


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "broadcast"])
def test_the_result_of_the_pattern_before_is_seen(op: str) -> None:
    """Stale: the network delivers once more what it delivered last time."""
    operation = MadeUp(case(op), 6000, 1, 4, CPU)
    operation.checked(0)
    last = operation.receive.clone()
    operation.run = lambda: operation.receive.copy_(last)  # type: ignore[method-assign, assignment]
    assert operation.checked(1) > operation.receive.numel() // 2


@pytest.mark.parametrize("pattern", [0, 1, 2])
def test_no_two_ranks_blocks_or_patterns_give_the_same_values(pattern: int) -> None:
    rows = [tuple(mixed(pattern + 1, torch.tensor([rank]), block, 40)[0].tolist()) for rank in range(50) for block in range(20)]
    assert len(set(rows)) == len(rows)
    assert rows[0] != tuple(mixed(pattern + 2, torch.tensor([0]), 0, 40)[0].tolist())


def test_periods_are_primes_and_differ() -> None:
    assert len(set(PERIODS)) == 3
    assert all(period % factor for period in PERIODS for factor in range(2, 16))


@pytest.mark.parametrize("length", [1, 5, 250, 251, 252, 502, 1000])
def test_counting_covers_every_element_once(length: int) -> None:
    row = torch.arange(1, 252)
    buffer = torch.zeros(length)
    assert wrong_in(buffer, row, 0.0) == length
    fill(buffer, row)
    assert wrong_in(buffer, row, 0.0) == 0
    buffer[length - 1] = -5
    assert wrong_in(buffer, row, 0.0) == 1
    assert wrong_in(buffer, row, 0.4) == 1


def test_large_buffers_are_compared_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collective, "CHUNK", 300)
    row, buffer = torch.arange(1, 252), torch.zeros(1000)
    fill(buffer, row)
    buffer[[0, 400, 999]] = -1
    assert wrong_in(buffer, row, 0.0) == 3


# op, size asked, ranks, type; size (nccl-tests' S) and count as nccl-tests prints them
SHAPES = [
    ("all_reduce", 1024, 4, "float32", 1024, 256),
    ("all_gather", 1024, 4, "float32", 1024, 64),
    ("reduce_scatter", 1024, 4, "float32", 1024, 64),
    ("alltoall", 1024, 4, "float32", 1024, 64),
    ("broadcast", 1024, 4, "float16", 1024, 512),
    ("sendrecv", 1024, 4, "uint8", 1024, 1024),
    ("all_gather", 1000, 3, "float32", 996, 83),
    ("all_gather", 8, 4, "float32", 16, 1),
    ("all_reduce", 1, 2, "float64", 8, 1),
]


@pytest.mark.parametrize(("op", "size", "world", "dtype", "total", "count"), SHAPES)
def test_sizes_and_counts(op: str, size: int, world: int, dtype: str, total: int, count: int) -> None:
    operation = Operation(case(op, dtype), size, 0, world, CPU)
    assert (operation.bytes, operation.count) == (total, count)


# op, what each of 4 nodes of 2 ranks sends to other nodes of 800 bytes (S), by hand
LEAVING = [("all_reduce", 1200), ("all_gather", 600), ("reduce_scatter", 600), ("alltoall", 1200), ("sendrecv", 800), ("broadcast", 0), ("reduce", 0)]


@pytest.mark.parametrize(("op", "expected"), LEAVING)
def test_what_leaves_a_node(op: str, expected: int) -> None:
    operation = Operation(case(op), 800, 0, 8, CPU)
    assert operation.bytes == 800
    assert operation.leaving(4, 2) == expected
    assert operation.leaving(1, 8) == 0
