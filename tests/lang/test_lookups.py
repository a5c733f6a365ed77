"""Lookups: files where roles keep them, lists for loops, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.lang.lookups import REFUSED, Lookups, sequence
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError


@pytest.fixture
def templar(tmp_path: Path) -> Templar:
    role, play = tmp_path / "role", tmp_path / "play"
    for path, text in {role / "files/a.txt": "role\n\n", play / "files/a.txt": "play\n", play / "files/b.txt": "b\n", role / "templates/t.j2": "x={{ x }}\n"}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Templar(Lookups(lambda kind: [role / kind, role, play / kind, play], environ={"HOME": "/root"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ lookup('file', 'a.txt') }}", "role"),
        ("{{ lookup('file', 'a.txt', rstrip=false) }}", "role\n\n"),
        ("{{ lookup('file', 'a.txt', 'b.txt') }}", "role,b"),
        ("{{ query('file', 'a.txt', 'b.txt') }}", ["role", "b"]),
        ("{{ lookup('file', 'b.txt', wantlist=true) }}", ["b"]),
        ("{{ lookup('template', 't.j2') }}", "x=3\n"),
        ("{{ lookup('env', 'HOME') }}", "/root"),
        ("{{ lookup('env', 'NOPE', default='d') }}", "d"),
        ("{{ lookup('fileglob', '*.txt') | basename }}", "a.txt"),
        ("{{ query('fileglob', '*.none') }}", []),
        ("{{ lookup('first_found', ['none.txt', 'b.txt']) | basename }}", "b.txt"),
        ("{{ lookup('first_found', {'files': ['z', 'a.txt'], 'paths': ['files']}) | basename }}", "a.txt"),
        ("{{ query('first_found', ['none.txt'], skip=true) }}", []),
        ("{{ query('varnames', '^x') }}", ["x"]),
        ("{{ query('subelements', [{'n': 1, 'k': ['a']}], 'k') }}", [[{"n": 1}, "a"]]),
        ("{{ lookup('ansible.builtin.items', [1, 2]) }}", [1, 2]),
    ],
)
def test_lookup(templar: Templar, text: str, expected: Any) -> None:
    assert templar.render(text, {"x": 3}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n{% include 't.j2' %}b\n", "a\nx=3b\n"),
        ("{% import 'macros.j2' as m %}{{ m.twice('q') }}\n", "qq 3\n"),
        ("{% from 'macros.j2' import twice with context %}{{ twice(x) }}\n", "33 3\n"),
        ("{% extends 'base.j2' %}{% block body %}mine {{ x }}{% endblock %}", "[mine 3]"),
        ("{% for y in [1, 2] %}{% include 'loop.j2' %}{% endfor %}\n", "1/3 2/3 \n"),
        ("{% include 'absent.j2' ignore missing %}rest\n", "rest\n"),
    ],
)
def test_template_files_bring_in_others(templar: Templar, tmp_path: Path, text: str, expected: str) -> None:
    others = {"macros": "{% macro twice(a) %}{{ a }}{{ a }} {{ x }}{% endmacro %}\n", "base": "[{% block body %}{% endblock %}]", "loop": "{{ y }}/{{ x }} "}
    for name, body in others.items():
        (tmp_path / f"role/templates/{name}.j2").write_text(body)
    assert templar.render_file(text, {"x": "{{ three }}", "three": 3}, "a.j2") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ lookup('file', 'none.txt') }}", "file 'none.txt' not found; looked in .*role/files"),
        ("{{ lookup('first_found', ['z']) }}", "none of z exists"),
        ("{{ lookup('nope', 1) }}", "no lookup of this name"),
        ("{{ lookup('dict', [1]) }}", "wants a mapping"),
        ("{{ lookup('sequence', 'end=x') }}", "invalid literal"),
        ("{{ lookup('env', 'X', errors='perhaps') }}", "strict, warn, ignore"),
        *((f"{{{{ lookup('{name}', 'x') }}}}", "not available") for name in REFUSED),
    ],
)
def test_lookups_that_fail(templar: Templar, text: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        templar.render(text, {"x": 3})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start=1 end=3", ["1", "2", "3"]),
        ("count=2", ["1", "2"]),
        ("start=0 end=6 stride=3 format=n%02d", ["n00", "n03", "n06"]),
        ("4-8/2:host%02d", ["host04", "host06", "host08"]),
        ("3", ["1", "2", "3"]),
        ("start=3 end=1 stride=-1", ["3", "2", "1"]),
    ],
)
def test_sequence(text: str, expected: list[str]) -> None:
    assert sequence(text) == expected


@pytest.mark.parametrize("text", ["", "start=1", "end=3 step=2", "end=9999999", "start=1 end=2 stride=0"])
def test_sequences_that_cannot_be(text: str) -> None:
    with pytest.raises(ValueError, match="sequence"):
        sequence(text)
