"""Text that must never be read as a template: it came from a node, or was marked `!unsafe` in the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What opens an expression, a statement or a comment in Jinja: text without one of them is no template.
OPENERS = ("{{", "{%", "{#")


class Unsafe(str):
    """A text that is never templated again. It is a str in every other way."""

    __slots__ = ()


class Settled(dict[Any, Any]):
    """A mapping in which nothing is to be rendered, however deep: facts of a node are not searched for templates again and again."""

    __slots__ = ()


class SettledList(list[Any]):
    """A list of the same kind."""

    __slots__ = ()


def has_template(text: str) -> bool:
    """Whether Jinja would find anything to do in ``text``."""
    return any(opener in text for opener in OPENERS)


def mark_unsafe(value: Any) -> Any:
    """``value`` with every text in it, however deep, marked as never to be templated (results of modules, facts)."""
    if isinstance(value, str):
        return value if isinstance(value, Unsafe) or not has_template(value) else Unsafe(value)
    if isinstance(value, Mapping):
        return Settled((key, mark_unsafe(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return SettledList(mark_unsafe(item) for item in value)
    return value
