from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.lab.problem import LabProblem
from nodectl.lab.rates import bits_per_second, burst_bytes, bytes_per_second


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100mbit", 100_000_000),
        ("1gbit", 10**9),
        ("1.5gbit", 1_500_000_000),
        ("64 kbit", 64_000),
        ("100Mbit/s", 100_000_000),
        ("10mbps", 80_000_000),  # tc's bps is bytes per second
        ("9bit", 9),
    ],
)
def test_link_rates_are_tcs(text: str, rate: int) -> None:
    assert bits_per_second(text) == rate


@pytest.mark.parametrize(("text", "rate"), [("20MB/s", 20_000_000), ("64MiB/s", 64 << 20), ("1gb", 10**9), ("4096B/s", 4096)])
def test_disk_rates_are_bytes(text: str, rate: int) -> None:
    assert bytes_per_second(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "100", "mbit", "-5mbit", "100 megabit", "1e9bit", "0mbit", "0.1bit"])
def test_what_is_no_link_rate_is_refused(text: str) -> None:
    with pytest.raises(LabProblem, match=r"rate"):
        bits_per_second(text)


def test_a_zero_rate_names_the_fault_that_is_meant() -> None:
    with pytest.raises(LabProblem, match="fault `down`"):
        bits_per_second("0gbit")


def test_a_link_unit_is_no_disk_unit() -> None:
    with pytest.raises(LabProblem, match="20MB/s or 64MiB/s"):
        bytes_per_second("100mbit")


@given(st.integers(1, 400 * 10**9))
def test_the_bucket_carries_the_rate_and_one_big_packet(rate: int) -> None:
    assert burst_bytes(rate) >= 64 * 1024
    assert burst_bytes(rate) * 250 * 8 >= rate - 250 * 8
