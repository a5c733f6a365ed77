"""apt on a node whose dpkg was interrupted: what a run that was stopped left, the next one finishes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nodectl.agent import apt_packages, dpkg_unfinished, package_locks
from nodectl.agent.modules import apt
from tests.agent.modules_sys.scripted import Answer, Scripted, filled, reason

BROKEN = "E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a' to correct the problem."


class Interrupted(Scripted):
    """chrony was unpacked, fio is not there. As the real ones do, apt-get works only after dpkg has worked off its journal."""

    def __init__(self, updates: Path, *, mends: bool = True) -> None:
        self.updates = updates
        self.status = {"chrony": "iU", "fio": "un"}
        self.mends = mends
        offered = (0, "fio:\n  Candidate: 1\nchrony:\n  Candidate: 1\n", "")
        super().__init__({"dpkg-query": self._query, "apt-cache": offered, "apt-get": self._get, "dpkg": self._dpkg})

    def _query(self, argv: Sequence[str]) -> Answer:
        return 0, "".join(f"{name}\tamd64\t1\t{self.status[name]} \n" for name in argv[4:]), ""

    def _get(self, argv: Sequence[str]) -> Answer:
        names = [name for name in argv if name in self.status and self.status[name] != "ii"]
        if "-s" in argv:
            return 0, "".join((f"Inst {n} (1 x)\n" if self.status[n] == "un" else "") + f"Conf {n} (1 x)\n" for n in names), ""
        if dpkg_unfinished.found():
            return 100, "", BROKEN
        self.status.update(dict.fromkeys(names, "ii"))
        return 0, "", ""

    def _dpkg(self, argv: Sequence[str]) -> Answer:
        if not self.mends:
            return 1, "", "dpkg: error processing package chrony (--configure):\n postinst returned 1\n"
        for entry in self.updates.iterdir():
            entry.unlink()
        self.status["chrony"] = "ii"
        return 0, "", ""


@pytest.fixture
def updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "updates"
    folder.mkdir()
    for name in ("0000", "0001", "tmp.i"):
        (folder / name).touch()
    monkeypatch.setattr(dpkg_unfinished, "UPDATES", str(folder))
    monkeypatch.setattr(package_locks, "holder", lambda path: None)
    monkeypatch.setattr(apt_packages, "_has_lists", lambda: True)
    return folder


def configured(machine: Scripted) -> list[str]:
    return [line for line in machine.ran if line.startswith("dpkg ")]


def test_what_an_interrupted_dpkg_left_is_finished_first(updates: Path) -> None:
    machine = Interrupted(updates)
    outcome = apt.act(machine, filled(apt.SPEC, name=["chrony", "fio"]), False)
    assert outcome.changed
    assert outcome.msg == "finish what an interrupted dpkg left half done; install fio 1"
    assert machine.status == {"chrony": "ii", "fio": "ii"}
    assert len(configured(machine)) == 1
    assert not apt.act(machine, filled(apt.SPEC, name=["chrony", "fio"]), False).changed
    assert len(configured(machine)) == 1


def test_all_that_was_wished_may_be_done_by_finishing(updates: Path) -> None:
    outcome = apt.act(Interrupted(updates), filled(apt.SPEC, name="chrony"), False)
    assert (outcome.changed, outcome.msg) == (True, "finish what an interrupted dpkg left half done")


def test_check_mode_foretells_and_touches_nothing(updates: Path) -> None:
    machine = Interrupted(updates)
    outcome = apt.act(machine, filled(apt.SPEC, name=["chrony", "fio"]), True)
    assert outcome.msg == "configure chrony, which was unpacked earlier; install fio 1"
    assert configured(machine) == []


def test_what_cannot_be_finished_is_told_with_the_reason(updates: Path) -> None:
    said = reason(lambda: apt.act(Interrupted(updates, mends=False), filled(apt.SPEC, name="fio"), False))
    assert "dpkg --configure -a" in said
    assert "postinst returned 1" in said


def test_unpacked_is_not_installed(updates: Path) -> None:
    """A package whose postinst failed: apt-get only has to configure it, and that is something to do."""
    for entry in updates.iterdir():
        entry.unlink()
    machine = Interrupted(updates)
    outcome = apt.act(machine, filled(apt.SPEC, name="chrony"), False)
    assert (outcome.changed, outcome.msg) == (True, "configure chrony, which was unpacked earlier")
    assert machine.status["chrony"] == "ii"


def test_a_dpkg_at_work_is_left_alone_where_nothing_is_wished(updates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_locks, "holder", lambda path: 4711)
    machine = Interrupted(updates)
    machine.status["chrony"] = "ii"
    assert not apt.act(machine, filled(apt.SPEC, name="chrony"), False).changed
    assert configured(machine) == []
    assert "held by process 4711" in reason(lambda: apt.act(machine, filled(apt.SPEC, name="fio", lock_timeout=0), False))


def test_dpkg_stays_in_the_process_group_of_the_step(updates: Path) -> None:
    """With a pty of its own dpkg survives the end of apt-get and works on behind the run's back (seen on the lab)."""
    machine = Interrupted(updates)
    apt.act(machine, filled(apt.SPEC, name="fio"), False)
    assert all("DPkg::Use-Pty=false" in line for line in machine.ran if line.startswith("apt-get"))
