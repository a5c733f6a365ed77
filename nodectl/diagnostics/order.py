"""The order in which mistakes are shown: by file, line and column; those without a place come first."""

from __future__ import annotations

from collections.abc import Iterable

from nodectl.diagnostics.model import Diagnostic


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sorted by place, each said once (a file that two plays import is read twice)."""
    return sorted(dict.fromkeys(diagnostics), key=_place)


def _place(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    origin = diagnostic.origin
    return (origin.file, origin.line, origin.column, diagnostic.code) if origin else ("", 0, 0, diagnostic.code)
