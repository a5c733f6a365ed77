"""Recorded hardware on a lab host: written, broken, mended and taken away, and never through a link of the host's."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.lab.fault_hardware import HARDWARE_ROOT, hardware_faults
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState

WHOLE, BROKEN = hardware_faults()


@pytest.fixture
def state(tmp_path: Path) -> LabState:
    for name in ("n1", "n2"):
        (tmp_path / "hosts" / name / "root/var/lib").mkdir(parents=True)
    return LabState("id", "dev", tmp_path, phase="up", hosts=(LabHost("n1", "10.77.4.11"), LabHost("n2", "10.77.4.12")))


def tree(state: LabState, host: str) -> Path:
    return state.host_dir(host) / "root" / HARDWARE_ROOT.lstrip("/")


def test_each_host_has_a_machine_of_its_own(state: LabState) -> None:
    for host in state.hosts:
        WHOLE.apply(state, host, "ib")
    one, other = ((tree(state, name) / "bin/nvidia-smi.xml").read_text() for name in state.names)
    assert one != other
    assert one.count("<gpu ") == other.count("<gpu ") == 8


def test_a_broken_one_is_whole_again_when_it_is_mended(state: LabState) -> None:
    host = state.hosts[1]
    WHOLE.apply(state, host, "roce")
    before = (tree(state, "n2") / "addresses").read_text()
    BROKEN.apply(state, host, "wrong-gid")
    assert (tree(state, "n2") / "addresses").read_text() != before
    BROKEN.lift(state, host, "wrong-gid")
    assert (tree(state, "n2") / "addresses").read_text() == before
    WHOLE.lift(state, host, "roce")
    assert not tree(state, "n2").exists()
    BROKEN.lift(state, host, "wrong-gid")
    assert not tree(state, "n2").exists()


@pytest.mark.parametrize(("value", "said"), [("xidd", "did you mean xid"), ("something else", "hung-nvidia-smi")])
def test_an_unknown_fault_is_refused_by_name(state: LabState, value: str, said: str) -> None:
    WHOLE.apply(state, state.hosts[0], "ib")
    with pytest.raises(LabProblem, match=said):
        BROKEN.apply(state, state.hosts[0], value)


def test_what_is_not_there_cannot_be_broken(state: LabState) -> None:
    with pytest.raises(LabProblem, match="n1 has no recorded machine: apply `hardware`"):
        BROKEN.apply(state, state.hosts[0], "xid")
    with pytest.raises(LabProblem, match="expected ib or roce"):
        WHOLE.apply(state, state.hosts[0], "tcp")


def test_a_link_that_leads_out_of_the_host_is_not_followed(state: LabState, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (state.host_dir("n1") / "root/var/lib/nodectl-lab").symlink_to(outside)
    for act in (WHOLE.apply, WHOLE.lift, BROKEN.lift):
        with pytest.raises(LabProblem, match="leads over a link"):
            act(state, state.hosts[0], "ib")
    assert list(outside.iterdir()) == []
