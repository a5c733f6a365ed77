"""A user's mistake as a value: what is, where, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nodectl.wire.origin import Origin

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Diagnostic:
    """One mistake. ``code`` is a key of ``diagnostics.codes.CODES`` (docs/errors has a page for each).

    ``message`` is the headline (what is), ``label`` stands under the caret (what was expected), ``help`` says what to do.
    """

    code: str
    message: str
    origin: Origin | None = None
    label: str = ""
    help: str = ""
    severity: Severity = "error"


class Mistakes(Exception):
    """Raised once with everything that was found, before any node is touched."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__("; ".join(f"{d.origin}: {d.message}" if d.origin else d.message for d in diagnostics))
        self.diagnostics = diagnostics


class Collector:
    """Gathers diagnostics while loading goes on, so that one run shows all mistakes."""

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def error(self, code: str, message: str, origin: Origin | None, *, label: str = "", help: str = "") -> None:
        self._found.append(Diagnostic(code, message, origin, label, help))

    def warning(self, code: str, message: str, origin: Origin | None, *, label: str = "", help: str = "") -> None:
        self._found.append(Diagnostic(code, message, origin, label, help, "warning"))

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self._found if d.severity == "error"]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for d in self._found if d.severity == "warning"]

    def stop_if_wrong(self) -> None:
        """Raises Mistakes when there is at least one error."""
        if self.errors:
            raise Mistakes(self._found)
