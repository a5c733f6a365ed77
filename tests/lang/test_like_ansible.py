"""Small languages inside the language, with random texts: YAML words, versions, arguments in one text, role arguments.

PyYAML and ansible-core say what is right. Seeds are fixed, so that a run says the same every time.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodectl.lang import freeform
from nodectl.lang.argument_specs import check
from nodectl.lang.role import Role
from nodectl.lang.scalars import plain
from nodectl.lang.versions import OPERATORS, compare
from nodectl.wire.params import OctalInt

ERROR = "an error"

# -- words of YAML (D68)

LETTERS = "0123456789abefxonyYNES._:+-~tTrRuUlL"
STARTS = [
    "yes", "no", "on", "off", "true", "null", "~", "0x", "0b", "0o7", "1e3", "1.e+3", ".5", "5.", ".inf", "-.inf", ".nan", "1_0", "0_7", "0b1_0", "1:2",
    "1:60", "190:20:30", "+1", "-0", "08", "0.1e-5", "1__0", "_1", "0x_f", "1.5:30", "y", "n", "NULL", "Yes", "tRUE", "0_",
]  # fmt: skip


def words(count: int) -> Iterator[str]:
    source = random.Random(1)
    for _ in range(count):
        drawn = "".join(source.choice(LETTERS) for _ in range(source.randint(1, 5)))
        yield drawn if source.random() < 0.7 else source.choice(STARTS) + source.choice(["", "0", "_", ":1", ".", "e5"])


def as_pyyaml_reads(word: str) -> Any:
    try:
        value = yaml.load(word, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError):  # it cannot read `0x_`
        return ERROR
    return ERROR if isinstance(value, (dict, list, date)) else value


def test_plain_words_mean_what_they_mean_to_pyyaml() -> None:
    compared = 0
    for word in words(4000):
        theirs = as_pyyaml_reads(word)
        if theirs is ERROR:
            continue
        mine = plain(word)
        mine = int(mine) if isinstance(mine, OctalInt) else mine
        compared += 1
        assert (word, type(mine), repr(mine)) == (word, type(theirs), repr(theirs))
    assert compared > 3000


@pytest.mark.parametrize("word", ["2026-01-31", "2026-1-3", "2001-12-14t21:59:43.10-05:00"])
def test_dates_stay_text(word: str) -> None:
    assert plain(word) == word


# -- versions

PARTS = ["0", "1", "2", "9", "10", "04", "a", "b1", "rc1", "alpha", "beta", "dev", "post", "-", "+build", ""]


def versions(source: random.Random) -> str:
    return ".".join(source.choice(PARTS) for _ in range(source.randint(1, 4)))


def answer(ask: Callable[[], bool], *errors: type[Exception]) -> Any:
    try:
        return ask()
    except errors:
        return ERROR


@pytest.mark.parametrize("kind", ["loose", "semver"])
def test_versions_are_ordered_as_in_ansible(kind: str) -> None:
    from ansible.errors import AnsibleError
    from ansible.plugins.test.core import version_compare

    source = random.Random(2)
    told = 0
    for _ in range(1500):
        left, right = (versions(source), versions(source)) if kind == "loose" else (semver(source), semver(source))
        operator = source.choice(list(OPERATORS))
        theirs = answer(lambda a=left, b=right, o=operator: version_compare(a, b, o, version_type=kind), AnsibleError)  # type: ignore[misc]
        mine = answer(lambda a=left, b=right, o=operator: compare(a, b, o, kind), ValueError)  # type: ignore[misc]
        told += mine != ERROR
        assert (left, operator, right, mine) == (left, operator, right, theirs)
    assert told > 500


def semver(source: random.Random) -> str:
    core = ".".join(str(source.choice([0, 1, 2, 10])) for _ in range(3))
    before = source.choice(["", "", "-alpha", "-alpha.1", "-alpha.beta", "-1", "-rc.2", "-rc.10"])
    return core + before + source.choice(["", "", "+build.5"])


ORDER = {"==": "=", "=": "=", "eq": "=", "!=": "<>", "<>": "<>", "ne": "<>", "<": "<", "lt": "<", "<=": "<=", "le": "<=", ">": ">", "gt": ">", ">=": ">=", "ge": ">="}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(
    ("left", "right", "order", "kind"),
    [
        ("1.9", "1.10", "<", "loose"), ("1.10", "1.10", "=", "loose"), ("2", "1.99", ">", "loose"), ("1.0a", "1.0a", "=", "loose"),
        ("1.0.0-rc.1", "1.0.0", "<", "semver"), ("1.0.0", "1.0.0+build", "=", "semver"), ("1.0.1", "1.0.1-1", ">", "semver"), ("1.0.0-2", "1.0.0-10", "<", "semver"),
        ("1.0.0-1", "1.0.0-alpha", "<", "semver"), ("1.0.0-alpha.1", "1.0.0-alpha", ">", "semver"),
    ],
)  # fmt: skip
def test_each_comparison(operator: str, left: str, right: str, order: str, kind: str) -> None:
    assert compare(left, right, operator, kind) is (order in ORDER[operator])


# -- arguments in one text

NAMES = ["path", "state", "msg", "line"]
VALUES = ["x", "'a b'", '"a b"', "{{ item }}", "{{ a | default('x y') }}", "a=b", "/tmp/{{ a }}/b", "''", "1", "{{ [1, 2] }}", "'it''s'"]


def test_options_in_one_text_are_those_of_ansible() -> None:
    from ansible.parsing.splitter import parse_kv

    source = random.Random(3)
    for _ in range(300):
        names = source.sample(NAMES, source.randint(1, 4))
        text = source.choice([" ", "  "]).join(f"{name}={source.choice(VALUES)}" for name in names)
        assert (text, freeform.options(text)) == (text, dict(parse_kv(text)))


def test_a_split_text_can_be_joined_again() -> None:
    source = random.Random(4)
    for _ in range(500):
        text = "".join(source.choice([*string.ascii_lowercase[:3], " ", "'", '"', "=", "{{", "}}", "\\"]) for _ in range(source.randint(1, 12)))
        try:
            parts = freeform.split(text)
        except freeform.BadText:
            continue
        assert "".join(parts).replace(" ", "") == text.replace(" ", "")
        assert freeform.split(" ".join(parts)) == parts


# -- arguments of roles

TYPES = ["str", "int", "float", "bool", "list", "dict", "path", "raw"]
GIVEN: list[Any] = [1, 0, -5, 1.5, "1", "x", "", "yes", "no", "maybe", True, False, [1], ["a", "b"], [], {"a": 1}, {}, "1.5", "a,b", None, "10"]
# Where nodectl is stricter than ansible-core, by type: a boolean or a list is no text, a text is no mapping, and null is not given.
STRICTER: dict[str, tuple[type, ...]] = {"str": (bool, list, dict), "path": (bool, list, dict), "dict": (str,), "int": (bool,), "float": (bool,), "list": ()}


def options(source: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in "abc"[: source.randint(1, 3)]:
        option: dict[str, Any] = {"type": source.choice(TYPES)}
        if source.random() < 0.3:
            option["required"] = True
        if option["type"] == "list" and source.random() < 0.7:
            option["elements"] = source.choice(["str", "int"])
        if option["type"] == "str" and source.random() < 0.3:
            option["choices"] = ["x", "1", "yes"]
        found[name] = option
    return found


def strict(option: dict[str, Any], value: Any) -> bool:
    kinds = STRICTER.get(option["type"], ())
    inner = STRICTER.get(option.get("elements", ""), ())
    if option["type"] == "list" and value == "":
        return True  # an empty text is an empty list here, and a list of one empty text there
    return isinstance(value, kinds) or (value is None and ("required" in option or "choices" in option)) or any(isinstance(item, inner) for item in (value if isinstance(value, list) else [value]))


def test_arguments_of_roles_are_right_for_both_or_for_neither() -> None:
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    source = random.Random(5)
    right = 0
    for _ in range(600):
        spec = options(source)
        values = {name: source.choice(GIVEN) for name in spec if source.random() < 0.9}
        if any(strict(spec[name], value) for name, value in values.items()):
            continue
        mine = [problem.message for problem in check(Role("r", Path("r"), argument_specs={"main": {"options": spec}}), values)]
        theirs = ArgumentSpecValidator(spec).validate(values).error_messages
        right += not mine
        assert (spec, values, not mine) == (spec, values, not theirs), (mine, theirs)
    assert right > 100
