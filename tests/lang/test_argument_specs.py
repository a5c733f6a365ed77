"""What a role declares about its arguments, checked at load (literal values) and before it runs (all values)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.lang.argument_specs import check, check_literal, options_of
from nodectl.lang.role import Role
from nodectl.lang.scope import LazyVariables
from nodectl.lang.template import Templar
from nodectl.lang.template_error import UndefinedName

OPTIONS: dict[str, Any] = {
    "size": {"type": "int", "required": True},
    "kind": {"type": "str", "choices": ["a", "b"]},
    "names": {"type": "list", "elements": "str"},
    "flag": {"type": "bool"},
    "disks": {"type": "list", "elements": "dict", "options": {"path": {"type": "path", "required": True}, "wipe": {"type": "bool"}}},
    "store": {"type": "dict", "options": {"url": {"type": "str", "required": True}}},
    "loose": {},
    "odd": {"type": "json"},
}
ROLE = Role("r", Path("roles/r"), defaults={"with_default": 1}, argument_specs={"main": {"options": OPTIONS}, "other": {"options": {"x": {"required": True}}}})


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ({"size": 1}, []),
        ({}, ["'size' is required"]),
        ({"size": None}, ["'size' is required"]),
        ({"size": "7"}, []),
        ({"size": "x"}, ["'size' wants a whole number"]),
        ({"size": 1, "kind": "c"}, ["'kind' is 'c'; expected one of a, b"]),
        ({"size": 1, "names": "a,b"}, []),
        ({"size": 1, "names": {"a": 1}}, ["'names' wants a list"]),
        ({"size": 1, "flag": "maybe"}, ["'flag' wants true or false"]),
        ({"size": 1, "disks": [{"path": "/d"}, {"wipe": "x"}]}, ["'disks[1].path' is required", "'disks[1].wipe' wants true or false"]),
        ({"size": 1, "disks": [{"path": "/d", "pth": 1}]}, ["'disks[0]' has no key 'pth'; expected path, wipe"]),
        ({"size": 1, "store": {}}, ["'store.url' is required"]),
        ({"size": 1, "store": "s3"}, ["'store' wants a mapping"]),
        ({"size": 1, "loose": 5, "odd": [1], "unknown": "fine: it is some other variable"}, []),
    ],
)
def test_all_problems_are_told(values: dict[str, Any], problems: list[str]) -> None:
    found = [problem.message for problem in check(ROLE, values)]
    assert len(found) == len(problems), found
    assert all(said in message for said, message in zip(sorted(problems), sorted(found), strict=True))


def test_each_entry_has_options_of_its_own() -> None:
    assert [problem.message for problem in check(ROLE, {}, "other")] == ["'x' is required"]
    assert check(ROLE, {}, "absent") == []
    assert options_of(Role("bare", Path("x"))) == {}


def test_values_are_rendered_only_where_an_option_asks_for_them() -> None:
    lazy = LazyVariables(Templar(), {"size": "{{ base + 1 }}", "base": 2, "bystander": "{{ absent }}"})
    assert check(ROLE, lazy) == []
    with pytest.raises(UndefinedName):
        check(ROLE, LazyVariables(Templar(), {"size": "{{ absent }}"}))


@pytest.mark.parametrize(
    ("params", "problems"),
    [
        ({}, []),
        ({"size": "{{ later }}", "disks": [{"path": "{{ later }}"}]}, []),
        ({"with_default": 2}, []),
        ({"siez": 1}, ["role 'r' has no argument 'siez'"]),
        ({"kind": "c"}, ["'kind' is 'c'; expected one of a, b"]),
    ],
)
def test_literal_parameters_at_load(params: dict[str, Any], problems: list[str]) -> None:
    assert [problem.message for problem in check_literal(ROLE, params)] == problems


def test_a_role_that_declares_nothing_takes_everything() -> None:
    assert check_literal(Role("bare", Path("x")), {"anything": 1}) == []
