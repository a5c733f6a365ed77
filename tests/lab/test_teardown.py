from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodectl.lab import lifecycle, teardown
from nodectl.lab.plan import LabPlan
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import STATE_FILE, Kind, LabState, load


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for what needs root; says what was released, in order."""
    order: list[str] = []
    kinds: list[Kind] = ["netns", "link", "process", "host", "mount", "loop", "cgroup"]

    def said(kind: str) -> teardown.Release:
        return lambda state, key: order.append(f"{kind} {key}")

    for kind in kinds:
        monkeypatch.setitem(teardown.RELEASE, kind, said(kind))
    return order


def test_the_last_one_made_goes_first_and_the_folder_with_it(tmp_path: Path, released: list[str]) -> None:
    folder = tmp_path / "new/lab"
    folder.mkdir(parents=True)
    state = LabState("id", "dev", folder)
    for path in (tmp_path / "new", folder):
        state.claim("dir", str(path))
    state.claim("netns", "net")
    state.claim("mount", "root")
    state.claim("host", "n1")
    teardown.take_down(state)
    assert released == ["host n1", "mount root", "netns net"]
    assert list(tmp_path.iterdir()) == []


def test_only_what_was_made_goes(tmp_path: Path, released: list[str]) -> None:
    state = LabState("id", "dev", tmp_path)
    (tmp_path / "mine").write_text("x")
    (tmp_path / "disks").mkdir()
    (tmp_path / "disks/users-own").write_text("x")
    (tmp_path / "disks/a.img").write_text("x")
    (tmp_path / "store").mkdir()
    (tmp_path / "store/x").write_text("x")
    state.claim("dir", str(tmp_path))
    state.claim("dir", str(tmp_path / "disks"))
    state.claim("file", str(tmp_path / "disks/a.img"))
    state.claim("tree", str(tmp_path / "store"))
    state.claim("file", str(tmp_path / "never-made"))
    teardown.take_down(state)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["disks", "disks/users-own", "mine"]


def test_what_cannot_go_is_named_kept_in_the_state_and_does_not_hold_up_the_rest(
    tmp_path: Path, released: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(state: LabState, key: str) -> None:
        raise LabProblem("something has it open")

    state = LabState("id", "dev", tmp_path)
    state.claim("netns", "net")
    state.claim("loop", "/a.img")
    state.claim("host", "n1")
    with monkeypatch.context() as patch:
        patch.setitem(teardown.RELEASE, "loop", busy)
        with pytest.raises(LabProblem, match=r"loop /a\.img: something has it open"):
            teardown.take_down(state)
    assert released == ["host n1", "netns net"]
    left = load(tmp_path)
    assert left is not None
    assert [(r.kind, r.key) for r in left.resources] == [("loop", "/a.img")]
    assert left.phase == "stopping"
    assert lifecycle.down(tmp_path) is True
    assert load(tmp_path) is None


def test_down_where_nothing_is_says_so_and_makes_nothing(tmp_path: Path) -> None:
    assert lifecycle.down(tmp_path) is False
    assert lifecycle.down(tmp_path / "nowhere") is False
    assert list(tmp_path.iterdir()) == []


def test_every_kind_that_can_be_claimed_can_be_released() -> None:
    assert set(teardown.RELEASE) == set(Kind.__args__)  # type: ignore[attr-defined]


def test_an_interrupted_write_of_the_state_does_not_hide_the_lab(tmp_path: Path, released: list[str]) -> None:
    state = LabState("id", "dev", tmp_path)
    state.claim("netns", "net")
    (tmp_path / f"{STATE_FILE}.part").write_text("{ half")
    assert lifecycle.down(tmp_path) is True
    assert released == ["netns net"]
    assert list(tmp_path.iterdir()) == []


def test_status_of_no_lab_is_no_lab(tmp_path: Path) -> None:
    assert lifecycle.status(tmp_path).state is None


def test_a_lab_that_is_up_is_not_started_again(tmp_path: Path) -> None:
    state = LabState("id", "dev", tmp_path, phase="up")
    state.save()
    with pytest.raises(LabProblem, match="lab 'dev' is already up"):
        lifecycle.up(LabPlan(dir=tmp_path))
    assert json.loads((tmp_path / STATE_FILE).read_text())["phase"] == "up"


def test_files_that_no_lab_made_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("all: {}")
    with pytest.raises(LabProblem, match=r"hosts\.yaml exist already and were not made by a lab"):
        lifecycle.up(LabPlan(dir=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["hosts.yaml"]
