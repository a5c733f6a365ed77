"""Parameters: every type with every kind of value, and the rules between parameters."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.wire import params
from nodectl.wire.params import OctalInt, Param, Problem, Spec, Wrong, check_names, convert, validate

NO = object()  # refused

# One row per value, one column per type: what comes out, or NO.
TYPES = ["str", "int", "float", "bool", "list", "dict", "mode", "raw"]
TABLE: list[tuple[Any, list[Any]]] = [
    # value          str          int   float  bool   list             dict       mode     raw
    ("",            ["",          NO,   NO,    NO,    [],              NO,        NO,      ""]),
    ("abc",         ["abc",       NO,   NO,    NO,    ["abc"],         NO,        NO,      "abc"]),
    ("a, b",        ["a, b",      NO,   NO,    NO,    ["a", "b"],      NO,        NO,      "a, b"]),
    ("yes",         ["yes",       NO,   NO,    True,  ["yes"],         NO,        NO,      "yes"]),
    ("OFF",         ["OFF",       NO,   NO,    False, ["OFF"],         NO,        NO,      "OFF"]),
    ("1",           ["1",         1,    1.0,   True,  ["1"],           NO,        NO,      "1"]),
    ("0",           ["0",         0,    0.0,   False, ["0"],           NO,        NO,      "0"]),
    ("-7",          ["-7",        -7,   -7.0,  NO,    ["-7"],          NO,        NO,      "-7"]),
    (" 5 ",         [" 5 ",       5,    5.0,   NO,    ["5"],           NO,        NO,      " 5 "]),
    ("1.0",         ["1.0",       1,    1.0,   NO,    ["1.0"],         NO,        NO,      "1.0"]),
    ("1.5",         ["1.5",       NO,   1.5,   NO,    ["1.5"],         NO,        NO,      "1.5"]),
    ("1e3",         ["1e3",       1000, 1e3,   NO,    ["1e3"],         NO,        NO,      "1e3"]),
    ("nan",         ["nan",       NO,   NO,    NO,    ["nan"],         NO,        NO,      "nan"]),
    ("inf",         ["inf",       NO,   NO,    NO,    ["inf"],         NO,        NO,      "inf"]),
    ("1e400",       ["1e400",     NO,   NO,    NO,    ["1e400"],       NO,        NO,      "1e400"]),
    ("0x10",        ["0x10",      NO,   NO,    NO,    ["0x10"],        NO,        NO,      "0x10"]),
    ("0644",        ["0644",      644,  644.0, NO,    ["0644"],        NO,        "0644",  "0644"]),
    ("644",         ["644",       644,  644.0, NO,    ["644"],         NO,        "644",   "644"]),
    ("0644\n",      ["0644\n",    644,  644.0, NO,    ["0644"],        NO,        NO,      "0644\n"]),
    ("u=rw,go=r",   ["u=rw,go=r", NO,   NO,    NO,    ["u=rw", "go=r"], NO, "u=rw,go=r",    "u=rw,go=r"]),
    (True,          [NO,          NO,   NO,    True,  [True],          NO,        NO,      True]),
    (False,         [NO,          NO,   NO,    False, [False],         NO,        NO,      False]),
    (0,             ["0",         0,    0.0,   False, ["0"],           NO,        NO,      0]),
    (1,             ["1",         1,    1.0,   True,  ["1"],           NO,        NO,      1]),
    (2,             ["2",         2,    2.0,   NO,    ["2"],           NO,        NO,      2]),
    (644,           ["644",       644,  644.0, NO,    ["644"],         NO,        NO,      644]),
    (OctalInt(0o644), ["420",     420,  420.0, NO,    ["420"],         NO,        "0644",  420]),
    (OctalInt(0o7), ["7",         7,    7.0,   NO,    ["7"],           NO,        "0007",  7]),
    (OctalInt(0o7777), ["4095",   4095, 4095.0, NO,   ["4095"],        NO,        "7777",  4095]),
    (OctalInt(0o10000), ["4096",  4096, 4096.0, NO,   ["4096"],        NO,        NO,      4096]),
    (OctalInt(-1),  ["-1",        -1,   -1.0,  NO,    ["-1"],          NO,        NO,      -1]),
    (2**53 + 1,     [str(2**53 + 1), 2**53 + 1, float(2**53), NO, [str(2**53 + 1)], NO,  NO,      2**53 + 1]),
    (10**400,       [str(10**400), NO,  NO,    NO,    [str(10**400)],  NO,        NO,      10**400]),
    (1.0,           ["1.0",       1,    1.0,   NO,    ["1.0"],         NO,        NO,      1.0]),
    (1.5,           ["1.5",       NO,   1.5,   NO,    ["1.5"],         NO,        NO,      1.5]),
    (float("inf"),  ["inf",       NO,   NO,    NO,    ["inf"],         NO,        NO,      float("inf")]),
    ([],            [NO,          NO,   NO,    NO,    [],              NO,        NO,      []]),
    (["a", 1],      [NO,          NO,   NO,    NO,    ["a", 1],        NO,        NO,      ["a", 1]]),
    (("a",),        [NO,          NO,   NO,    NO,    ["a"],           NO,        NO,      ("a",)]),
    ({},            [NO,          NO,   NO,    NO,    NO,              {},        NO,      {}]),
    ({"a": 1},      [NO,          NO,   NO,    NO,    NO,              {"a": 1},  NO,      {"a": 1}]),
    (None,          [NO,          NO,   NO,    NO,    NO,              NO,        NO,      None]),
    (b"x",          [NO,          NO,   NO,    NO,    [b"x"],          NO,        NO,      b"x"]),
]  # fmt: skip
CELLS = [pytest.param(kind, value, wanted, id=f"{kind} {value!r}"[:40]) for value, row in TABLE for kind, wanted in zip(TYPES, row, strict=True)]


@pytest.mark.parametrize(("kind", "value", "wanted"), CELLS)
def test_every_type_of_every_value(kind: str, value: Any, wanted: Any) -> None:
    if wanted is NO:
        with pytest.raises(Wrong, match=r"^(wants|is the decimal)"):
            convert(Param(kind), value)
        return
    found = convert(Param(kind), value)
    assert found == wanted
    assert type(found) is type(wanted) or kind == "raw"


def test_the_table_has_every_type() -> None:
    assert set(TYPES) | {"path"} == set(params._CONVERT)


@pytest.mark.parametrize("value", ["12345678901234567890", 12345678901234567890, " 12345678901234567890"])
def test_whole_numbers_keep_all_their_digits(value: Any) -> None:
    assert convert(Param("int"), value) == 12345678901234567890


@settings(deadline=None, max_examples=100)
@given(st.sampled_from([*TYPES, "path"]), st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.lists(st.integers()) | st.dates())
def test_no_value_raises_anything_else_than_wrong(kind: str, value: Any) -> None:
    """The agent and the loader catch Wrong; anything else is a crash at exit code 70."""
    with contextlib.suppress(Wrong):
        convert(Param(kind), value)


# -- modes

GOOD_MODES = ["0644", "644", "01777", "1777", "u=rw", "u=rw,go=r", "a+X", "g-w,o-rwx", "+x", "u=g", "=", "o=", "u+s,g+s", "a=rwX", "preserve"]
BAD_MODES = ["", "rw", "0888", "64", "999", "0o644", "00000644", "u=rw,", "u=rw go=r", "u=q", "u:rw", "0644 ", " 0644", "0644\n", "u=rw\n", "Preserve"]


@pytest.mark.parametrize("mode", GOOD_MODES)
def test_modes(mode: str) -> None:
    assert convert(Param("mode"), mode) == mode


@pytest.mark.parametrize("mode", BAD_MODES)
def test_what_is_no_mode(mode: str) -> None:
    with pytest.raises(Wrong, match="octal mode in quotes"):
        convert(Param("mode"), mode)


def test_a_decimal_mode_says_what_it_would_mean() -> None:
    with pytest.raises(Wrong, match=r"is the decimal number 644, which would be mode 1204: write '0644'"):
        convert(Param("mode"), 644)


# -- choices and elements

CHECKED: list[tuple[Param, Any, Any]] = [
    (Param("str", choices=("present", "absent")), "present", "present"),
    (Param("str", choices=("present", "absent")), "latest", "is 'latest'; expected one of present, absent"),
    (Param("int", choices=(1, 2)), "2", 2),
    (Param("int", choices=(1, 2)), 3, "expected one of 1, 2"),
    (Param("list", elements="str", choices=("a", "b")), "a,b", ["a", "b"]),
    (Param("list", elements="str", choices=("a", "b")), ["a", "c"], "is 'c'"),
    (Param("list", elements="str", choices=("a", "b")), [], []),
    (Param("list", elements="int"), "1, 2", [1, 2]),
    (Param("list", elements="int"), 7, [7]),
    (Param("list", elements="int"), ["1", "x"], "wants a whole number, not 'x'"),
    (Param("list", elements="dict"), [{"a": 1}], [{"a": 1}]),
    (Param("list", elements="dict"), ["a"], "wants a mapping, not a text"),
    (Param("list", elements="str"), [None], "wants text, not a null"),
    (Param("list", elements="str"), ["a", ["b"]], "wants text, not a list"),
    (Param("str"), True, "this is the boolean true: quote it"),
    (Param("int"), True, "not a boolean"),
    (Param("list"), {"a": 1}, "not a mapping"),
]


@pytest.mark.parametrize(("param", "value", "wanted"), CHECKED, ids=[f"{param.type} {value!r}" for param, value, _ in CHECKED])
def test_choices_and_elements(param: Param, value: Any, wanted: Any) -> None:
    if not isinstance(wanted, str) or value == wanted:
        assert convert(param, value) == wanted
        return
    with pytest.raises(Wrong) as wrong:
        convert(param, value)
    assert wanted in str(wrong.value)


# -- names and rules between parameters

SPEC = Spec(
    "x",
    {
        "path": Param("path", required=True, aliases=("dest", "name")),
        "state": Param(default="file", choices=("file", "link", "absent")),
        "src": Param("path"),
        "content": Param(),
        "owner": Param(),
        "group": Param(),
        "tags": Param("list", default=[]),
        "env": Param("dict", default={}),
        "force": Param("bool", default=False),
    },
    mutually_exclusive=(("src", "content"),),
    required_one_of=(("src", "content", "force"),),
    required_together=(("owner", "group"),),
    required_if=(("state", "link", ("src", "owner")), ("force", True, ("content",))),
)
ENOUGH = {"path": "/a", "content": "x"}

RULES: list[tuple[dict[str, Any], list[Problem]]] = [
    (ENOUGH, []),
    ({"dest": "/a", "content": "x"}, []),
    ({"content": "x"}, [Problem("", "missing parameter 'path'")]),
    ({"path": None, "content": "x"}, [Problem("", "missing parameter 'path'")]),
    ({**ENOUGH, "dest": "/b"}, [Problem("dest", "'dest' and 'path' are the same parameter")]),
    ({"name": "/a", "dest": "/b", "content": "x"}, [Problem("dest", "'dest' and 'name' are the same parameter")]),
    ({**ENOUGH, "pth": "/b"}, [Problem("pth", "unknown parameter 'pth'")]),
    ({**ENOUGH, "pth": None}, [Problem("pth", "unknown parameter 'pth'")]),
    ({**ENOUGH, "src": "/b"}, [Problem("", "src and content cannot be given together")]),
    ({**ENOUGH, "src": None}, []),
    ({"path": "/a"}, [Problem("", "one of src, content, force is needed")]),
    ({**ENOUGH, "owner": "root"}, [Problem("", "owner and group are needed together")]),
    ({**ENOUGH, "owner": "root", "group": "root"}, []),
    ({"path": "/a", "src": "/b", "state": "link"}, [Problem("", "'owner' is needed when state is link")]),
    ({"path": "/a", "force": "yes"}, [Problem("", "'content' is needed when force is True")]),
    ({**ENOUGH, "state": "lnk"}, [Problem("state", "'state' is 'lnk'; expected one of file, link, absent")]),
    ({"dest": 1.5, "content": True, "force": "maybe"}, [
        Problem("content", "'content' wants text, but this is the boolean true: quote it"),
        Problem("force", "'force' wants true or false, not 'maybe'"),
    ]),
]


@pytest.mark.parametrize(("args", "problems"), RULES, ids=[str(args)[:60] for args, _ in RULES])
def test_rules(args: dict[str, Any], problems: list[Problem]) -> None:
    assert validate(SPEC, args)[1] == problems


def test_values_stand_under_their_canonical_names_with_defaults() -> None:
    values, problems = validate(SPEC, {"dest": "/a", "content": 7, "force": "no"})
    assert problems == []
    assert values == {
        "path": "/a", "state": "file", "src": None, "content": "7", "owner": None, "group": None, "tags": [], "env": {}, "force": False,
    }


def test_a_value_of_the_wrong_type_leaves_the_default() -> None:
    values, problems = validate(SPEC, {**ENOUGH, "force": "maybe"})
    assert values["force"] is False
    assert [problem.param for problem in problems] == ["force"]


@pytest.mark.parametrize(("name", "fill"), [("tags", lambda value: value.append("x")), ("env", lambda value: value.update(A="b"))])
def test_a_default_is_not_shared_between_steps(name: str, fill: Any) -> None:
    """One agent runs many steps: what one module puts into its list must not be there in the next."""
    fill(validate(SPEC, ENOUGH)[0][name])
    assert not validate(SPEC, ENOUGH)[0][name]


OPEN = Spec("set_fact", {"cacheable": Param("bool", default=False)}, open=True)


def test_an_open_spec_keeps_the_users_names_and_values() -> None:
    values, problems = validate(OPEN, {"a": 1, "b": None, "cacheable": "yes", "c": {"d": [True]}})
    assert problems == []
    assert values == {"cacheable": True, "a": 1, "b": None, "c": {"d": [True]}}


@pytest.mark.parametrize(("spec", "name", "canonical"), [
    (SPEC, "path", "path"), (SPEC, "dest", "path"), (SPEC, "name", "path"), (SPEC, "nope", None), (OPEN, "nope", None), (SPEC, "", None),
])
def test_canonical_names(spec: Spec, name: str, canonical: str | None) -> None:
    assert spec.canonical(name) == canonical


def test_names_are_checked_without_values() -> None:
    """At load time arguments may be templates: only names count."""
    assert check_names(SPEC, ["dest", "content", "owner"]) == [Problem("", "owner and group are needed together")]
    assert check_names(OPEN, ["anything", "anything"]) == [Problem("anything", "'anything' and 'anything' are the same parameter")]
