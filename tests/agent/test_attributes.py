"""Owner and mode; chmod itself is the oracle for symbolic modes."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodectl.agent import attributes
from nodectl.agent.contract import Failed

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
CLAUSES = ["u+x", "g-w", "o=", "a=r", "+x", "-x", "=rw", "u=rwX,g=rX,o=X", "go-rwx", "u=g", "o=u", "g+o", "u+s", "g+s", "+t", "o+t", "a+X", "u-s", "ug=rw,o=r", "u+rw-x", "=", "a+rwxst"]


def by_chmod(folder: Path, text: str, mode: int, directory: bool) -> int:
    path = folder / "subject"
    if directory:
        path.mkdir()
    else:
        path.touch()
    try:
        path.chmod(mode)
        subprocess.run(["chmod", "--", text, str(path)], check=True, umask=0o022, capture_output=True)
        return path.stat().st_mode & 0o7777
    finally:
        path.rmdir() if directory else path.unlink()


@pytest.mark.parametrize("directory", [False, True], ids=["file", "directory"])
@pytest.mark.parametrize("text", CLAUSES)
def test_symbolic_as_chmod(tmp_path: Path, text: str, directory: bool) -> None:
    for mode in (0o644, 0o755, 0o600, 0o4750):
        assert attributes.wished_mode(text, mode, directory) == by_chmod(tmp_path, text, mode, directory), f"{text} on {mode:04o}"


WORDS = st.builds(lambda who, sign, what: f"{who}{sign}{what}", st.sampled_from(["u", "g", "o", "a", "ug", "go", ""]), st.sampled_from("+-="), st.sampled_from(["r", "w", "x", "rw", "rX", "X", "u", "g", "o", ""]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(clauses=st.lists(WORDS, min_size=1, max_size=3), mode=st.integers(0, 0o777), directory=st.booleans())
def test_any_symbolic_as_chmod(tmp_path: Path, clauses: list[str], mode: int, directory: bool) -> None:
    text = ",".join(clauses)
    assert attributes.wished_mode(text, mode, directory) == by_chmod(tmp_path, text, mode, directory)


@pytest.mark.parametrize(("text", "mode"), [("0644", 0o644), ("644", 0o644), ("2775", 0o2775), ("0", 0)])
def test_octal(text: str, mode: int) -> None:
    assert attributes.wished_mode(text, 0o777, False) == mode


def test_no_wish() -> None:
    assert attributes.wished_mode(None, 0o644, False) is None
    assert attributes.wished_mode("preserve", 0o644, False) is None


def test_what_is_there(tmp_path: Path) -> None:
    assert attributes.look(None) == {"kind": "absent"}
    (tmp_path / "f").write_text("abc")
    (tmp_path / "l").symlink_to("f")
    os.mkfifo(tmp_path / "p")
    kinds = {name: attributes.look(os.lstat(tmp_path / name))["kind"] for name in ("f", "l", "p", ".")}
    assert kinds == {"f": "file", "l": "link", "p": "other", ".": "directory"}


def test_ids_by_name_and_number() -> None:
    assert attributes.wished({"owner": "root", "group": "0"}) == {"uid": 0, "gid": 0}
    assert attributes.wished({}) == {"uid": None, "gid": None}
    assert attributes.wished({"owner": "12345"}) == {"uid": 12345, "gid": None}


@pytest.mark.parametrize(("args", "words"), [({"owner": "nobody-here"}, "no user 'nobody-here'"), ({"group": "nogroup-here"}, "no group 'nogroup-here'")])
def test_unknown_names_are_predicted_but_not_done(tmp_path: Path, args: dict[str, str], words: str) -> None:
    there = attributes.look(os.lstat(tmp_path))
    ids = attributes.wished(args)
    assert attributes.differences(str(tmp_path), args, ids, there), "an earlier task may make the name: check mode predicts a change"
    with pytest.raises(Failed, match=words):
        attributes.apply(str(tmp_path), args, ids)


@ROOT_ONLY
def test_owner_then_mode(tmp_path: Path) -> None:
    """chown takes the set-user bit away, so the mode must come after it."""
    path = tmp_path / "f"
    path.touch()
    args = {"owner": "1234", "group": "2345", "mode": "6755"}
    attributes.apply(str(path), args, attributes.wished(args))
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (1234, 2345, 0o6755)
    assert attributes.differences(str(path), args, attributes.wished(args), attributes.look(found)) == []


@ROOT_ONLY
def test_chown_alone_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()
    path.chmod(0o4755)
    args = {"owner": "1234"}
    attributes.apply(str(path), args, attributes.wished(args))
    assert path.stat().st_mode & 0o7777 == 0o4755


@ROOT_ONLY
def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    (tmp_path / "l").symlink_to("f")
    args = {"owner": "1234", "mode": "0600"}
    attributes.apply(str(tmp_path / "l"), args, attributes.wished(args))
    assert (tmp_path / "f").stat().st_uid == 0
    assert os.lstat(tmp_path / "l").st_uid == 1234


def test_each_difference_is_a_sentence(tmp_path: Path) -> None:
    there = {"kind": "file", "uid": 1, "gid": 2, "mode": 0o644}
    wishes = {"owner": "3", "group": "4", "mode": "0600"}
    for chosen in itertools.chain.from_iterable(itertools.combinations(wishes, count) for count in range(4)):
        args = {name: wishes[name] for name in chosen}
        assert len(attributes.differences("/f", args, attributes.wished(args), there)) == len(chosen)


def test_returned_values_are_ansibles() -> None:
    there = {"kind": "file", "uid": 0, "gid": 0, "mode": 0o4755, "size": 3, "nlink": 2}
    assert attributes.returned("/f", there) == {"uid": 0, "gid": 0, "owner": "root", "group": "root", "mode": "04755", "size": 3, "state": "hard"}
    assert attributes.returned("/f", {"kind": "absent"}) == {}
    assert attributes.user_name(987654) == "987654"
