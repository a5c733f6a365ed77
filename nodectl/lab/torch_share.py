"""Lends this environment's torch to the hosts: one read-only copy instead of a gigabyte in each."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

# Where a host sees the lent packages, as an ordinary virtual environment.
VENV = "/opt/torch"


def lendable(python: str) -> tuple[Path | None, str]:
    """The site-packages folder that holds torch, or None and the reason why none can be lent to hosts with Python ``python``."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = importlib.util.find_spec("torch")
    if found is None or not found.origin:
        return None, f"torch is not installed for {sys.executable}: pip install 'nodectl[torch]' and start the lab again to lend it to the hosts"
    if ours != python:
        return None, f"torch is not lent: it is installed for Python {ours} here, and the hosts have Python {python}"
    return Path(found.origin).parent.parent, ""


def furnish(root: Path, python: str) -> None:
    """Writes the environment around the lent packages into a host's tree; the packages are bound in at boot."""
    venv = root / VENV.lstrip("/")
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to("/usr/bin/python3")
    (venv / "bin/python3").symlink_to("python")
    (venv / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}\n")
    (root / packages(python).lstrip("/")).mkdir(parents=True)


def packages(python: str) -> str:
    """Where a host expects the packages."""
    return f"{VENV}/lib/python{python}/site-packages"
