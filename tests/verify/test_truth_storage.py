"""The bench that compares fio with throttled disks: what it calls good, and that it can say no."""

from __future__ import annotations

from typing import Any

import pytest

from bench.truth_storage import WAYS, Row, rows, table


@pytest.mark.parametrize(("measured", "proof", "good"), [
    (50e6, "device", True), (55e6, "device", True), (45e6, "device", True), (55.1e6, "device", False), (44.9e6, "device", False), (50e6, "", False), (50e6, "direct", False),
])
def test_ten_percent_and_proof(measured: float, proof: str, good: bool) -> None:
    row = Row(50e6, "read", measured, proof)
    assert row.good is good
    assert table([row]).endswith(f"| {'yes' if good else 'NO'} |")


def test_each_rate_is_set_before_it_is_measured() -> None:
    now: list[int] = []

    def ask(order: dict[str, Any]) -> dict[str, Any]:
        assert order["path"] == "/scratch"
        return {way: {"bytes_per_second": now[-1] * 1e6, "proof": "device"} for way in order["ways"]}

    found = list(rows(ask, now.append, [20, 50]))
    assert now == [20, 50]
    assert [(row.rate, row.way) for row in found] == [(rate, way) for rate in (20e6, 50e6) for way in WAYS]
    assert all(row.good for row in found)


def test_what_could_not_be_measured_is_no_row() -> None:
    with pytest.raises(RuntimeError, match="write at 20 MB/s: no fio"):
        list(rows(lambda _order: {way: {"error": "no fio"} for way in WAYS}, lambda _rate: None, [20]))
