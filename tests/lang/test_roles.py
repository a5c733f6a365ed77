"""What is read of a role beside its tasks, and what is said when it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.lang.fields import Checker
from nodectl.lang.load import load_role
from nodectl.lang.roles import RoleFiles, RoleSource, find_file, find_role, read_role
from nodectl.wire.origin import Origin
from tests.lang.specs import known

AT = Origin("site.yml", 3, 7, 4)


def read(root: Path, files: dict[str, str], **parts: str) -> tuple[RoleSource, Collector]:
    for name, text in files.items():
        path = root / "r" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = Collector()
    return read_role("r", root / "r", {}, RoleFiles(**parts), Checker(found), AT), found


@pytest.mark.parametrize("name", ["main.yml", "main.yaml", "main.json", "main"])
def test_endings_of_files(tmp_path: Path, name: str) -> None:
    source, found = read(tmp_path, {f"defaults/{name}": '{"a": 1}'})
    assert source.role.defaults == {"a": 1}
    assert not list(found)
    assert find_file(tmp_path / "r/defaults", "main") == tmp_path / "r/defaults" / name


def test_a_folder_of_variables_is_laid_over_in_order(tmp_path: Path) -> None:
    source, found = read(tmp_path, {"defaults/main/10-a.yml": "a: 1\nb: 1\n", "defaults/main/sub/20-b.yml": "b: 2\n", "defaults/main/note.txt": "no variables"})
    assert source.role.defaults == {"a": 1, "b": 2}
    assert source.role.origins["b"].file.endswith("20-b.yml")
    assert not list(found)


def test_argument_specs_may_stand_in_either_file_of_meta(tmp_path: Path) -> None:
    source, _ = read(tmp_path, {"meta/main.yml": "argument_specs: {main: {options: {a: {type: int}}}}\nallow_duplicates: true\n"})
    assert source.role.argument_specs == {"main": {"options": {"a": {"type": "int"}}}}
    assert source.role.allow_duplicates
    source, _ = read(tmp_path, {"meta/argument_specs.yml": "argument_specs: {main: {options: {b: {}}}}\n"})
    assert list(source.role.argument_specs["main"]["options"]) == ["b"], "its own file wins"


@pytest.mark.parametrize(
    ("files", "parts", "code", "place"),
    [
        ({"defaults/main.yml": "- 1\n"}, {}, "E209", "r/defaults/main.yml:1:1"),
        ({"vars/main.yml": "2x: 1\n"}, {}, "E221", "r/vars/main.yml:1:1"),
        ({"vars/main.yml": "x: '{{ y'\n"}, {}, "E213", "r/vars/main.yml:1:4"),
        ({"meta/main.yml": "text\n"}, {}, "E209", "r/meta/main.yml:1:1"),
        ({"meta/main.yml": "dependencies: other\n"}, {}, "E209", "r/meta/main.yml:1:15"),
        ({"defaults/main.yml": "a: 1\n"}, {"vars": "other"}, "E210", "site.yml:3:7"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, files: dict[str, str], parts: dict[str, str], code: str, place: str) -> None:
    found = read(tmp_path, files, **parts)[1]
    assert [one.code for one in found] == [code]
    assert str(next(iter(found)).origin).endswith(place)


def test_where_roles_are_looked_for(tmp_path: Path) -> None:
    places = ["play/roles/a", "path/a", "path/b", "beside/b", "beside/c", "play/d"]
    for place in places:
        (tmp_path / place).mkdir(parents=True)

    def found(name: str) -> Any:
        folder = find_role(name, tmp_path / "play", [tmp_path / "path"], tmp_path / "beside")
        return folder and str(folder.relative_to(tmp_path))

    assert [found(name) for name in "abcde"] == ["play/roles/a", "path/b", "beside/c", "play/d", None]


@pytest.mark.parametrize(
    ("parts", "code"),
    [({"tasks_from": "absent"}, "E210"), ({"handlers_from": "absent"}, "E210"), ({"vars_from": "absent"}, "E210"), ({}, "")],
)
def test_include_role_with_files_that_are_missing(tmp_path: Path, parts: dict[str, Any], code: str) -> None:
    (tmp_path / "roles/r/tasks").mkdir(parents=True)
    (tmp_path / "roles/r/tasks/main.yml").write_text("- debug:\n")
    found = Collector()
    load_role("r", {}, tmp_path, None, [], known, found, **parts)
    assert [one.code for one in found] == ([code] if code else [])


def test_include_role_of_a_role_that_is_missing(tmp_path: Path) -> None:
    found = Collector()
    loaded = load_role("none", {}, tmp_path, None, [], known, found)
    assert [one.code for one in found] == ["E211"]
    assert loaded.nodes == ()


def test_roles_that_need_each_other(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"roles/{one}/meta").mkdir(parents=True)
        (tmp_path / f"roles/{one}/meta/main.yml").write_text(f"dependencies: [{other}]\n")
    found = Collector()
    load_role("a", {}, tmp_path, None, [], known, found)
    assert [(one.code, one.message) for one in found] == [("E215", "role 'a' needs itself")]
