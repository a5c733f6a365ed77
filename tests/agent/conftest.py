from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from nodectl.agent.runner import run_step
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step

RunModule = Callable[..., Outcome]


@pytest.fixture
def system() -> System:
    """The real hands, on this machine: give modules paths under tmp_path."""
    return System()


def run_module(
    module: str, args: Mapping[str, Any], *, check: bool = False, diff: bool = True, timeout: float | None = 20,
    blobs: Mapping[str, bytes] | None = None, environment: Mapping[str, str] | None = None, system: System | None = None,
) -> Outcome:
    """One step through the runner, as the agent runs it. ``system`` replaces the hands (a fake of your own)."""
    hands = system or System(environment, {name: io.BytesIO(data) for name, data in (blobs or {}).items()})
    return run_step(hands, Step(1, module, dict(args), check=check, diff=diff, timeout=timeout, environment=dict(environment or {})))


@pytest.fixture
def run() -> RunModule:
    """run("file", {"path": …, "state": "directory"}, check=False, diff=True, …) -> Outcome"""
    return run_module
