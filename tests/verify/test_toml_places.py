"""Places in TOML files: every key of every table where it stands, whatever stands around it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.verify.judging.floor_load import FLOORS
from nodectl.verify.judging.toml_places import syntax_error, tables
from nodectl.verify.suite_load import SUITES

FILES = [(path, name) for folder, name in ((SUITES, "step"), (FLOORS, "floor")) for path in sorted(folder.glob("*.toml"))]


@pytest.mark.parametrize(("path", "name"), FILES, ids=[path.stem for path, _ in FILES])
def test_every_key_that_is_shipped_is_found(path: Path, name: str) -> None:
    text = path.read_text("utf-8")
    lines = text.splitlines()
    entries = tomllib.loads(text)[name]
    found = tables(text, path.name, name)
    assert len(found) == len(entries)
    for table, entry in zip(found, entries, strict=True):
        assert lines[table.at.line - 1].startswith("[[")
        assert set(table.keys) == set(entry)
        for key, at in table.keys.items():
            assert lines[at.line - 1][at.column - 1:][: at.width] == key
            value = table.values[key]
            assert tomllib.loads(f"x = {lines[value.line - 1][value.column - 1:][: value.width]}")["x"] == entry[key]


ODD = '''# [[step]]
top = "[[step]]"
[other]
kind = "not this one"
[[step]]   # a remark
  kind = "a # b"     # another
sizes = [
  "1 MiB",   # kind = "no key"
  "8 MiB",
]
text = """
kind = "inside a text"
[[step]]
"""
single = \'\'\'
[[step]]\'\'\'
"quoted-key" = 1
[[ step ]]
nested = [[1, 2], [3]]
brackets = "[[["
after = 2
[step.sub]
kind = "below"
[[else]]
kind = "c"
[[step]]
kind = 'last'
'''


def test_an_odd_file() -> None:
    found = tables(ODD, "odd.toml", "step")
    assert [table.at.line for table in found] == [5, 18, 26]
    assert list(found[0].keys) == ["kind", "sizes", "text", "single", "quoted-key"]
    assert list(found[1].keys) == ["nested", "brackets", "after"]
    lines = ODD.splitlines()
    kind = found[0].values["kind"]
    assert lines[kind.line - 1][kind.column - 1:][: kind.width] == '"a # b"'
    assert found[2].value("kind").line == 27
    assert found[2].value("nothing") == found[2].at
    assert found[2].key("nothing") == found[2].at
    assert len(tomllib.loads(ODD)["step"]) == 3


@pytest.mark.parametrize("text", ["", "\n\n", "x = 1", "[[", "[[step", "]]", '"""', "step = [{a = 1}]", "\x00", "[[step]]\n= 1"])
def test_what_has_no_tables_gives_none_and_nothing_raises(text: str) -> None:
    assert len(tables(text, "x", "step")) <= 1


@given(st.text(alphabet='[]"\'#= \nkx1,', max_size=80))
def test_anything_is_read_to_its_end(text: str) -> None:
    for table in tables(text, "x", "k"):
        assert 1 <= table.at.line <= len(text.splitlines())


@pytest.mark.parametrize(("text", "place"), [("a = \n", (1, 5)), ("a = 1\nb = [\n", (3, 1)), ("a = 1\na = 2\n", (2, 6))])
def test_a_syntax_error_is_placed(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as error:
        tomllib.loads(text)
    at: Any = syntax_error(str(error.value), "x.toml")
    assert at is None or (at.line, at.column) == place
    assert at is not None or "end of document" in str(error.value)
