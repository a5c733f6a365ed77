"""YAML for other tools: what is written is what any reader reads."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nodectl.handoff.block_yaml import block, quoted

VALUES: list[tuple[Any, str]] = [
    ({"a": "b"}, "a: b\n"), ({"a": ["x", "z"]}, "a:\n  - x\n  - z\n"), ({"a": [{"b": "c", "d": 1}]}, "a:\n  - b: c\n    d: 1\n"), ({"a": {}, "b": []}, "a: {}\nb: []\n"),
    ([["x"], []], "- - x\n- []\n"), ({"a": True, "b": False}, "a: true\nb: false\n"), ({}, "{}\n"), ([], "[]\n"), ("x", "x\n"), ({"no": "yes"}, '"no": "yes"\n'),
    ({"a": "10.0.0.1"}, 'a: "10.0.0.1"\n'), ({"a": ""}, 'a: ""\n'), ({"a": "b: c"}, 'a: "b: c"\n'), ({"a": "1e3"}, 'a: "1e3"\n'), ({"a": "kubernetes.io/x-y"}, "a: kubernetes.io/x-y\n"),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=[text for _, text in VALUES])
def test_shapes(value: Any, text: str) -> None:
    assert block(value) == text
    assert yaml.safe_load(text) == value


@pytest.mark.parametrize("value", [1.5, None, {"a": None}, [object()]])
def test_what_has_no_place(value: Any) -> None:
    with pytest.raises(TypeError):
        block(value)


# Words that YAML 1.1 or 1.2 reads as something else than a text.
@pytest.mark.parametrize("word", ["yes", "No", "ON", "off", "y", "N", "null", "Null", "~", "true", "1", "1.0", "0x1f", "1_000", "12:30", "2026-01-01", ".inf", "-", "- a", "#", "<<", "=", "!", "&a", "*a"])
def test_words_that_are_no_texts(word: str) -> None:
    assert yaml.safe_load(quoted(word)) == word
    assert quoted(word).startswith('"')


NESTED = st.recursive(st.text() | st.integers() | st.booleans(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=12)


@given(NESTED)
def test_any_value_comes_back(value: Any) -> None:
    assert yaml.safe_load(block(value)) == value


@given(st.text(alphabet=st.characters(categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Co"]), min_size=1))
def test_odd_characters_come_back_or_are_seen_as_their_escape(text: str) -> None:
    read = yaml.safe_load(quoted(text))
    assert read == "".join(f"\\u{ord(char):04x}" if 0xD800 <= ord(char) <= 0xDFFF else char for char in text)
    assert quoted(text).isprintable()
