"""Units: every conversion that a tool's output or an inventory needs, and what is refused."""

from __future__ import annotations

import pytest

from nodectl.verify.judging.units import UnitError, human, quantity, to_base, unit

CONVERSIONS = [
    (1, "B/s", 1.0), (1, "kB/s", 1e3), (1, "MB/s", 1e6), (1, "GB/s", 1e9), (1, "TB/s", 1e12), (1, "KiB/s", 1024.0), (1, "MiB/s", 2.0**20), (1, "GiB/s", 2.0**30),
    (8, "b/s", 1.0), (200, "Mb/s", 25e6), (100, "Gb/s", 12.5e9), (1, "Mbit/s", 125e3), (1, "Gbps", 125e6), (10, "MBps", 10e6),
]


@pytest.mark.parametrize(("value", "name", "expected"), CONVERSIONS)
def test_rates(value: float, name: str, expected: float) -> None:
    assert to_base(value, name, "B/s") == pytest.approx(expected)


@pytest.mark.parametrize(("text", "base", "expected"), [
    ("200 Mb/s", "B/s", 25e6), ("1.5GB/s", "B/s", 1.5e9), ("16 GiB", "B", 2.0**34), ("500 ms", "s", 0.5), ("3us", "s", 3e-6), ("2 min", "s", 120.0),
    (25_000_000, "B/s", 25e6), ("25000000", "B/s", 25e6), (0.5, "s", 0.5), ("1e3 MB/s", "B/s", 1e9),
])
def test_quantities(text: object, base: str, expected: float) -> None:
    assert quantity(text, base) == pytest.approx(expected)


@pytest.mark.parametrize(("text", "base"), [
    ("200 Mb", "B/s"), ("200 Mb/s", "B"), ("fast", "B/s"), ("", "B/s"), (None, "B/s"), (True, "B/s"), ("5 parsec", "s"), ("-5 MB/s", "B/s"), ("1 GB / s", "B/s"), ([], "s"),
    (float("nan"), "s"), (float("inf"), "s"), (-1, "s"), (-0.001, "B/s"), (10**400, "B"), (-(10**400), "B"), ("nan", "s"), ("inf s", "s"), ("1e999 s", "s"), ("-5", "s"),
    ("9" * 400, "B"), ("5 s s", "s"), ("5\ns", "B"), ({}, "B"), (b"5", "B"), (5j, "B"), ("0x10", "B"), ("1_000", "B"),
])
def test_refused(text: object, base: str) -> None:
    with pytest.raises(UnitError):
        quantity(text, base)


def test_seven_per_cent_between_gb_and_gib() -> None:
    assert to_base(1, "GiB/s", "B/s") / to_base(1, "GB/s", "B/s") == pytest.approx(1.0737, rel=1e-4)


@pytest.mark.parametrize(("value", "base", "text"), [
    (12.5e6, "B/s", "12.5 MB/s (100 Mb/s)"), (4.4e11, "B/s", "440 GB/s (3.52 Tb/s)"), (512.0, "B", "512 B"), (0.25, "s", "250 ms"), (12.0, "s", "12 s"), (8.0, "count", "8"), (1.5, "ppm", "1.5 ppm"),
])
def test_for_people(value: float, base: str, text: str) -> None:
    assert human(value, base) == text


def test_unknown_unit_names_what_is_expected() -> None:
    with pytest.raises(UnitError, match="MB/s"):
        unit("MegaBytes")
