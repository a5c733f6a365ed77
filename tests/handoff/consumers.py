"""The environment in which the handoff's consumers from PyPI live (`make prepare-test`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2] / ".nodectl/consumers/bin/python"
needs_consumers = pytest.mark.skipif(not (PYTHON.parent.parent / ".made").exists(), reason="SkyPilot and the schemas of Kubernetes are not installed: make prepare-test")


def ask(home: Path, source: str, *args: str) -> str:
    """stdout of ``source`` run by the consumers' interpreter with ``home`` as its home; its words when it fails."""
    environment = {"HOME": str(home), "PATH": f"{home}/bin:/usr/bin:/bin", "SKYPILOT_DISABLE_USAGE_COLLECTION": "1", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([str(PYTHON), "-c", source, *args], capture_output=True, text=True, env=environment, timeout=180, cwd=home)
    return done.stdout if done.returncode == 0 else f"failed: {done.stdout}{done.stderr}"
