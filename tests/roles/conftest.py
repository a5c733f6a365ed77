"""One lab host for all tests of the roles: put back to its first day and provisioned stage by stage once, because that takes half a minute."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Lab
from tests.roles.stage import STAGES, Stages, Trial


@pytest.fixture(scope="package")
def stages(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    """The first host, bare when the first test begins. Each test leaves it provisioned, and with no fault."""
    lab.lift_all()
    host = lab.names[0]
    lab.reset(host)
    found = Stages(lab, host, tmp_path_factory.mktemp("runs"))
    try:
        yield found
    finally:
        found.close()
        lab.lift_all()


@pytest.fixture(scope="package")
def first(stages: Stages) -> dict[str, Trial]:
    """The first runs of each stage, in their order, as talkative as can be. (A stage that failed is its own test's to tell.)"""
    return {stage: _tried(stages, stage) for stage in STAGES}


def _tried(stages: Stages, stage: str) -> Trial:
    check, before = stages(stage, "--check", "--diff", "-vv"), stages.settings()
    return Trial(check, stages(stage, "--diff", "-vv"), stages(stage), before)


@pytest.fixture
def provisioned(stages: Stages, first: dict[str, Trial]) -> Stages:
    assert {stage: trial.real.reason for stage, trial in first.items() if trial.real.code != 0} == {}
    return stages
