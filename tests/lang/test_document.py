"""YAML in, values with places out; and no text whatever makes it raise or hang."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodectl.diagnostics.model import Collector
from nodectl.lang import document
from nodectl.lang.document import Map, Seq
from nodectl.lang.scalars import plain
from nodectl.lang.unsafe import Unsafe
from nodectl.wire.params import OctalInt


def parsed(text: str) -> tuple[Any, Collector]:
    found = Collector()
    return document.parse(text, "f.yml", found), found


def codes(text: str) -> list[str]:
    return [one.code for one in parsed(text)[1]]


def test_every_key_and_value_knows_its_place() -> None:
    value, found = parsed("a: one\nb:\n  - x: 'quoted'\n    y: |\n      text\n  - [1, 22]\n")
    assert not list(found)
    assert isinstance(value, Map)
    assert value == {"a": "one", "b": [{"x": "quoted", "y": "text\n"}, [1, 22]]}
    assert str(value.key_at["b"]) == "f.yml:2:1"
    assert value.value_at["a"] == ("f.yml", 1, 4, 3)
    inner = value["b"][0]
    assert value["b"].item_at[0] == ("f.yml", 3, 5, 1)
    assert inner.value_at["x"] == ("f.yml", 3, 8, 8), "the width takes in the quotes"
    assert inner.value_at["y"] == ("f.yml", 4, 8, 1), "a block text is shown at its sign"
    assert isinstance(value["b"][1], Seq)
    assert value["b"][1].item_at[1] == ("f.yml", 6, 9, 2)


def test_columns_count_characters_not_bytes() -> None:
    value, _ = parsed("{ä: 1, ö: x}")
    assert value.value_at["ö"].column == 11


# As one text: a list of so many quoted words could not be read.
WORDS_TEXT = """
yes Yes YES no No NO true True TRUE false False FALSE on On ON off Off OFF y n Y N
~ null Null NULL 0 1 -1 +1 12_000 0644 0o644 08 09 007 0x1F 0xZZ 0b101 0b102 1.5 1. .5 -.5 1e3 1.0e+3 1.5e3 .inf -.inf .NaN
10:30 08:30 1:2:3 190:20:30.15 1.10 22.04 1.2.3 abc 1a a1 = << - -a 0_7 -0644 +0x10 ._ _1
"""
WORDS = WORDS_TEXT.split()


@pytest.mark.parametrize("word", [word for word in WORDS if word not in ("=", "<<", "-")])
def test_words_mean_what_pyyaml_and_with_it_ansible_reads(word: str) -> None:
    mine, theirs = plain(word), yaml.safe_load(f"[{word}]")[0]
    assert (repr(float(mine)) if isinstance(mine, float) else mine) == (repr(float(theirs)) if isinstance(theirs, float) else theirs)
    assert isinstance(mine, bool) == isinstance(theirs, bool)


def test_octal_is_remembered_and_dates_stay_text() -> None:
    assert isinstance(plain("0644"), OctalInt)
    assert plain("0644") == 0o644
    assert not isinstance(plain("644"), OctalInt)
    assert plain("2024-01-01") == "2024-01-01"
    assert plain("9" * 5000) == "9" * 5000, "Python refuses to read so long a number"


def test_quoted_and_tagged_scalars() -> None:
    value, found = parsed("- 'yes'\n- \"1\"\n- !!str 1\n- !!int '2'\n- !unsafe '{{ x }}'\n- ! 5\n")
    assert not list(found)
    assert value[:4] == ["yes", "1", "1", 2]
    assert isinstance(value[4], Unsafe)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a: 1\na: 2\n", "E102", "f.yml:2:1"),
        ("{a: 1, b: {c: 1, c: 2}}", "E102", "f.yml:1:18"),
        ("a: 1\n\tb: 2", "E103", "f.yml:2:1"),
        ("a:\n  - b\n\t- c", "E103", "f.yml:3:1"),
        ("- !vault x", "E105", "f.yml:1:3"),
        ("- !foo x", "E104", "f.yml:1:3"),
        ("- !!python/name:os.system x", "E104", "f.yml:1:3"),
        ("? [a]\n: 1", "E107", "f.yml:1:3"),
        ("a: {{ x }}", "E108", "f.yml:1:4"),
        ("a: 1:30", "E110", "f.yml:1:4"),
        ("a: b: c", "E101", "f.yml:1:5"),
        ("a: 'x", "E101", "f.yml:1:4"),
        ("a: [1, 2\nb: 3", "E101", "f.yml:1:4"),
        ("a: 1\n--- \nb: 2", "E101", "f.yml:2:1"),
        ("a: *b", "E101", "f.yml:1:4"),
        ("a: &x [*x]", "E101", "f.yml:1:8"),
        ("a: 1\x01", "E101", "f.yml:1:5"),
        ("<<: 3", "E107", "f.yml:1:5"),
        ("[" * 150 + "]" * 150, "E106", "f.yml:1:101"),
    ],
)
def test_each_mistake_has_a_code_and_a_place(text: str, code: str, place: str) -> None:
    found = parsed(text)[1]
    assert [(one.code, str(one.origin)) for one in found] == [(code, place)]


def test_duplicates_are_all_told_and_the_first_value_stays() -> None:
    value, found = parsed("a: 1\na: 2\nb: {c: 1, c: 2}\na: 3\n")
    assert value == {"a": 1, "b": {"c": 1}}
    assert [str(one.origin) for one in found] == ["f.yml:2:1", "f.yml:3:11", "f.yml:4:1"]


def test_a_template_without_quotes_does_not_hide_what_follows() -> None:
    value, found = parsed("a: {{ x }}\nb: 1\nb: 2\n")
    assert [one.code for one in found] == ["E108", "E102"]
    assert value["b"] == 1


def test_merge_keys_and_aliases() -> None:
    value, found = parsed("base: &b {x: 1, y: 2}\na: {<<: *b, y: 3}\nc: {<<: [*b, {z: 4}]}\nd: *b\n")
    assert not list(found)
    assert value["a"] == {"x": 1, "y": 3}
    assert value["c"] == {"x": 1, "y": 2, "z": 4}
    assert value["d"] is value["base"]
    assert value["a"].key_at["x"].line == 1, "a merged key stands where it was written"


def test_an_alias_bomb_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    start = time.monotonic()
    assert codes("\n".join(lines)) == ["E106"]
    assert time.monotonic() - start < 5


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    found = Collector()
    assert document.load(tmp_path / "absent.yml", found) is None
    (tmp_path / "latin.yml").write_bytes(b"a: 1\nb: caf\xe9\n")
    assert document.load(tmp_path / "latin.yml", found) is None
    assert document.load(tmp_path, found) is None
    assert [one.code for one in found] == ["E109"] * 3
    assert str(list(found)[1].origin) == f"{tmp_path}/latin.yml:2:7"


def test_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    path = tmp_path / "bom.yml"
    path.write_bytes("\ufeffa: 1\n".encode())
    found = Collector()
    assert document.load(path, found) == {"a": 1}
    assert not list(found)


@pytest.mark.parametrize(("text", "value"), [("", None), ("# only a comment\n", None), ("---\n", None), ("text", "text"), ("- 1", [1])])
def test_small_documents(text: str, value: Any) -> None:
    assert parsed(text)[0] == value
    assert not codes(text)


def test_yaml_written_and_read_back() -> None:
    value = {"a": [1, None, True, "yes", "1"], "b": {"ü": OctalInt(8)}, "c": Unsafe("{{ x }}")}
    assert document.from_yaml(document.to_yaml(value)) == value
    with pytest.raises(ValueError, match="duplicate key 'a'"):
        document.from_yaml("{a: 1, a: 2}")


# Pieces that YAML treats specially, so that random texts reach its corners.
PIECES = st.sampled_from(
    ["a", "b: ", "- ", "\n", "\n  ", "\t", "{", "}", "[", "]", ",", ": ", "'", '"', "&x ", "*x", "!vault ", "!!str ", "|\n", ">-\n", "#", "%", "@", "`",
     "---\n", "...\n", "<<: ", "? ", "{{ x }}", "0644", "yes", "\x00", "\ufeff", "\u2028", "é", "1:2", "\\", "~"]
)  # fmt: skip


@given(st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=200)))
@settings(max_examples=200, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
def test_no_text_makes_it_raise(text: str) -> None:
    value, found = parsed(text)
    for one in found:
        assert one.origin is not None
        assert one.origin.line >= 1
        assert one.origin.column >= 1
    assert value is None or not found.errors or isinstance(value, (str, int, float, bool, dict, list))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=100, deadline=2000)
def test_what_pyyaml_writes_is_read_back(value: Any) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assert document.bare(parsed(text)[0]) == yaml.safe_load(text)


@pytest.mark.parametrize(("text", "place"), [("a: 1\nb: \x07bell\n", "f.yml:2:4"), ("\x00", "f.yml:1:1"), ("a: \x1b[31m", "f.yml:1:4"), ("one\ntwo\n\x01", "f.yml:3:1")])
def test_a_character_that_yaml_does_not_allow_is_shown_where_it_stands(text: str, place: str) -> None:
    _, found = parsed(text)
    assert [(one.code, str(one.origin)) for one in found] == [("E101", place)]


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_BYTES", 3 * 1024 * 1024)
    path = tmp_path / "big.yml"
    path.write_bytes(b"#" * (3 * 1024 * 1024))
    found = Collector()
    assert document.load(path, found) is None
    assert not list(found), "exactly as large as it may be"
    path.write_bytes(b"#" * (3 * 1024 * 1024 + 1))
    document.load(path, found)
    assert [(one.code, one.message.split(" is ")[1]) for one in found] == [("E106", "larger than 3 MiB")]
