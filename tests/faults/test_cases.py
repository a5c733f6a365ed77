"""Every fault of cases/: the right node is named with the right cause, in time, and nobody else is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Lab
from tests.faults.case import Case, load_cases
from tests.faults.driver import MEASURED, Driver, Tried, worse

pytestmark = [pytest.mark.lab, pytest.mark.alone]


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_fault(case: Case, driver: Driver, fault_lab: Lab) -> None:
    tried = driver.tried(case)
    assert tried.run.report, tried.run.out
    named = driver.named(case)
    for host in named:
        shows(case, tried, host)
    others = [] if case.expect.everyone else tried.healthy(fault_lab.names)
    assert {host: (tried.run.host(host)["verdict"], worse(tried.run, host)) for host in others} == dict.fromkeys(others, ("pass", {}))
    handed_off(tried, fault_lab, others, named)
    assert tried.run.code == driver.exit_code(case)
    assert tried.run.seconds < case.bound
    measured(case, tried)


def test_who_was_broken_passes_again(driver: Driver, tmp_path: Path) -> None:
    """Every fault is lifted and nothing of it is left on any host: all pass what they failed before."""
    driver.lab.lift_all()
    for host in driver.lab.names:
        left = driver.lab.inside(host, "sh", "-c", "ls /var/lib/nodectl-lab /run/systemd/system/nodectl-cache-*.d 2>/dev/null; tc qdisc show dev eth0 | grep -v noqueue")
        assert left.stdout == ""
    run = driver.verify(tmp_path / "after", ("login", "pci", "host", "route", "clock", "mounts", "torch", "all_reduce"), {}, {})
    assert [(host, worse(run, host)) for host in driver.lab.names if worse(run, host)] == [], run.out
    assert run.code == 0


def shows(case: Case, tried: Tried, host: str) -> None:
    """The host's status and verdict; the check that says why, in the words of the cause; and no check that the fault does not explain."""
    found, wrong = tried.run.host(host), worse(tried.run, host)
    assert (found["status"], found["verdict"]) == (case.expect.status, case.expect.verdict), (wrong, tried.run.out)
    if case.expect.check and case.expect.verdict != "pass":
        assert case.expect.check in wrong, (wrong, tried.run.out)
        said = wrong[case.expect.check]
        assert [word for word in case.expect.words if word not in said] == [], said
    assert [name for name in wrong if not case.expect.allows(name)] == [], wrong


def handed_off(tried: Tried, lab: Lab, good: list[str], bad: list[str]) -> None:
    """Who passes is in the hostfile, who does not is in excluded.json, each with a reason."""
    excluded = json.loads(tried.run.handoff("excluded.json"))
    listed = tried.run.handoff("hostfile") if good else ""
    assert [host for host in good if f"{lab.address(host)} " not in listed] == []
    assert [host for host in bad if f"{lab.address(host)} " in listed or not excluded[host]] == []


def measured(case: Case, tried: Tried) -> None:
    if os.environ.get("NODECTL_FAULTS_MEASURE"):
        known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
        known[case.name] = round(tried.run.seconds, 1)
        MEASURED.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
