"""systemd executes itself anew (a package, a second run of nodectl) just when it is asked: it is asked again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nodectl.agent import units
from tests.agent.modules_sys.scripted import Answer, Scripted, reason

SHOWN = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nType=simple\n"
BUS = "Failed to get properties: Message recipient disconnected from message bus without replying\n"
JOB = "Failed to start x.service: Connection reset by peer\nSee system logs and 'systemctl status x.service' for details.\n"
NO_SYSTEMD = "System has not been booted with systemd as init system (PID 1). Can't operate.\nFailed to connect to bus: Host is down\n"


class Away(Scripted):
    """systemctl fails ``times`` times with ``says``."""

    def __init__(self, times: int, says: str) -> None:
        self.times = times
        self.says = says
        self.pauses: list[float] = []
        super().__init__({"systemctl": self._answer, "journalctl": (0, "", "")})

    def _answer(self, argv: Sequence[str]) -> Answer:
        self.times -= 1
        return (1, "", self.says) if self.times >= 0 else (0, SHOWN, "")

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.mark.parametrize("says", [BUS, JOB])
def test_it_is_asked_again_and_a_little_later(says: str) -> None:
    system = Away(2, says)
    assert units.show(system, "x.service")["ActiveState"] == "active"
    assert system.pauses == [units.AWAY_PAUSE] * 2
    system = Away(2, says)
    assert units.systemctl(system, ["start", "x.service"], 1.0).rc == 0
    assert system.ran == ["systemctl start x.service"] * 3


def test_not_for_ever() -> None:
    system = Away(99, BUS)
    assert "disconnected from message bus" in reason(lambda: units.show(system, "x.service"))
    assert len(system.ran) == units.AWAY_TRIES


def test_another_failure_is_told_at_once() -> None:
    system = Away(99, NO_SYSTEMD)
    assert "has not been booted with systemd" in reason(lambda: units.show(system, "x.service"))
    assert len(system.ran) == 1
