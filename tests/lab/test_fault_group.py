"""When a fault strikes in mid-collective: what counts as being in a group, and that waiting ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.lab import fault_group
from nodectl.lab.fault_group import in_a_group, strike
from nodectl.lab.state import LabHost, LabState

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
# 10.77.1.12:43210 to 10.77.1.11:29500, as the kernel prints it.
ESTABLISHED = "   0: 0C014D0A:A8CA 0B014D0A:733C 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n"


@pytest.mark.parametrize(("table", "peers", "meaning"), [
    (HEAD + ESTABLISHED, ["10.77.1.11"], True),
    (HEAD + ESTABLISHED, ["10.77.1.13", "10.77.1.11"], True),
    (HEAD + ESTABLISHED, ["10.77.1.13"], False),
    (HEAD + ESTABLISHED, ["10.77.1.12"], False),
    (HEAD + ESTABLISHED.replace(" 01 ", " 02 "), ["10.77.1.11"], False),
    (HEAD + ESTABLISHED.replace(" 01 ", " 06 "), ["10.77.1.11"], False),
    (HEAD, ["10.77.1.11"], False), ("", ["10.77.1.11"], False), (HEAD + "garbage\n", ["10.77.1.11"], False),
], ids=["peer", "one of two", "another host", "itself", "still connecting", "closing", "nothing", "empty", "garbage"])  # fmt: skip
def test_in_a_group(table: str, peers: list[str], meaning: bool) -> None:
    assert in_a_group(table, peers) is meaning


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabState:
    state = LabState("id", "dev", tmp_path, phase="up", hosts=(LabHost("n1", "10.77.1.11"), LabHost("n2", "10.77.1.12")))
    state.save()
    monkeypatch.setattr(fault_group, "INTO_IT_S", 0.0)
    monkeypatch.setattr(fault_group, "LOOK_EVERY_S", 0.001)
    return state


def test_it_strikes_once_the_host_talks_to_a_peer(lab: LabState, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, struck = iter([False, False, True]), []
    monkeypatch.setattr(fault_group, "_connected", lambda state, host: next(looks))
    monkeypatch.setattr(fault_group, "STRIKES", {"power": (lambda state, host, value: struck.append(host.name), None)})
    strike(str(lab.dir), "n2", "power")
    assert struck == ["n2"]


def test_it_gives_up_in_time(lab: LabState, monkeypatch: pytest.MonkeyPatch) -> None:
    struck: list[str] = []
    monkeypatch.setattr(fault_group, "PATIENCE_S", 0.02)
    monkeypatch.setattr(fault_group, "_connected", lambda state, host: False)
    monkeypatch.setattr(fault_group, "STRIKES", {"power": (lambda state, host, value: struck.append(host.name), None)})
    strike(str(lab.dir), "n2", "power")
    assert struck == []


def test_without_a_lab_it_ends(tmp_path: Path) -> None:
    strike(str(tmp_path), "n2", "power")


def test_every_strike_can_be_called_off() -> None:
    assert {kind.name for kind in fault_group.group_faults()} == {"dies-in-group", "freezes-in-group", "ranks-die"}
    assert set(fault_group.STRIKES) == {"power", "freeze", "ranks"}
