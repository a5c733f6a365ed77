"""The bench on lab hosts, without hosts: what it predicts from what was measured, and what it calls near enough."""

from __future__ import annotations

import pytest

from bench.time_model_lab import HIDDEN, LAYERS, OPS, Row, network_of, predict, table

WEIGHTS = 4 * LAYERS * HIDDEN * HIDDEN


def test_ddp_waits_for_one_all_reduce_and_fsdp_for_three_half_weights() -> None:
    network = network_of(dict.fromkeys(OPS, 12.5e6), 1e-9, 2)
    ddp, fsdp = predict("ddp", 1e-6, network), predict("fsdp", 1e-6, network)
    assert ddp.value == pytest.approx(WEIGHTS / 12.5e6, rel=1e-3)
    assert fsdp.value == pytest.approx(1.5 * WEIGHTS / 12.5e6, rel=1e-3)


def test_each_operation_counts_with_its_own_rate() -> None:
    slow = network_of({"all_reduce": 12.5e6, "all_gather": 6.25e6, "reduce_scatter": 3.125e6}, 1e-9, 2)
    assert predict("fsdp", 1e-6, slow).value == pytest.approx((2 + 2) * WEIGHTS / 12.5e6, rel=1e-3)
    assert predict("ddp", 1e-6, slow).value == pytest.approx(WEIGHTS / 12.5e6, rel=1e-3)


def test_compute_runs_beside_as_assumed() -> None:
    found = predict("ddp", 1.0, network_of(dict.fromkeys(OPS, WEIGHTS / 4.0), 1e-9, 2))
    assert (found.low, found.value, found.high) == pytest.approx((4.0, 4.5, 5.0), rel=1e-6)


@pytest.mark.parametrize(("predicted", "good"), [(1.2, True), (1.21, False), (0.8, True), (0.79, False)])
def test_twenty_percent(predicted: float, good: bool) -> None:
    row = Row("ddp", 1e8, 12.5e6, predicted, predicted, predicted, 1.0)
    assert row.good is good
    assert table([row]).endswith("| yes |" if good else "| NO |")
