"""Secrets inside templates: plain text while an expression works on it, a Secret again as soon as it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodectl.lang.unsafe import Unsafe
from nodectl.wire.secret import Secret


class SecretText(Unsafe):
    """The text of a Secret, or one that holds it, between two steps of a rendering. It must never be shown."""

    __slots__ = ()


# A shorter text would stand in many innocent words: it counts only where it is the whole value.
SHORTEST_INSIDE = 6


def hidden(value: Any, secrets: Iterable[str]) -> Any:
    """``value`` with every text that holds one of ``secrets`` marked, so that it becomes a Secret when it leaves the rendering."""
    if isinstance(value, str):
        return SecretText(value) if any(_holds(value, secret) for secret in secrets) else value
    if isinstance(value, dict):
        return {key: hidden(item, secrets) for key, item in value.items()}
    return [hidden(item, secrets) for item in value] if isinstance(value, (list, tuple)) else value


def _holds(text: str, secret: str) -> bool:
    return text == secret or (len(secret) >= SHORTEST_INSIDE and secret in text)


def reveal(value: Any) -> Any:
    """``value`` with every Secret made plain: only for the arguments of a step on its way to the node."""
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, Mapping):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [reveal(item) for item in value]
    return value
