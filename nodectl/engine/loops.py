"""The items of a loop: `loop` takes a list, `with_x` what the lookup x makes of its value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.lang.template import Templar


class BadLoop(ValueError):
    """The value cannot be looped over; the text says what was expected."""


def items_of(kind: str, value: Any, templar: Templar, variables: Mapping[str, Any]) -> list[Any]:
    """``value`` is rendered; ``templar`` looks up as the task does. Raises BadLoop, and TemplateError for what the found templates hold."""
    if kind == "loop":
        return _loop(value)
    try:
        return templar.look_up(kind, value if isinstance(value, list) else [value], variables)
    except (LookupError, ValueError) as error:
        raise BadLoop(f"with_{kind}: {error.args[0] if error.args else error}") from None


def _loop(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, Mapping):
        raise BadLoop("loop wants a list, but this is a mapping: write `| dict2items`")
    raise BadLoop(f"loop wants a list, but this is {value!r}: write `| list`, or [ … ] around it")
