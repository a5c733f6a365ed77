"""Which nodectl this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


def version() -> str:
    """The installed version; "unknown" when the sources are run without being installed."""
    try:
        return installed("nodectl")
    except PackageNotFoundError:
        return "unknown"
