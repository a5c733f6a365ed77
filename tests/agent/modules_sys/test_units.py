from __future__ import annotations

from typing import Any

import pytest

from nodectl.agent import units
from nodectl.agent.modules import service, systemd
from tests.agent.modules_sys.scripted import Answer, Scripted, filled, reason


class Manager(Scripted):
    """A systemd with one unit; ``dies`` is what becomes of it when it is started."""

    def __init__(self, dies: str = "", **state: str) -> None:
        self.dies = dies
        base = {"LoadState": "loaded", "ActiveState": "inactive", "SubState": "dead", "UnitFileState": "disabled", "Type": "simple", "Result": "success", "ExecMainStatus": "0"}
        self.state = dict(base, **state)
        super().__init__({"systemctl show": lambda argv: (0, "".join(f"{k}={v}\n" for k, v in self.state.items()), ""), "systemctl": self._order, "journalctl": (0, "cannot open /x\n", "")})

    def _order(self, argv: Any) -> Answer:
        word = argv[1]
        if word in ("start", "restart"):
            self.state.update(ActiveState=self.dies or "active", SubState=self.dies or "running", Result="exit-code" if self.dies else "success")
        changes = {"stop": ("ActiveState", "inactive"), "enable": ("UnitFileState", "enabled"), "disable": ("UnitFileState", "disabled"), "mask": ("LoadState", "masked"), "unmask": ("LoadState", "loaded")}
        if word in changes:
            self.state[changes[word][0]] = changes[word][1]
        return 0, "", ""

    def orders(self) -> list[str]:
        return [line.split(" ", 1)[1] for line in self.ran if line.startswith("systemctl") and " show " not in line]


def run(manager: Manager, check: bool = False, **args: Any) -> Any:
    return systemd.act(manager, filled(systemd.SPEC, name="chrony", **args), check)


CASES: list[tuple[dict[str, str], dict[str, Any], list[str]]] = [
    ({}, {"state": "started"}, ["start chrony.service"]),
    ({"ActiveState": "active"}, {"state": "started"}, []),
    ({"ActiveState": "failed"}, {"state": "started"}, ["start chrony.service"]),
    ({"ActiveState": "active"}, {"state": "stopped"}, ["stop chrony.service"]),
    ({"ActiveState": "failed"}, {"state": "stopped"}, []),
    ({"ActiveState": "active"}, {"state": "restarted"}, ["restart chrony.service"]),
    ({"ActiveState": "active"}, {"state": "reloaded"}, ["reload chrony.service"]),
    ({}, {"state": "reloaded"}, ["start chrony.service"]),
    ({}, {"enabled": True, "state": "started"}, ["enable chrony.service", "start chrony.service"]),
    ({"UnitFileState": "enabled"}, {"enabled": True}, []),
    ({"UnitFileState": "static"}, {"enabled": True}, []),
    ({"UnitFileState": "enabled"}, {"enabled": False}, ["disable chrony.service"]),
    ({}, {"masked": True}, ["mask chrony.service"]),
    ({"LoadState": "masked"}, {"masked": False, "state": "started"}, ["unmask chrony.service", "start chrony.service"]),
]


@pytest.mark.parametrize(("state", "args", "orders"), CASES)
def test_orders(state: dict[str, str], args: dict[str, Any], orders: list[str]) -> None:
    manager = Manager(**state)
    foretold = run(manager, check=True, **args)
    assert manager.orders() == []
    done = run(manager, **args)
    assert manager.orders() == orders
    assert done.changed == foretold.changed == bool(orders)
    assert done.msg == foretold.msg


def test_a_service_that_dies_is_a_failure_with_its_last_words() -> None:
    said = reason(lambda: run(Manager(dies="failed"), state="started"))
    assert "is failed" in said
    assert "cannot open /x" in said


def test_a_oneshot_may_be_inactive_afterwards() -> None:
    manager = Manager(Type="oneshot")
    manager.dies = "inactive"
    manager._order = lambda argv: (0, "", "")  # type: ignore[method-assign]
    manager.answers = dict(manager.answers, systemctl=(0, "", ""))
    assert run(manager, state="started").changed


def test_no_such_unit() -> None:
    assert "there is no unit chrony.service" in reason(lambda: run(Manager(LoadState="not-found"), state="started"))
    told = run(Manager(LoadState="not-found"), check=True, state="started")
    assert told.changed
    assert "earlier step" in told.msg
    assert not run(Manager(LoadState="not-found"), check=True, state="stopped").changed


def test_masked_cannot_be_started() -> None:
    assert "masked: false" in reason(lambda: run(Manager(LoadState="masked"), state="started"))


def test_static_has_nothing_to_disable() -> None:
    assert "static" in run(Manager(UnitFileState="static"), enabled=False).warnings[0]


def test_systemctl_that_fails() -> None:
    broken = Manager()
    broken.answers = dict(broken.answers, systemctl=(1, "", "Access denied"))
    assert "start chrony.service: Access denied" in reason(lambda: run(broken, state="started"))


def test_without_systemd() -> None:
    none = Manager()
    none.answers = {"systemctl show": (1, "", "Host is down")}
    assert "is systemd the first process" in reason(lambda: run(none, state="started"))


def test_service_is_the_same() -> None:
    manager = Manager()
    assert service.act(manager, filled(service.SPEC, name="chrony.service", state="started"), False).values["name"] == "chrony.service"
    assert units.full_name("data.mount") == "data.mount"
