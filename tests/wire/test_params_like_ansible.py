"""The same specifications and arguments given to ansible-core's own validator. Where the answers differ, the difference is named here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from nodectl.wire.params import Param, Spec, validate

TYPES = ["str", "int", "float", "bool", "list", "dict", "raw"]
VALUES: list[Any] = [
    "", "abc", "a,b", " a , b ", "yes", "no", "on", "off", "true", "False", "y", "n", "t", "F", "1", "0", "2", "-7", " 5 ", "+5", "1.0", "1.5", "1e3", "1_000",
    "nan", "inf", "-inf", "1e400", "0x10", "0644", " yes", "a=1", "a=1 b=2", '{"a": 1}', "None", "12345678901234567890",
    True, False, 0, 1, 2, -7, 644, 2**62, 0.0, 1.0, 1.5, 1e20, float("nan"), float("inf"),
    [], ["a"], ["a", 1], [None], {}, {"a": 1}, None,
]

# What nodectl refuses and Ansible takes: (type, does it concern this value, why).
STRICTER: list[tuple[str, Callable[[Any], bool], str]] = [
    ("str", lambda v: isinstance(v, (bool, list, dict)), "text that was not written as text: Ansible would pass on 'True' or \"['a']\""),
    ("int", lambda v: isinstance(v, bool), "a boolean is no number"),
    ("int", lambda v: v == "1e400", "a typing error sooner than a number of 400 digits"),
    ("float", lambda v: isinstance(v, bool), "a boolean is no number"),
    ("float", lambda v: str(v).lstrip("-") in ("nan", "inf", "1e400"), "neither is a number a module can wait for or compare with"),
    ("bool", lambda v: isinstance(v, float), "1.0 is a number, not a yes"),
    ("bool", lambda v: v == " yes", "blanks around the word: quoted by accident"),
    ("dict", lambda v: isinstance(v, str), "a mapping is written as a mapping; Ansible also takes 'a=1' and JSON in a text"),
]
# What both take, and read differently: (type, value, ours, theirs, why).
DIFFERENT: list[tuple[str, Any, Any, Any, str]] = [
    ("list", "", [], [""], "an empty text is an empty list, not a list of one empty name"),
    ("list", True, [True], ["True"], "a boolean keeps its type"),
    ("list", False, [False], ["False"], "a boolean keeps its type"),
    ("list", " a , b ", ["a", "b"], [" a ", " b "], "blanks beside a comma are no part of a name"),
    ("list", " 5 ", ["5"], [" 5 "], "blanks beside a comma are no part of a name"),
    ("list", " yes", ["yes"], [" yes"], "blanks beside a comma are no part of a name"),
]


def theirs(spec: dict[str, Any], args: dict[str, Any], **rules: Any) -> tuple[dict[str, Any], list[str]]:
    try:
        result = ArgumentSpecValidator(spec, **rules).validate(args)
    except OverflowError as error:  # int: .inf ends ansible-core's validator with a traceback
        return {}, [str(error)]
    return result.validated_parameters, result.error_messages


def ours(spec: Spec, args: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values, problems = validate(spec, args)
    return values, [problem.message for problem in problems]


def difference(kind: str, value: Any) -> str:
    """What is not as it should be, or ""."""
    values, problems = ours(Spec("x", {"a": Param(kind)}), {"a": value})
    expected, errors = theirs({"a": {"type": kind}}, {"a": value})
    named = [row for row in DIFFERENT if row[0] == kind and row[1] == value and type(row[1]) is type(value)]
    if named:
        return "" if (values["a"], expected["a"]) == named[0][2:4] else f"named as {named[0]}, but {values['a']!r} and {expected['a']!r}"
    if any(name == kind and concerns(value) for name, concerns, _ in STRICTER):
        return "" if problems else "named as stricter, but taken"
    if bool(problems) is not bool(errors):
        return f"ours: {problems or values['a']!r}, theirs: {errors or expected['a']!r}"
    return "" if problems or repr(values["a"]) == repr(expected["a"]) else f"{values['a']!r} and {expected['a']!r}"


@pytest.mark.parametrize("kind", TYPES)
def test_every_value_means_what_it_means_to_ansible(kind: str) -> None:
    assert {repr(value): found for value in VALUES if (found := difference(kind, value))} == {}


def test_every_deviation_is_real() -> None:
    """A row above that no value needs any more must go."""
    for kind, concerns, why in STRICTER:
        assert any(concerns(value) and not theirs({"a": {"type": kind}}, {"a": value})[1] for value in VALUES), why


# specification in both dialects: ours → theirs
PARAMS = {
    "path": Param("str", required=True, aliases=("dest",)), "state": Param(default="file", choices=("file", "link")), "src": Param(), "content": Param(),
    "owner": Param(), "group": Param(), "sizes": Param("list", elements="int"), "force": Param("bool", default=False),
}
RULES: dict[str, Any] = {
    "mutually_exclusive": (("src", "content"),), "required_together": (("owner", "group"),), "required_one_of": (("src", "content"),),
    "required_if": (("state", "link", ("src",)),),
}
SPEC = Spec("x", PARAMS, **RULES)


def dialect(param: Param) -> dict[str, Any]:
    found: dict[str, Any] = {"type": param.type, "required": param.required, "aliases": list(param.aliases)}
    if param.choices:
        found["choices"] = list(param.choices)
    if param.elements:
        found["elements"] = param.elements
    if param.default is not None:
        found["default"] = param.default
    return found


BASE = {"path": "/a", "content": "x"}
ARGUMENTS: list[dict[str, Any]] = [
    {}, BASE, {"dest": "/a", "content": "x"}, {"content": "x"}, {**BASE, "src": "/b"}, {"path": "/a"}, {**BASE, "owner": "r"}, {**BASE, "owner": "r", "group": "g"},
    {**BASE, "state": "link"}, {"path": "/a", "src": "/b", "state": "link"}, {**BASE, "state": "lnk"}, {**BASE, "sizes": "1,2"}, {**BASE, "sizes": ["1", 2]},
    {**BASE, "sizes": ["x"]}, {**BASE, "sizes": 3}, {**BASE, "force": "yes"}, {**BASE, "unknown": 1}, {**BASE, "force": "perhaps"},
    {**BASE, "sizes": []},
]
# Ansible counts a parameter that is null as given; here it is as if it were not written.
NULLS: list[tuple[dict[str, Any], bool, bool]] = [
    ({"path": None, "content": "x"}, True, False),
    ({"path": "/a", "content": None}, True, False),
    ({**BASE, "src": None}, False, True),
    ({**BASE, "owner": None}, False, True),
    ({**BASE, "state": None}, False, True),
]


@pytest.mark.parametrize("args", ARGUMENTS, ids=str)
def test_rules_between_parameters(args: dict[str, Any]) -> None:
    values, problems = ours(SPEC, args)
    expected, errors = theirs({name: dialect(param) for name, param in PARAMS.items()}, args, **RULES)
    assert bool(problems) is bool(errors), (problems, errors)
    if not problems:
        assert values == {name: expected.get(name) for name in PARAMS}


@pytest.mark.parametrize(("args", "we_refuse", "they_refuse"), NULLS, ids=str)
def test_null_is_not_given(args: dict[str, Any], we_refuse: bool, they_refuse: bool) -> None:
    assert bool(ours(SPEC, args)[1]) is we_refuse
    assert bool(theirs({name: dialect(param) for name, param in PARAMS.items()}, args, **RULES)[1]) is they_refuse
