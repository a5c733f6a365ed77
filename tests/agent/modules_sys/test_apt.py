from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent import apt_packages, package_locks
from nodectl.agent.contract import Failed
from nodectl.agent.modules import apt, dnf, package
from nodectl.agent.system import System
from tests.agent.modules_sys.scripted import Answer, Scripted, filled, reason


@pytest.fixture(autouse=True)
def no_real_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_locks, "holder", lambda path: None)
    monkeypatch.setattr(apt_packages, "_has_lists", lambda: True)


class Machine(Scripted):
    """A machine with apt: ``installed`` name → version, ``offered`` name → candidate. apt-get install and remove work on it."""

    def __init__(self, installed: dict[str, str], offered: dict[str, str], broken: bool = False) -> None:
        self.installed, self.offered, self.broken = dict(installed), offered, broken
        answers: dict[str, Any] = {"dpkg-query": self._query, "apt-cache policy": self._policy, "apt-get": self._get}
        super().__init__(answers)

    def _query(self, argv: Any) -> Answer:
        if "Provides" in argv[3]:
            return 0, "".join(f"{n}\tii \tmail-agent, {n}-virtual (= 1)\n" for n in self.installed), ""
        known = [n for n in argv[4:] if n in self.installed]
        return int(len(known) < len(argv[4:])), "".join(f"{n}\tamd64\t{self.installed[n]}\tii \n" for n in known), ""

    def _policy(self, argv: Any) -> Answer:
        return 0, "".join(f"{n}:\n  Installed: (none)\n  Candidate: {self.offered[n]}\n" for n in argv[2:] if n in self.offered), ""

    def _get(self, argv: Any) -> Answer:
        names = [w for w in argv[1:] if w in self.offered or w in self.installed or ("=" in w and w[0] != "-" and ":" not in w)]
        if "nothere" in argv:
            return 100, "", "E: Unable to locate package nothere\n"
        if "update" in argv:
            return 0, "", ""
        out = ""
        for word in names:
            name, _, version = word.partition("=")
            if "remove" in argv or "purge" in argv:
                out += f"Remv {name} [{self.installed[name]}]\n"
                if "-s" not in argv and not self.broken:
                    del self.installed[name]
            else:
                out += f"Inst {name} ({version or self.offered[name]} Debian:12 [amd64])\n"
                if "-s" not in argv and not self.broken:
                    self.installed[name] = version or self.offered[name]
        return 0, out, ""


def run(machine: Machine, check: bool = False, **args: Any) -> Any:
    return apt.act(machine, filled(apt.SPEC, **args), check)


def changes(machine: Machine) -> list[str]:
    return [line for line in machine.ran if line.startswith("apt-get") and " -s " not in line]


def test_installs_what_is_missing_and_nothing_the_second_time() -> None:
    machine = Machine({"bash": "5"}, {"bash": "5", "fio": "3.33-3"})
    foretold = run(machine, check=True, name=["bash", "fio"])
    assert changes(machine) == []
    done = run(machine, name=["bash", "fio"])
    assert (foretold.changed, foretold.msg) == (done.changed, done.msg) == (True, "install fio 3.33-3")
    assert machine.installed["fio"] == "3.33-3"
    count = len(changes(machine))
    assert not run(machine, name=["bash", "fio"]).changed
    assert len(changes(machine)) == count == 1
    assert "confold" in changes(machine)[0]


def test_present_does_not_upgrade_and_latest_does() -> None:
    machine = Machine({"fio": "1"}, {"fio": "2"})
    assert not run(machine, name="fio").changed
    assert run(machine, name="fio", state="latest").changed
    assert machine.installed["fio"] == "2"


def test_version_is_a_wish() -> None:
    machine = Machine({"fio": "2"}, {"fio": "2"})
    assert not run(machine, name="fio=2").changed
    run(machine, name="fio=1", allow_downgrade=True)
    assert machine.installed["fio"] == "1"


def test_absent() -> None:
    machine = Machine({"fio": "2"}, {"fio": "2"})
    assert run(machine, name="fio", state="absent").msg == "remove fio 2"
    assert machine.installed == {}
    assert not run(machine, name="fio", state="absent").changed


def test_provided_by_an_installed_package_is_there() -> None:
    assert not run(Machine({"exim": "4"}, {}), name="mail-agent").changed


def test_exit_code_zero_is_no_proof() -> None:
    assert "still not as wished: fio" in reason(lambda: run(Machine({}, {"fio": "1"}, broken=True), name="fio"))


@pytest.mark.parametrize(("name", "says"), [("lib*", "is a pattern"), ("Fio", "no package name"), ("fio=", "no package name"), ("-y", "no package name"), ("fio;rm", "no package name")])
def test_refuses_names(name: str, says: str) -> None:
    assert says in reason(lambda: run(Machine({}, {}), name=[name]))


def test_unknown_package_is_named() -> None:
    assert "no package list of this node knows nothere" in reason(lambda: run(Machine({}, {}), name="nothere"))


def test_lists_are_fetched_only_where_something_is_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = iter(range(100))
    monkeypatch.setattr(apt_packages, "list_age", lambda system: (7200.0, next(stamps)))
    machine = Machine({"fio": "1"}, {"fio": "1", "jq": "1"})
    assert not run(machine, name="fio", update_cache=True).values["cache_updated"]
    assert run(machine, name="jq", update_cache=True).values["cache_updated"]
    assert not run(machine, name="jq", state="latest", cache_valid_time=9000).values["cache_updated"]
    assert run(machine, update_cache=True).changed
    assert not run(machine, update_cache=True, cache_valid_time=9000).changed
    monkeypatch.setattr(apt_packages, "list_age", lambda system: (7200.0, 1))
    nothing_new = run(machine, update_cache=True)
    assert (nothing_new.changed, nothing_new.values["cache_updated"], changes(machine)[-1].split()[-1]) == (False, False, "update")


def test_check_mode_foretells_what_only_fresh_lists_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt_packages, "list_age", lambda system: (float("inf"), 0))
    told = run(Machine({}, {}), check=True, name="nothere", update_cache=True)
    assert told.changed
    assert "lists would be fetched first" in told.msg


def test_lock_is_waited_for_and_its_holder_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    lock = tmp_path / "lock-frontend"
    program = f"import fcntl,sys; f=open({str(lock)!r},'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held',flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Failed) as raised:
        package_locks.wait_free(System(), (str(lock),), 0.0)
    assert raised.value.values["holder_pid"] == holder.pid
    assert "lock-frontend is held by process" in raised.value.msg
    assert "fcntl" in raised.value.values["holder"]
    assert holder.poll() is None
    holder.communicate("", timeout=10)
    package_locks.wait_free(System(), (str(lock), str(tmp_path / "none")), 0.0)
    assert lock.exists()
    assert fcntl.LOCK_EX


# What dnf 4 prints for a transaction that it is told not to do.
PLAN = """Dependencies resolved.
================================================================================
 Package        Architecture     Version              Repository           Size
================================================================================
{heading}:
 fio            x86_64           3.40-1.fc39          updates             600 k

Transaction Summary
================================================================================
Operation aborted.
"""
FIO = "fio-3.40-1.fc39.x86_64"


class Fedora(Scripted):
    """rpm and dnf of a node on which dnf's next order takes hold, or does not."""

    def __init__(self, here: bool = False, holds: bool = True, heading: str = "Installing") -> None:
        self.here = here

        def rpm(argv: Sequence[str]) -> Answer:
            return (0, f"{FIO}\n" if self.here else "", "") if "-qa" in argv else (0 if self.here else 1, "", "")

        def run_dnf(argv: Sequence[str]) -> Answer:
            if "--assumeno" in argv:
                return 1, PLAN.format(heading=heading), "Operation aborted.\n"
            self.here = self.here or holds
            return 0, "Complete!\n", ""

        super().__init__({"rpm": rpm, "dnf": run_dnf})


def test_package_takes_apt_and_dnf() -> None:
    machine = Machine({}, {"fio": "1"})
    assert package.act(machine, filled(package.SPEC, name="fio", state="installed"), False).changed
    fedora = Fedora()
    foretold = package.act(fedora, filled(package.SPEC, name="fio"), True)
    assert (foretold.changed, foretold.values["results"]) == (True, [f"Installed: {FIO}"])
    assert not any(line.startswith("dnf -y") for line in fedora.ran)
    done = package.act(fedora, filled(package.SPEC, name="fio"), False)
    assert (done.changed, done.values["results"]) == (True, foretold.values["results"])
    assert not package.act(fedora, filled(package.SPEC, name="fio"), False).changed
    assert "neither apt-get nor dnf" in reason(lambda: package.act(Scripted({}), filled(package.SPEC, name="fio"), False))


def test_dnf_latest_and_failures() -> None:
    newer = Fedora(here=True, heading="Upgrading")
    latest = dnf.act(newer, filled(dnf.SPEC, name="fio", state="latest"), True)
    assert (latest.changed, latest.values["results"]) == (True, [f"Installed: {FIO}"])
    assert any(line.startswith("dnf") and line.endswith("upgrade fio") for line in newer.ran)
    assert "still not as wished: fio" in reason(lambda: dnf.act(Fedora(holds=False), filled(dnf.SPEC, name="fio"), False))
    unknown = Scripted({"rpm": (1, "", ""), "dnf": (1, "", "No match for argument: x\nError: Unable to find a match: x\n")})
    assert "No match for argument: x" in reason(lambda: dnf.act(unknown, filled(dnf.SPEC, name="x"), True))
