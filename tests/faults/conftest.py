"""The fault suite's own lab: four hosts, prepared once. NODECTL_FAULT_LAB=DIR borrows one that is up and prepared, and leaves it running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodectl.lab import lifecycle, needs
from nodectl.lab.plan import LabPlan
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import load
from nodectl.shipped import shipped
from tests.acceptance.run import nodectl
from tests.conftest import TEST_LABS, Lab, sweep
from tests.faults.case import Case
from tests.faults.driver import Driver
from tests.lab.leftovers import leftovers

HOSTS = 4


@pytest.fixture(scope="session")
def fault_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    borrowed = os.environ.get("NODECTL_FAULT_LAB")
    if borrowed:
        state = load(Path(borrowed))
        assert state is not None, f"NODECTL_FAULT_LAB={borrowed}: no lab is there"
        lab = Lab(state)
        lab.lift_all()
        yield lab
        lab.lift_all()
        return
    try:
        needs.require(s3=True)
        needs.require_room(HOSTS)
    except LabProblem as problem:
        pytest.skip(str(problem))
    sweep()
    folder = TEST_LABS / f"test-lab-faults-{os.getpid()}"
    try:
        lab = Lab(lifecycle.up(LabPlan(name=f"f{os.getpid()}", dir=folder, hosts=HOSTS)))
        prepared = nodectl(tmp_path_factory.mktemp("prepared") / "run", "run", str(shipped("playbooks") / "bootstrap.yml"), "-i", str(lab.hosts_yaml))
        assert prepared.code == 0, prepared.out
        yield lab
    finally:
        started = load(folder)
        lifecycle.down(folder)
    assert started is not None
    assert leftovers(started.id, folder) == []


@pytest.fixture(scope="session")
def driver(fault_lab: Lab, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Driver:
    """Knows which cases were chosen (-k), so that only those share runs."""
    chosen: dict[str, Case] = {}
    for item in request.session.items:
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")  # type: ignore[attr-defined]
        if isinstance(case, Case):
            chosen[case.name] = case
    return Driver(fault_lab, tmp_path_factory.mktemp("faults"), list(chosen.values()))
