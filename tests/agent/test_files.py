"""What the case files cannot say about file modules: backups, secrets on the way, mounts, content that was not sent."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

from nodectl.agent.system import Mount, System
from tests.agent.conftest import RunModule


def sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def test_unchanged_content_need_not_be_sent(tmp_path: Path, run: RunModule) -> None:
    (tmp_path / "f").write_bytes(b"same")
    outcome = run("copy", {"dest": str(tmp_path / "f"), "checksum": sha1(b"same"), "mode": "0600"})
    assert outcome.changed
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
    assert not run("copy", {"dest": str(tmp_path / "f"), "checksum": sha1(b"same"), "mode": "0600"}).changed


def test_changed_content_is_asked_for(tmp_path: Path, run: RunModule) -> None:
    (tmp_path / "f").write_bytes(b"old")
    args = {"dest": str(tmp_path / "f"), "checksum": sha1(b"new")}
    outcome = run("copy", args)
    assert outcome.failed
    assert outcome.values["needs_content"] is True
    assert (tmp_path / "f").read_bytes() == b"old"
    check = run("copy", args, check=True)
    assert (check.changed, check.failed) == (True, False)
    assert sha1(b"new") in check.diff[0]["after"]


def test_content_by_blob_is_compared_with_its_checksum(tmp_path: Path, run: RunModule) -> None:
    args = {"dest": str(tmp_path / "f"), "content_blob": "content", "checksum": sha1(b"promised")}
    assert "does not match" in run("copy", args, blobs={"content": b"other"}).msg
    assert run("copy", args, blobs={"content": b"promised"}).changed
    assert (tmp_path / "f").read_bytes() == b"promised"


def test_nothing_to_copy_is_said(tmp_path: Path, run: RunModule) -> None:
    assert "neither content nor remote_src" in run("copy", {"dest": str(tmp_path / "f"), "src": "x"}).msg


@pytest.mark.parametrize(("module", "args", "key"), [("copy", {"content": "new"}, "backup_file"), ("lineinfile", {"line": "new"}, "backup"), ("blockinfile", {"block": "new"}, "backup_file")])
def test_backup(tmp_path: Path, run: RunModule, module: str, args: dict[str, str], key: str) -> None:
    path = tmp_path / "f"
    path.write_text("old\n")
    path.chmod(0o640)
    name = "dest" if module == "copy" else "path"
    outcome = run(module, {name: str(path), "backup": True, **args})
    kept = Path(outcome.values[key])
    assert kept.read_text() == "old\n"
    assert kept.stat().st_mode & 0o777 == 0o640
    assert re.fullmatch(r"f\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~", kept.name)
    assert path.read_text() != "old\n"
    again = run(module, {name: str(path), "backup": True, **args})
    assert not again.changed
    assert len(list(tmp_path.iterdir())) == 2, "no backup of a file that did not change"


def test_backup_of_nothing(tmp_path: Path, run: RunModule) -> None:
    assert "backup_file" not in run("copy", {"dest": str(tmp_path / "f"), "content": "x", "backup": True}).values


def test_the_file_under_test_is_private(tmp_path: Path, run: RunModule) -> None:
    """`validate` gets the content before owner and mode are set on it: nobody else may read it there."""
    proof = tmp_path / "proof"
    args = {"dest": str(tmp_path / "f"), "content": "secret", "validate": f"sh -c 'stat -c %a $0 > {proof}; stat -c %a $(dirname $0) >> {proof}' %s"}
    outcome = run("copy", args)
    assert outcome.changed, outcome.msg
    assert proof.read_text().split() == ["600", "700"]
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o644


def test_validate_without_a_place_for_the_file(tmp_path: Path, run: RunModule) -> None:
    assert "must contain %s" in run("copy", {"dest": str(tmp_path / "f"), "content": "x", "validate": "true"}).msg


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner_group_mode_in_one_go(tmp_path: Path, run: RunModule) -> None:
    outcome = run("copy", {"dest": str(tmp_path / "f"), "content": "x", "owner": "1234", "group": "2345", "mode": "0640"})
    found = (tmp_path / "f").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (1234, 2345, 0o640)
    assert (outcome.values["owner"], outcome.values["uid"]) == ("1234", 1234)
    run("copy", {"dest": str(tmp_path / "f"), "content": "y"})
    assert (tmp_path / "f").stat().st_uid == 1234, "the owner stays when none is wished"


class Mounted(System):
    """A mount table with one more line."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target

    def mounts(self) -> list[Mount]:
        return [Mount("bucket:", self.target, "fuse.rclone", "rw", "/", "0:99")]


@pytest.mark.parametrize("inside", ["", "/deep/er"])
def test_a_mounted_bucket_is_never_removed(tmp_path: Path, run: RunModule, inside: str) -> None:
    folder = tmp_path / "data"
    (folder / "deep/er").mkdir(parents=True)
    for check in (True, False):
        outcome = run("file", {"path": str(folder), "state": "absent"}, check=check, system=Mounted(f"{folder}{inside}"))
        assert outcome.failed
        assert f"{folder}{inside} is mounted there" in outcome.msg
    assert (folder / "deep/er").is_dir()


def test_a_neighbour_with_a_longer_name_is_no_mount_inside(tmp_path: Path, run: RunModule) -> None:
    (tmp_path / "data").mkdir()
    assert run("file", {"path": str(tmp_path / "data"), "state": "absent"}, system=Mounted(f"{tmp_path}/data2")).changed


def test_large_and_binary_content_is_not_shown(tmp_path: Path, run: RunModule) -> None:
    outcome = run("copy", {"dest": str(tmp_path / "big"), "content": "x" * 200_000})
    assert outcome.diff[0]["after"] == "(content of more than 104448 bytes is not shown)\n"
    (tmp_path / "bin").write_bytes(b"\0\1")
    outcome = run("copy", {"dest": str(tmp_path / "bin"), "content": "text"})
    assert outcome.diff[0] == {"before": "(binary content is not shown)\n", "after": "text", "before_header": str(tmp_path / "bin"), "after_header": str(tmp_path / "bin")}


def test_bytes_that_are_no_text_survive_an_edit(tmp_path: Path, run: RunModule) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"caf\xe9\nb\n")
    assert run("lineinfile", {"path": str(path), "regexp": "^b", "line": "c"}).changed
    assert path.read_bytes() == b"caf\xe9\nc\n"
    assert run("blockinfile", {"path": str(path), "block": "d"}).changed
    assert path.read_bytes().startswith(b"caf\xe9\nc\n# BEGIN")


def test_tilde_is_the_home_of_the_agents_user(run: RunModule) -> None:
    assert run("stat", {"path": "~"}).values["stat"]["isdir"] is True


def test_slurp_refuses_what_does_not_fit(tmp_path: Path, run: RunModule) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(33 * 1024 * 1024)
    assert "slurp takes at most" in run("slurp", {"src": str(tmp_path / "big")}).msg
    assert run("slurp", {"src": "/proc/version"}).values["content"]
