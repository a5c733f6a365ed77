"""A number that knows where it comes from: each is measured, said in the workload file, assumed by name, or computed from such. Pure.

It is a range where something in it is uncertain. Units are checked where figures meet: seconds are never added to bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from nodectl.verify.judging.units import UnitError

Kind = Literal["measured", "workload", "assumed", "computed"]

# What a quotient and a product of two units is. What is not here makes no sense in this model.
_OVER: Mapping[tuple[str, str], str] = MappingProxyType({
    ("B", "B/s"): "s", ("FLOP", "FLOP/s"): "s", ("s", "s"): "1", ("B", "s"): "B/s", ("B", "B"): "1", ("s", "count"): "s", ("B", "count"): "B",
    ("FLOP", "count"): "FLOP", ("count", "count"): "count", ("count", "1/s"): "s", ("B/s", "count"): "B/s",
})
_TIMES: Mapping[frozenset[str], str] = MappingProxyType({
    frozenset(["s", "count"]): "s", frozenset(["B", "count"]): "B", frozenset(["FLOP", "count"]): "FLOP", frozenset(["B/s", "1"]): "B/s",
    frozenset(["s", "1"]): "s", frozenset(["B", "1"]): "B", frozenset(["count"]): "count", frozenset(["count", "1"]): "count",
    frozenset(["FLOP/s", "count"]): "FLOP/s", frozenset(["FLOP/s", "1"]): "FLOP/s", frozenset(["B/s", "s"]): "B", frozenset(["1"]): "1",
    frozenset(["money/s", "s"]): "money", frozenset(["money/s", "count"]): "money/s", frozenset(["B/s", "count"]): "B/s", frozenset(["FLOP", "1"]): "FLOP",
})


@dataclass(frozen=True)
class Figure:
    """``low`` ≤ ``value`` ≤ ``high`` in ``unit`` (s, B, B/s, FLOP, FLOP/s, count, 1/s, 1 for a share, money).

    ``how`` is the formula of a computed figure; of the others it says where it was measured, where it stands, or why it is assumed.
    """

    name: str
    value: float
    unit: str
    how: str
    kind: Kind = "computed"
    inputs: tuple[Figure, ...] = ()
    low: float = float("nan")
    high: float = float("nan")
    work: Callable[..., float] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            if getattr(self, end) != getattr(self, end):  # not given: exact
                object.__setattr__(self, end, self.value)

    @property
    def exact(self) -> bool:
        return self.low == self.high

    def leaves(self) -> Iterator[Figure]:
        """What it rests on at last; each once."""
        seen: dict[str, Figure] = {}
        stack = [self]
        while stack:
            one = stack.pop()
            stack.extend(one.inputs)
            if not one.inputs:
                seen.setdefault(f"{one.name} {one.how}", one)
        return iter(seen.values())


def swing(figure: Figure, leaf: Figure) -> float:
    """How far ``figure`` moves when ``leaf`` alone goes from one of its ends to the other."""
    return abs(_value(figure, leaf, leaf.high, {}) - _value(figure, leaf, leaf.low, {}))


def _value(figure: Figure, leaf: Figure, given: float, known: dict[int, float]) -> float:
    if (figure.name, figure.how, figure.kind) == (leaf.name, leaf.how, leaf.kind):
        return given
    if not figure.inputs:
        return figure.value
    if id(figure) not in known:
        parts = [_value(part, leaf, given, known) for part in figure.inputs]
        known[id(figure)] = figure.work(*parts) if figure.work else parts[0]
    return known[id(figure)]


def derive(name: str, unit: str, how: str, work: Callable[..., float], rising: Sequence[Figure], falling: Sequence[Figure] = ()) -> Figure:
    """``work`` of the values of ``rising`` and then ``falling``: it must not fall with the former nor rise with the latter; so the ends are known."""
    value = work(*(one.value for one in (*rising, *falling)))
    low = work(*(one.low for one in rising), *(one.high for one in falling))
    high = work(*(one.high for one in rising), *(one.low for one in falling))
    return Figure(name, value, unit, how, "computed", (*rising, *falling), min(low, value), max(high, value), work)


def total(name: str, parts: Sequence[Figure], how: str = "") -> Figure:
    """The sum. Raises UnitError where the parts are of two kinds."""
    units = {part.unit for part in parts}
    if len(units) != 1:
        raise UnitError(f"{name}: {' and '.join(sorted(units)) or 'nothing'} cannot be added")
    return derive(name, units.pop(), how or " + ".join(part.name for part in parts), lambda *values: sum(values), parts)


def over(name: str, above: Figure, below: Figure, how: str = "") -> Figure:
    """The quotient. Raises UnitError where the units make no sense together."""
    unit = _OVER.get((above.unit, below.unit))
    if unit is None:
        raise UnitError(f"{name}: {above.unit} over {below.unit} is no quantity of this model")
    return derive(name, unit, how or f"{above.name} / {below.name}", lambda a, b: a / b, [above], [below])


def times(name: str, *factors: Figure, how: str = "") -> Figure:
    """The product. Raises UnitError where the units make no sense together."""
    unit = factors[0].unit
    for factor in factors[1:]:
        found = _TIMES.get(frozenset([unit, factor.unit]))
        if found is None:
            raise UnitError(f"{name}: {unit} times {factor.unit} is no quantity of this model")
        unit = found

    def product(*values: float) -> float:
        result = 1.0
        for value in values:
            result *= value
        return result

    return derive(name, unit, how or " * ".join(factor.name for factor in factors), product, factors)


def number(name: str, value: float, unit: str = "count", how: str = "follows from the layout") -> Figure:
    """What follows from the workload's whole numbers."""
    return Figure(name, value, unit, how, "workload")
