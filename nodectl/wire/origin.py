"""Where a value was written: file, line and column travel with every step and every diagnostic."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional


class Origin(NamedTuple):
    """A place in a text file; line and column count from 1, as editors do. ``width`` is the length to underline."""

    file: str
    line: int
    column: int
    width: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def to_json(self) -> Dict[str, Any]:
        return self._asdict()


def origin_from_json(data: Optional[Dict[str, Any]]) -> Optional[Origin]:
    """The inverse of ``Origin.to_json``; ``None`` stays ``None``."""
    return None if data is None else Origin(**data)
