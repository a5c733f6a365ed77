"""A step's own folder: nobody else's, gone at the end, and what was abandoned goes with the next one."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from nodectl.agent.own_folder import PREFIX, own_folder, remove_leftovers


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_private_and_gone(tmp_path: Path) -> None:
    with own_folder(str(tmp_path)) as path:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
        (Path(path) / "secret").write_text("x")
    assert names(tmp_path) == []


def test_gone_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="why"), own_folder(str(tmp_path)):
        raise ValueError("why")
    assert names(tmp_path) == []


def test_abandoned_ones_go_and_living_ones_stay(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX}left"
    (left / "below").mkdir(parents=True)
    with own_folder(str(tmp_path)) as first, own_folder(str(tmp_path)) as second:
        assert names(tmp_path) == sorted(map(os.path.basename, (first, second)))


def test_of_another_name_or_kind_stays(tmp_path: Path) -> None:
    """A link of that name leads elsewhere, and a file is none of ours."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / f"{PREFIX}link").symlink_to("elsewhere")
    (tmp_path / f"{PREFIX}file").touch()
    (tmp_path / "nodectl-other").mkdir()
    before = names(tmp_path)
    remove_leftovers(str(tmp_path))
    assert names(tmp_path) == before
    assert names(tmp_path / "elsewhere") == ["kept"]


def test_of_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{PREFIX}left").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    remove_leftovers(str(tmp_path))
    assert names(tmp_path) == [f"{PREFIX}left"]


def test_no_locks_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network filesystems have none: it works, and nothing is taken away, because nobody could tell."""
    (tmp_path / f"{PREFIX}left").mkdir()

    def refused(_handle: int, _how: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refused)
    with own_folder(str(tmp_path)) as path:
        assert os.path.isdir(path)
    assert names(tmp_path) == [f"{PREFIX}left"]


def test_taken_away_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "lexists", lambda _path: False)
    with pytest.raises(OSError, match="were taken away"), own_folder(str(tmp_path)):
        raise AssertionError("not reached")
