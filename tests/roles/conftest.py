"""Lab hosts for tests of the roles. A host is put back to its first day once per file, not once per test: that takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Lab
from tests.roles.stage import Stages


@pytest.fixture(scope="module")
def bare(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    """The first host, bare when the file's first test begins. Faults are lifted when the file ends."""
    yield from _fresh(lab, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def with_scratch(bare: Stages) -> Stages:
    """The same host with base system and scratch disks."""
    for stage in ("base", "storage"):
        done = bare(stage)
        assert done.code == 0, done.out
    return bare


def _fresh(lab: Lab, folder: Path) -> Iterator[Stages]:
    host = lab.names[0]
    lab.lift_all()
    lab.reset(host)
    stages = Stages(lab, host, folder)
    try:
        yield stages
    finally:
        stages.close()
        lab.lift_all()
