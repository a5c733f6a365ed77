"""A secret is a type: it cannot be formatted, logged or journalled by accident."""

from __future__ import annotations

from typing import Any

MASK = "********"


class Secret:
    """Holds one text that must not be shown. Only ``reveal()`` gives it out, so every use can be searched for."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __format__(self, spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(("Secret", self._text))

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is not pickled: it would leave the process in clear text")
