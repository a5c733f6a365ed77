"""Copies of an object store, by the program of the role object_cache: whole or not at all, and never over what is there."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nodectl.shipped import shipped

# Answers `size` with what SIZE says, and copies one file, or dies half-way.
RCLONE = """\
#!/bin/sh
case $1 in
size) cat "$(dirname "$0")/size" ;;
copy) echo data > "$3/one.bin"; test ! -e "$(dirname "$0")/dies" ;;
esac
"""
SOURCE = "s3://dataset/set"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("object_mount", str(shipped("roles") / "object_cache" / "files" / "object-mount"))
    spec = importlib.util.spec_from_loader("object_mount", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Node:
    """A folder for the copy, and an rclone that says what the test wants."""

    def __init__(self, program: ModuleType, place: Path) -> None:
        self.program, self.place, self.folder = program, place, place / "set"
        self.folder.mkdir()
        (place / "rclone").write_text(RCLONE)
        (place / "rclone").chmod(0o755)
        self.says(count=1, bytes=5)

    def says(self, **size: int) -> None:
        (self.place / "size").write_text(json.dumps(size))

    def copy(self, source: str = SOURCE) -> Any:
        mount = {"path": str(self.folder), "source": source, "uid": os.getuid(), "gid": os.getgid()}
        return self.program.copy(mount, [str(self.place / "rclone"), "copy", "r:dataset/set", str(self.folder), "--config=/etc/x"])

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def node(program: ModuleType, tmp_path: Path) -> Node:
    return Node(program, tmp_path)


def test_a_copy_is_made_once(node: Node) -> None:
    assert node.copy() == ""
    assert node.names() == {"one.bin", ".nodectl-copied"}
    (node.folder / "one.bin").write_text("changed by a job")
    assert node.copy() == ""
    assert (node.folder / "one.bin").read_text() == "changed by a job"
    assert node.copy("s3://other") == f"{node.folder} holds a copy of {SOURCE}: remove it, or choose another folder"


def test_a_source_without_a_file_is_no_copy(node: Node) -> None:
    """S3 lists nothing for a prefix that does not exist, and rclone copies that without a word."""
    node.says(count=0, bytes=0)
    assert node.copy() == f"the store holds no file in {SOURCE}: is it spelled right?"
    assert node.names() == {".nodectl-copying"}
    node.says(count=1, bytes=5)
    assert node.copy() == ""


def test_a_copy_that_ended_half_way_is_not_whole_and_goes_on(node: Node) -> None:
    (node.place / "dies").touch()
    assert "is not copied in full" in node.copy()
    assert node.names() == {"one.bin", ".nodectl-copying"}
    (node.place / "dies").unlink()
    assert node.copy() == ""
    assert node.names() == {"one.bin", ".nodectl-copied"}


def test_what_does_not_fit_or_is_taken_is_refused_before_a_byte(node: Node) -> None:
    node.says(count=9, bytes=10**18)
    assert f"has {10**18} bytes, and {node.folder} has room for" in node.copy()
    (node.place / "size").write_text("")
    with pytest.raises(ValueError, match="Expecting value"):
        node.copy()
    (node.folder / ".nodectl-copying").unlink()
    (node.folder / "mine").touch()
    assert node.copy() == f"{node.folder} holds files that nodectl did not put there"
    assert node.names() == {"mine"}
