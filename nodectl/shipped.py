"""Where the roles, playbooks and templates that come with nodectl are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Kind = Literal["playbooks", "roles", "templates"]


def shipped(kind: Kind) -> Path:
    """The folder of that kind. Raises FileNotFoundError when the installation is incomplete."""
    package = Path(__file__).resolve().parent
    # The wheel's copy first: a folder named roles/ that happens to lie beside site-packages/nodectl is not ours.
    for folder in (package / "_shipped" / kind, package.parent / kind):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the {kind} that come with nodectl are missing from {package / '_shipped'}: reinstall nodectl")
