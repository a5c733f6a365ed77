"""Figures: units that meet, ranges that hold, and where everything comes from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.advise.figure import Figure, derive, over, swing, times, total
from nodectl.verify.judging.units import UnitError
from tests.advise.jobs import exact

POSITIVE = st.floats(1e-3, 1e6)


@pytest.mark.parametrize(("left", "right"), [("s", "B"), ("B", "B/s"), ("1", "s"), ("money", "s")])
def test_what_is_of_two_kinds_is_not_added(left: str, right: str) -> None:
    with pytest.raises(UnitError, match="cannot be added"):
        total("sum", [exact("a", 1, left), exact("b", 1, right)])


@pytest.mark.parametrize(("above", "below", "unit"), [("B", "B/s", "s"), ("FLOP", "FLOP/s", "s"), ("s", "s", "1"), ("B", "s", "B/s"), ("count", "count", "count")])
def test_quotients(above: str, below: str, unit: str) -> None:
    found = over("q", exact("a", 6, above), exact("b", 3, below))
    assert (found.value, found.unit) == (2, unit)


@pytest.mark.parametrize(("above", "below"), [("B/s", "B"), ("s", "B"), ("FLOP", "B/s"), ("B", "FLOP/s")])
def test_quotients_without_sense(above: str, below: str) -> None:
    with pytest.raises(UnitError, match="no quantity of this model"):
        over("q", exact("a", 6, above), exact("b", 3, below))


@pytest.mark.parametrize(("units", "unit"), [(("s", "count"), "s"), (("B/s", "1"), "B/s"), (("money/s", "count", "s"), "money"), (("B/s", "s"), "B")])
def test_products(units: tuple[str, ...], unit: str) -> None:
    assert times("p", *(exact(str(index), 2, each) for index, each in enumerate(units))).unit == unit


@pytest.mark.parametrize("units", [("s", "s"), ("B", "B/s"), ("B", "FLOP"), ("money", "s")])
def test_products_without_sense(units: tuple[str, str]) -> None:
    with pytest.raises(UnitError, match="no quantity of this model"):
        times("p", *(exact(str(index), 2, each) for index, each in enumerate(units)))


@given(POSITIVE, POSITIVE, st.floats(0, 1), st.floats(0, 1))
def test_a_range_holds_every_value_within(above: float, below: float, up: float, down: float) -> None:
    a, b = Figure("a", above, "B", "x", "assumed", (), above * 0.5, above * 2), Figure("b", below, "B/s", "y", "assumed", (), below * 0.25, below * 3)
    found = over("q", a, b)
    inside = (a.low + up * (a.high - a.low)) / (b.low + down * (b.high - b.low))
    assert found.low <= inside * (1 + 1e-9)
    assert inside <= found.high * (1 + 1e-9)
    assert found.low <= found.value <= found.high


def test_what_a_figure_rests_on() -> None:
    rate = Figure("rate", 5.0, "B/s", "measured: x", "measured", (), 4.0, 8.0)
    size = exact("size", 20, "B")
    found = total("both", [over("one", size, rate), over("two", size, rate)])
    assert sorted(leaf.name for leaf in found.leaves()) == ["rate", "size"]
    assert swing(found, rate) == pytest.approx(2 * (20 / 4 - 20 / 8))
    assert swing(found, size) == 0
    assert (found.low, found.value, found.high) == (5.0, 8.0, 10.0)


def test_exact_figures_have_no_range() -> None:
    assert exact("a", 3, "s").exact
    assert derive("b", "s", "a", lambda value: value * 2, [exact("a", 3, "s")]).exact
