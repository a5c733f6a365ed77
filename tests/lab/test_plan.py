from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.lab import plan
from nodectl.lab.plan import LabPlan
from nodectl.lab.problem import LabProblem


def test_a_plan_gets_an_absolute_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert LabPlan(dir=Path("a/b")).checked().dir == tmp_path / "a/b"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (LabPlan(name="Big"), "lab name 'Big'"),
        (LabPlan(name="x" * 21), "up to 19"),
        (LabPlan(name=""), "lab name ''"),
        (LabPlan(hosts=0), "--hosts 0: expected 1 to 64"),
        (LabPlan(hosts=65), "--hosts 65"),
        (LabPlan(disks=-1), "--disks -1: expected 0 to 8"),
        (LabPlan(disks=9), "--disks 9"),
        (LabPlan(dir=Path("/tmp/with space")), "may hold only letters"),
        (LabPlan(dir=Path("/tmp/a,b")), "mount and ssh options"),
        (LabPlan(dir=Path("/tmp/a:b")), "/tmp/a:b"),
    ],
)
def test_what_no_lab_can_be_is_refused(wrong: LabPlan, said: str) -> None:
    with pytest.raises(LabProblem) as problem:
        wrong.checked()
    assert said in str(problem.value)


def test_names_addresses_and_serials_follow_from_the_plan() -> None:
    assert plan.host_names(3) == ["n1", "n2", "n3"]
    assert plan.host_address(7, "n1") == "10.77.7.11"
    assert plan.host_address(7, "n64") == "10.77.7.74"
    assert plan.serials(7, "n2", 2) == ("LAB7N2D1", "LAB7N2D2")
    assert plan.serials(7, "n2", 0) == ()
    assert [plan.disk_node(index) for index in range(2)] == ["/dev/nvme0n1", "/dev/nvme1n1"]


def test_every_host_of_the_biggest_lab_has_an_address_of_its_own() -> None:
    addresses = {plan.host_address(1, name) for name in plan.host_names(plan.MOST_HOSTS)}
    assert len(addresses) == plan.MOST_HOSTS
    assert not addresses & {plan.address(1, plan.CONTROLLER_OCTET), plan.address(1, plan.SERVICES_OCTET)}
    assert all(int(address.rpartition(".")[2]) < 255 for address in addresses)


def test_a_disk_is_big_enough_for_xfs() -> None:
    assert plan.DISK_BYTES > 300 * 10**6
