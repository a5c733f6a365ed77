"""The items of a loop: `loop` takes a list, `with_x` what the lookup x makes of its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodectl.lang.template import Lookup


class BadLoop(ValueError):
    """The value cannot be looped over; the text says what was expected."""


def items_of(kind: str, value: Any, lookup: Lookup, variables: Mapping[str, Any], render: Callable[[str], str]) -> list[Any]:
    """``value`` is rendered; ``lookup`` and ``render`` are those of the task. Raises BadLoop."""
    if kind == "loop":
        return _loop(value)
    try:
        return lookup(kind, value if isinstance(value, list) else [value], {}, variables, render)
    except (LookupError, ValueError) as error:
        raise BadLoop(f"with_{kind}: {error}") from None


def _loop(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, Mapping):
        raise BadLoop("loop wants a list, but this is a mapping: write `| dict2items`")
    raise BadLoop(f"loop wants a list, but this is {value!r}: write `| list`, or [ … ] around it")
