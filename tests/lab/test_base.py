from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import pytest

from nodectl.lab import base, repo
from nodectl.lab.problem import LabProblem

MIRROR = "http://mirror.example/debian"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(base.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(base.MIRROR_VARIABLE, MIRROR)
    return tmp_path / "cache"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for debootstrap and apt; everything around them is real. Gives the list of what was run."""
    calls: list[str] = []

    def run(argv: list[str], timeout: float = 0.0) -> str:
        calls.append(" ".join(argv))
        root = Path(argv[-2])
        (root / "usr/bin").mkdir(parents=True)
        (root / "usr/bin/python3").symlink_to("python3.11")
        return ""

    monkeypatch.setattr(base, "run", run)
    monkeypatch.setattr(base, "_furnish", lambda root: None)
    monkeypatch.setattr(repo, "build", lambda folder, *rest: folder.mkdir())
    return calls


def quiet(text: str) -> None:
    return None


def test_the_cache_is_where_the_variable_says(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert base.cache_folder() == cache
    monkeypatch.delenv(base.CACHE_VARIABLE)
    assert base.cache_folder() == Path("/var/cache/nodectl/lab")
    monkeypatch.setenv(base.CACHE_VARIABLE, "/tmp/a:b")
    with pytest.raises(LabProblem, match="NODECTL_LAB_CACHE /tmp/a:b"):
        base.cache_folder()


def test_the_key_changes_with_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    first = base.key(MIRROR)
    assert first == base.key(MIRROR)
    assert first.startswith("bookworm-")
    assert base.key("http://other.example") != first
    monkeypatch.setattr(base, "REPO_PACKAGES", [*base.REPO_PACKAGES, "more"])
    assert base.key(MIRROR) != first


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("http://near.example/debian/ bookworm main\n", "http://near.example/debian"),
        ("http://near.example/debian trixie main\n", base.DEFAULT_MIRROR),
        ("http://near.example/debian bookworm contrib\nhttps://b.example bookworm main\n", "https://b.example"),
        ("file:/srv/repo bookworm main\n", base.DEFAULT_MIRROR),
        ("", base.DEFAULT_MIRROR),
    ],
)
def test_the_machines_own_mirror_is_used_when_it_has_this_debian(monkeypatch: pytest.MonkeyPatch, listed: str, expected: str) -> None:
    monkeypatch.delenv(base.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr(base, "attempt", lambda argv: subprocess.CompletedProcess(argv, 0, listed, ""))
    assert base.mirror() == expected


def test_a_base_is_built_once_and_has_its_name_only_when_whole(cache: Path, builder: list[str]) -> None:
    first = base.prepared(quiet)
    assert first == base.prepared(quiet)
    assert first.python == "3.11"
    assert len(builder) == 1
    assert MIRROR in builder[0]
    assert "--kill-child" in builder[0]
    assert [path.name for path in cache.iterdir()] == [base.key(MIRROR)]


def test_a_build_that_fails_leaves_nothing_and_the_next_one_builds(cache: Path, builder: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path, *rest: object) -> None:
        folder.mkdir()
        raise LabProblem("the mirror is gone")

    with monkeypatch.context() as patch:
        patch.setattr(repo, "build", broken)
        with pytest.raises(LabProblem, match="the mirror is gone"):
            base.prepared(quiet)
    assert list(cache.iterdir()) == []
    assert base.prepared(quiet).root.is_dir()


def test_what_a_killed_builder_left_is_swept(cache: Path, builder: list[str]) -> None:
    partial = cache / f"{base.key(MIRROR)}.partial"
    (partial / "root/old").mkdir(parents=True)
    assert not (base.prepared(quiet).root / "old").exists()
    assert not partial.exists()


def test_two_builders_build_once(cache: Path, builder: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_furnish", lambda root: time.sleep(0.3))
    threads = [threading.Thread(target=base.prepared, args=(quiet,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(builder) == 1


def test_cached_bases_are_removed_on_request(cache: Path, builder: list[str]) -> None:
    assert base.forget() == []
    entry = base.prepared(quiet).root.parent
    assert base.forget() == [entry]
    assert not entry.exists()


def test_a_tree_without_a_python_of_its_own_is_refused(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/python3").symlink_to("/etc/alternatives/python3")
    with pytest.raises(LabProblem, match=r"expected python3\.N"):
        base._python_version(tmp_path)
