"""What filters, tests and lookups say when they cannot do what is asked: the sentence a person reads. Values are in test_oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.lang.lookups import Lookups
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError, UndefinedName

VARIABLES: dict[str, Any] = {"l": [1, 2], "d": {"a": 1}, "s": "text", "n": None, "users": [{"name": "u", "keys": ["k"]}, {"name": "v"}], "mixed": [1, "a"]}

SAYS = [
    # an expression, and a part of what is said about it
    ("l | combine(d)", "combine wants mappings, not 1"),
    ("d | combine(d, list_merge='both')", "list_merge is one of replace, keep"),
    ("l | dict2items", "dict2items wants a mapping, not [1, 2]"),
    ("l | items2dict", "items2dict wants mappings with 'key' and 'value', not 1"),
    ("d | items2dict", "items2dict wants a list"),
    ("users | subelements('keys')", "subelements: no 'keys' in {'name': 'v'}"),
    ("users | subelements('name')", "subelements: 'name' is not a list in"),
    ("s | subelements('keys')", "subelements wants a list, or a mapping of mappings"),
    ("users | subelements('name.x')", "leads through 'u', which is no mapping"),
    ("d | random", "random wants a list or a number, not a mapping"),
    ("l | random(start=1)", "start and step are for numbers only"),
    ("users | rekey_on_member('nam')", "rekey_on_member: no 'nam' in"),
    ("(users + users) | rekey_on_member('name')", "rekey_on_member: 'u' is there twice"),
    ("users | rekey_on_member('name', duplicates='last')", "duplicates is error or overwrite"),
    ("'ture' | bool", "'ture' is neither true nor false for the filter 'bool'"),
    ("s | from_json", "from_json"),
    ("'a: [' | from_yaml", "not YAML"),
    ("'a: 1\na: 2' | from_yaml", "duplicate key 'a'"),
    ("s | hash('nope')", "no hash named 'nope'"),
    ("s | human_to_bytes", "'text' is not a size such as 10M or 1.5 GB"),
    ("'5Q' | human_to_bytes", "'Q' is not a unit"),
    ("s | human_readable", "human_readable wants a number, not the text 'text'"),
    ("5 | human_readable(unit='Q')", "'Q' is not a unit; known are"),
    ("s | comment('lisp')", "comment style 'lisp' is not known"),
    ("s | urlsplit('colour')", "urlsplit knows fragment"),
    ("l | commonpath", "commonpath"),
    ("s | commonpath", "commonpath wants a list of paths, not 'text'"),
    ("d | path_join", "path_join wants a text or a list of texts"),
    ("s | regex_search('(')", "unterminated"),
    ("s | regex_search('t', '\\\\9')", "9"),
    ("n | mandatory('say why')", None),
    ("nope | mandatory('say why')", "say why"),
    ("nope | mandatory", "mandatory variable 'nope' is not defined"),
    ("mixed | sort", "cannot compare"),
    ("mixed | max", "cannot compare text with number"),
    ("'22.04' > 22", "cannot compare text with number"),
    ("s + 1", "cannot add text and something else"),
    ("1 + s", "cannot add text and something else"),
    ("1 / 0", "division by zero"),
    ("s.upper", "'upper' is a function here, not data"),
    ("range(3)", "a range is not a list yet"),
    ("s if n", "an inline `if` without `else` came out as nothing"),
    ("s is version('1', '~')", "'~' is not a comparison"),
    ("s is version('1.0', '>')", "cannot be ordered"),
    ("'1' is version('1.x', '>', version_type='semver')", "is not a semantic version"),
    ("'1' is version('1', version_type='pep')", "version_type 'pep' is not known"),
    ("'' is version('1')", "an empty version cannot be compared"),
    ("s is version('1', strict=true)", "strict=true is not known here"),
    ("s is failed", "the test 'failed' wants a registered result, not 'text'"),
    ("s is regex('x', match_type='all')", "match_type 'all' is not one of search, match, fullmatch"),
    ("nope is string", "'nope' is undefined"),
    ("nope is mapping", "'nope' is undefined"),
    ("not nope", "'nope' is undefined"),
    ("[nope] | to_json", "'nope' is undefined"),
    ("'%s' % [nope]", "'nope' is undefined"),
    ("d.b", "the mapping {'a': 1} has no attribute 'b'"),
    ("l[7]", "the list [1, 2] has no item 7"),
    ("n.x", "null has no attribute 'x'"),
    ("s.x", "the text 'text' has no attribute 'x'"),
    ("lookup('nothing', 1)", "no lookup of this name; known are"),
    ("lookup('file', 'nope.txt')", "file 'nope.txt' not found"),
    ("lookup('first_found', ['a', 'b'])", "none of a, b exists"),
    ("lookup('sequence', 'many')", "sequence cannot read 'many'"),
    ("lookup('sequence', 'start=1 end=3 stride=0')", "the stride is 0"),
    ("lookup('sequence', 'end=999999')", "999999 items are more than 100000"),
    ("lookup('dict', [1])", "the lookup 'dict' wants a mapping"),
    ("lookup('subelements', users)", "wants a list and the name of a key"),
    ("lookup('pipe', 'id')", "nothing outside the files is asked"),
    ("lookup('url', 'http://x')", "nothing outside the files is asked"),
    ("lookup('password', 'x')", "nothing outside the files is asked"),
    ("lookup('env', 'X', errors='sometimes')", "errors='sometimes' is not one of strict, warn, ignore"),
    ("lookup('vars', 'nope')", "'nope' is undefined"),
    ("now()", "nothing outside the files is asked"),
    ("undef('give me a value')", "give me a value"),
    ("omit ~ 'x'", None),
]


@pytest.fixture(scope="module")
def templar() -> Templar:
    return Templar(Lookups())


@pytest.mark.parametrize(("expression", "said"), SAYS, ids=[expression[:40] for expression, _ in SAYS])
def test_what_is_said(templar: Templar, expression: str, said: str | None) -> None:
    text = "{{ " + expression + " }}"
    if said is None:
        templar.render(text, VARIABLES)
        return
    with pytest.raises(TemplateError) as caught:
        templar.render(text, VARIABLES)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [("sise", "size"), ("Size", "size"), ("inventory_hostnam", "inventory_hostname"), ("zzzz", "")],
)
def test_the_nearest_name_is_told(templar: Templar, name: str, near: str) -> None:
    with pytest.raises(UndefinedName) as caught:
        templar.render("{{ " + name + " }}", {"size": 1, "inventory_hostname": "h"})
    assert caught.value.hint == (f"did you mean '{near}'?" if near else "")


RESCUED = [
    # undefined in all its ways, and the default behind it
    "nope", "nope.a.b", "nope['a'][0]", "nope.get('x')", "nope.a()", "d.b", "d.b.c", "l[9]", "nope | first", "nope | map('upper') | list", "nope | int",
    "nope | from_json", "d.b | upper", "(nope | first).x", "lookup('vars', 'nope')", "n.x",
]  # fmt: skip


@pytest.mark.parametrize("expression", RESCUED)
def test_default_works_on_whatever_is_undefined(templar: Templar, expression: str) -> None:
    assert templar.render("{{ " + expression + " | default('rescued') }}", VARIABLES) == "rescued"
    assert templar.render("{{ (" + expression + ") is defined }}", VARIABLES) is False
    with pytest.raises(UndefinedName):
        templar.render("{{ " + expression + " }}", VARIABLES)


SILENT = ["[nope]", "{'a': nope}", "[[{'a': nope}]]", "[d.b, 1]", "{'a': [1, nope]}", "nope", "(nope, 1)"]


@pytest.mark.parametrize("expression", SILENT)
@pytest.mark.parametrize("shape", ["{{ %s }}", "x {{ %s }}", "{{ %s }} x", "{{ %s | string }}", "{{ '' ~ %s }}", "{%% for i in [%s] %%}{{ i }}-{%% endfor %%}"])
def test_what_is_undefined_never_becomes_text(templar: Templar, expression: str, shape: str) -> None:
    with pytest.raises(UndefinedName):
        templar.render(shape % expression, VARIABLES)
    with pytest.raises(UndefinedName):
        templar.render_file("a\n" + shape % expression + "\n", VARIABLES, "a.j2")


def test_files_are_read_with_their_line_ends(tmp_path: Path) -> None:
    (tmp_path / "dos.txt").write_bytes(b"one\r\ntwo\r\n\r\n")
    templar = Templar(Lookups(lambda _kind: [tmp_path]))
    assert templar.render("{{ lookup('file', 'dos.txt') }}", {}) == "one\r\ntwo"
    assert templar.render("{{ lookup('file', 'dos.txt', rstrip=false) }}", {}) == "one\r\ntwo\r\n\r\n"
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(TemplateError, match=r"latin\.txt is not UTF-8 text"):
        templar.render("{{ lookup('file', 'latin.txt') }}", {})


def test_tests_of_files_look_at_the_controller(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    (tmp_path / "l").symlink_to("f")
    (tmp_path / "dangling").symlink_to("nowhere")
    asked = {"f": "exists file is_file link_exists", "l": "exists file is_file link is_link link_exists", "dangling": "link is_link link_exists", ".": "exists directory is_dir link_exists"}
    for name in ("exists", "file", "directory", "link", "link_exists", "is_file", "is_dir", "is_link"):
        for path, holds in asked.items():
            found = Templar().render("{{ p is " + name + " }}", {"p": str(tmp_path / path)})
            assert (path, name, found) == (path, name, name in holds.split())
    assert Templar().render("{{ p is same_file(q) }}", {"p": str(tmp_path / "f"), "q": str(tmp_path / "l")}) is True


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("{{ x | uper }}", "did you mean 'upper'?"),
        ("{{ x is definde }}", "did you mean 'defined'?"),
        ("{{ x | ansible.builtin.b64encod }}", ""),
        ("{{ x | zzzzzz }}", ""),
        ("{{ x", ""),
    ],
)
def test_the_nearest_filter_or_test_is_told(templar: Templar, message: str, advice: str) -> None:
    wrong = templar.syntax_error(message)
    assert wrong is not None
    assert templar.nearest_name(wrong[0]) == advice
