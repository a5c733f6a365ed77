"""What one format makes of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Artefact:
    """``files`` by path below the handoff's folder; ``refused`` are hosts that this format cannot express, each with why.

    A refused host is left out of this format only: the others still name it.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


class Inexpressible(ValueError):
    """This format has no way to say that; the text says what, and what would do."""
