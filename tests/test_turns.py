"""Who may be in the room with whom."""

from __future__ import annotations

import fcntl
import threading
import time
from pathlib import Path

import pytest

from tests.turns import turn


def others_can_enter(folder: Path, alone: bool) -> bool:
    """Whether somebody else gets a turn while the caller has theirs; asked of the lock itself, without waiting."""
    with open(folder / "room") as room:
        try:
            fcntl.flock(room, fcntl.LOCK_NB | (fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        except BlockingIOError:
            return False
        return True


@pytest.mark.parametrize(("mine", "theirs", "side_by_side"), [(False, False, True), (False, True, False), (True, False, False), (True, True, False)])
def test_one_who_is_alone_is_with_nobody(tmp_path: Path, mine: bool, theirs: bool, side_by_side: bool) -> None:
    with turn(tmp_path / "new", mine):
        assert others_can_enter(tmp_path / "new", theirs) is side_by_side
    assert others_can_enter(tmp_path / "new", True)


def test_a_turn_ends_when_its_test_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), turn(tmp_path, True):
        raise ZeroDivisionError
    assert others_can_enter(tmp_path, True)


def test_who_waits_to_be_alone_is_not_passed_by(tmp_path: Path) -> None:
    """Without the gate, those who share would follow each other for ever."""
    order: list[str] = []

    def one(name: str, alone: bool) -> threading.Thread:
        def take() -> None:
            with turn(tmp_path, alone):
                order.append(name)

        thread = threading.Thread(target=take)
        thread.start()
        return thread

    with turn(tmp_path, False):
        waits = one("alone", True)
        while _free(tmp_path / "gate"):
            time.sleep(0.001)
        later = one("shares", False)
        later.join(0.05)
    waits.join(10)
    later.join(10)
    assert order == ["alone", "shares"]


def _free(gate: Path) -> bool:
    with open(gate) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
