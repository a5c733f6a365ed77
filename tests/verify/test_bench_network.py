"""The benchmarks of the network: their arithmetic, their tables, and that they can say no."""

from __future__ import annotations

from typing import Any

import pytest

from bench import overhead, truth_network
from bench.marked import written
from bench.overhead import Pair, paired
from bench.truth_network import Row, only

# rate (bit/s), reported (B/s); share of the payload limit by hand, good
TRUTH = [
    (100e6, 100e6 / 8 * 1448 / 1514, 1.0, True), (100e6, 11.0e6, 0.9201, True), (100e6, 10.7e6, 0.895, False), (100e6, 13.2e6, 1.1041, False), (50e6, 6.2e6, 1.0372, True),
    (400e6, None, 0.0, False),
]


@pytest.mark.parametrize(("rate", "measured", "share", "good"), TRUTH)
def test_share_of_what_a_link_can_carry(rate: float, measured: float | None, share: float, good: bool) -> None:
    row = Row(rate, "pair", measured)
    assert row.share == pytest.approx(share, abs=1e-3)
    assert row.good is good


def test_the_table_of_truth_says_what_is_not_true() -> None:
    text = truth_network.table([Row(100e6, "pair", 11.9e6), Row(50e6, "group of 3", 4e6), Row(200e6, "pair", None)])
    lines = text.splitlines()
    assert lines[2] == "| 100 Mb/s | 11.96 MB/s | pair | 11.90 MB/s | 99.5% | 1 | yes |"
    assert lines[3].endswith("| 66.9% | 1 | NO |")
    assert lines[4].endswith("| nothing | 0.0% | 1 | NO |")


# what each try gives, as share of the limit; the figure that counts, tries
TRIED = [
    ((0.99,), 0.99, 1), ((0.8, 0.95), 0.95, 2), ((0.8, 0.7, 0.6), 0.8, 3), ((0.5, None, 0.92), 0.92, 3), ((None, None, None), None, 3), ((1.3,), 1.3, 1),
    ((0.85, 1.2), 1.2, 2),
]


@pytest.mark.parametrize(("shares", "counts", "tries"), TRIED)
def test_only_what_is_too_small_is_tried_again(shares: tuple[float | None, ...], counts: float | None, tries: int) -> None:
    limit = Row(100e6, "", None).limit
    left = [None if share is None else share * limit for share in shares]
    row = truth_network.tried(lambda: left.pop(0), 100e6, "pair")
    assert row.measured == (None if counts is None else pytest.approx(counts * limit))
    assert (row.tries, left) == (tries, [])


def test_the_page_keeps_everything_but_the_table() -> None:
    page = f"before\n{truth_network.BEGIN}old\n{truth_network.END}after\n"
    assert written(page, truth_network.BEGIN, truth_network.END, "new\n") == f"before\n{truth_network.BEGIN}new\n{truth_network.END}after\n"


@pytest.mark.parametrize("step", ["pairs", "all_reduce"])
def test_each_figure_has_a_suite_of_its_own(step: str) -> None:
    assert [one.kind for one in only(step).steps] == ["route", "torch", step]


def line(kind: str, rank: int, block: int, seconds: float, size: int = 10**6) -> dict[str, Any]:
    return {"kind": kind, "rank": rank, "case": block, "bytes": size, "seconds": [seconds, seconds]}


def test_the_slowest_rank_of_each_block_counts_on_both_sides() -> None:
    lines = [line("result", 0, 0, 0.01), line("result", 1, 0, 0.02), line("bare", 0, 0, 0.04), line("bare", 1, 0, 0.01), {"kind": "ready", "rank": 0}]
    # two ranks: busbw is bytes over time
    (found,) = paired(lines, 2)
    assert found == pytest.approx((10**6, 50e6, 25e6))


def test_medians_of_blocks() -> None:
    found = [Pair(size, ours, 100.0) for size in overhead.SIZES for ours in (90.0, 97.0, 400.0)]
    rows = overhead.rows(found)
    assert [(row.size, row.ours, row.bare, row.share) for row in rows] == [(size, 97.0, 100.0, 0.97) for size in overhead.SIZES]
    assert overhead.table(rows, 2, 3).count("| yes |") == 2
    assert overhead.table(overhead.rows([Pair(size, 94.0, 100.0) for size in overhead.SIZES]), 2, 1).count("| NO |") == 2
