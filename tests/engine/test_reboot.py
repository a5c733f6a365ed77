"""reboot: another boot id over a new login is the proof; each way it can go wrong ends in time, with its reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.engine.fakes import FakeConnections
from tests.engine.playing import Played, play
from tests.engine.test_actions import last
from tests.engine.test_run import book

NODE = "[all]\nh1 ansible_host=10.0.0.1 ansible_user=ops\n"


class Machine:
    """A node that goes down when it is told so: ``down`` questions find nobody, ``same`` more are answered by the old boot first."""

    def __init__(self, down: int = 0, same: int = 0, breaks: bool = False, comes_back: bool = True, why: str = "refused", deaf: int = 0) -> None:
        self.orders: list[list[str]] = []
        self._down, self._same, self._breaks, self._comes_back, self._why, self._deaf = down, same, breaks, comes_back, why, deaf

    def __call__(self, host: str, step: Step) -> Outcome | None:
        if step.module == "stat":
            return Outcome(values={"stat": {"exists": step.args["path"] == "/usr/sbin/shutdown"}})
        words = list(step.args.get("argv") or str(step.args["cmd"]).split())
        if "shutdown" in words[0] or words[0] == "kexec":
            self.orders.append(words)
            if self._breaks:
                raise Lost("the line broke")
            return Outcome(changed=True, values={"rc": 0})
        return self._question(words)

    def _question(self, words: list[str]) -> Outcome:
        if words[0] == "whoami":
            self._deaf -= 1
            return Outcome(failed=self._deaf >= 0, msg="not yet", values={"stdout": "root"})
        if not self.orders:
            return Outcome(values={"stdout": "one\n"})
        if self._same:
            self._same -= 1
            return Outcome(values={"stdout": "one\n"})
        if self._down or not self._comes_back:
            self._down -= 1
            raise Unreachable(self._why, "the port is closed")  # type: ignore[arg-type]
        return Outcome(values={"stdout": "two\n"})


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodectl.engine.actions.reboot.PAUSE_S", 0.0)


def reboot(tmp_path: Path, machine: Callable[[str, Step], Outcome | None], args: str = "reboot_timeout: 5", check: bool = False) -> Played:
    text = book("{name: x, reboot: {" + args + "}}")
    return play(tmp_path, text, inventory=NODE, connections=FakeConnections(script=machine), check=check)


@pytest.mark.parametrize(
    "machine", [Machine(), Machine(breaks=True), Machine(down=3), Machine(same=2, down=2), Machine(deaf=2)], ids=["at-once", "breaks", "down", "slow", "deaf"]
)
def test_a_node_that_comes_back_in_another_boot(tmp_path: Path, machine: Machine) -> None:
    played = reboot(tmp_path, machine)
    assert played.of("h1") == ["x: changed"]
    assert last(played)["rebooted"] is True
    assert machine.orders == [["/usr/sbin/shutdown", "-r", "+0", "Reboot initiated by nodectl"]]


BAD = [
    # machine, arguments, what is said
    (Machine(same=10**9), "reboot_timeout: 0.2", "still in the boot from before (one): it did not go down"),
    (Machine(comes_back=False), "reboot_timeout: 0.2", "not back within"),
    (Machine(down=1, why="host_key"), "reboot_timeout: 600", "after the reboot: the port is closed"),
    (Machine(deaf=10**9), "reboot_timeout: 0.2", "'whoami' fails: not yet"),
    (Machine(), "search_paths: [/opt]", "there is no shutdown in /opt"),
]


@pytest.mark.parametrize(("machine", "args", "said"), BAD, ids=["not-down", "not-back", "other-key", "deaf", "no-shutdown"])
def test_what_goes_wrong_ends_in_time(tmp_path: Path, machine: Machine, args: str, said: str) -> None:
    played = reboot(tmp_path, machine, args.replace("0.2", "1"))
    assert played.of("h1") == ["x: failed"]
    assert said in last(played)["msg"]
    assert last(played)["rebooted"] is False


def test_a_node_that_refuses_was_not_rebooted(tmp_path: Path) -> None:
    def refuses(host: str, step: Step) -> Outcome | None:
        if step.module == "command" and "argv" in step.args:
            return Outcome(failed=True, msg="non-zero return code", values={"rc": 1, "stderr": "Failed to set wall message: Access denied"})
        return Machine()(host, step)

    assert "refuses to reboot: Failed to set wall message" in last(reboot(tmp_path, refuses))["msg"]


def test_another_program_and_a_delay_for_people(tmp_path: Path) -> None:
    machine = Machine()
    reboot(tmp_path, machine, "reboot_command: kexec -e")
    assert machine.orders == [["kexec", "-e"]]
    machine = Machine()
    reboot(tmp_path, machine, "pre_reboot_delay: 150, msg: new kernel")
    assert machine.orders == [["/usr/sbin/shutdown", "-r", "+2", "new kernel"]]


def test_check_mode_gives_no_order(tmp_path: Path) -> None:
    machine = Machine()
    assert reboot(tmp_path, machine, check=True).of("h1") == ["x: changed"]
    assert machine.orders == []


def test_this_machine_is_not_rebooted(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: x, reboot: {}}"), inventory="[all]\nh1 ansible_connection=local\n", connections=FakeConnections())
    assert "would end this run" in last(played)["msg"]
