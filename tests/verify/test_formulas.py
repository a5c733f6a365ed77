"""Bandwidth as nccl-tests defines it, against its table and its own published lines."""

from __future__ import annotations

import pytest

from nodectl.verify.judging.formulas import Undefined, bandwidth, collectives, median, message_bytes, network_bound

GB = 1e9

# collective, S (bytes), ranks, seconds, algbw, busbw (both in GB/s)
TABLE = [
    ("all_reduce", 8 * 10**9, 8, 1.0, 8.0, 14.0),
    ("all_reduce", 10**9, 2, 0.5, 2.0, 2.0),
    ("all_reduce", 10**9, 4, 1.0, 1.0, 1.5),
    ("reduce_scatter", 8 * 10**9, 8, 1.0, 8.0, 7.0),
    ("all_gather", 8 * 10**9, 8, 1.0, 8.0, 7.0),
    ("alltoall", 4 * 10**9, 4, 2.0, 2.0, 1.5),
    ("alltoallv", 4 * 10**9, 4, 2.0, 2.0, 1.5),
    ("gather", 4 * 10**9, 4, 1.0, 4.0, 3.0),
    ("scatter", 4 * 10**9, 4, 1.0, 4.0, 3.0),
    ("broadcast", 10**9, 16, 0.1, 10.0, 10.0),
    ("reduce", 10**9, 16, 0.1, 10.0, 10.0),
    ("sendrecv", 10**9, 2, 0.1, 10.0, 10.0),
    ("hypercube", 10**9, 4, 0.1, 10.0, 10.0),
]


@pytest.mark.parametrize(("collective", "size", "ranks", "seconds", "algbw", "busbw"), TABLE)
def test_table(collective: str, size: int, ranks: int, seconds: float, algbw: float, busbw: float) -> None:
    found = bandwidth(collective, size, ranks, seconds)
    assert found.algbw == pytest.approx(algbw * GB)
    assert found.busbw == pytest.approx(busbw * GB)


def test_every_collective_stands_in_the_table() -> None:
    assert {row[0] for row in TABLE} == set(collectives())


@pytest.mark.parametrize("collective", collectives())
def test_one_rank_is_not_defined(collective: str) -> None:
    with pytest.raises(Undefined, match="not defined for 1 rank"):
        bandwidth(collective, 1024, 1, 1.0)


@pytest.mark.parametrize(("size", "seconds"), [(0, 1.0), (1024, 0.0), (1024, -1.0)])
def test_no_size_and_no_time_are_not_defined(size: int, seconds: float) -> None:
    with pytest.raises(Undefined):
        bandwidth("all_reduce", size, 2, seconds)


def test_unknown_collective() -> None:
    with pytest.raises(KeyError):
        bandwidth("all_reducce", 1, 2, 1.0)


@pytest.mark.parametrize(
    ("collective", "total"),
    [("all_reduce", 100), ("broadcast", 100), ("all_gather", 800), ("reduce_scatter", 800), ("alltoall", 100), ("gather", 800), ("scatter", 800)],
)
def test_message_bytes_of_one_piece(collective: str, total: int) -> None:
    assert message_bytes(collective, 100, 8) == total


# Domain research 2.2: for g=8 the bound is 1.875 N at two nodes, 1.292 N at four, 1.06 N at sixteen.
@pytest.mark.parametrize(("nodes", "factor"), [(2, 1.875), (4, 1.2917), (16, 1.0583)])
def test_network_bound_falls_with_the_number_of_nodes(nodes: int, factor: float) -> None:
    assert network_bound(400 * GB, 8, nodes) == pytest.approx(factor * 400 * GB, rel=1e-3)


def test_network_bound_of_one_rank_per_node_is_the_wire() -> None:
    assert network_bound(400 * GB, 1, 7) == pytest.approx(400 * GB)
    with pytest.raises(Undefined):
        network_bound(400 * GB, 8, 1)


@pytest.mark.parametrize(("values", "middle"), [([3.0], 3.0), ([1.0, 9.0], 9.0), ([9.0, 1.0, 5.0], 5.0), ([1.0, 1.0, 9.0, 9.0], 9.0)])
def test_median_takes_the_upper_middle(values: list[float], middle: float) -> None:
    assert median(values) == middle


def test_median_of_nothing() -> None:
    with pytest.raises(Undefined):
        median([])
