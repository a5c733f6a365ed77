"""Random expressions, rendered by ansible-core and by nodectl: the same value of the same type, or an error on both sides.

The seeds are fixed, so that a run says the same every time. To hunt: `NODECTL_HUNT=20000 pytest tests/lang/test_any_expression.py`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from nodectl.lang.lookups import Lookups
from nodectl.lang.template import Templar
from tests.lang.test_oracle import ERROR, Oracle, ours

HUNT = int(os.environ.get("NODECTL_HUNT", "0"))
SEEDS = range(6)
# Expressions per seed: all together take about 2 s.
EACH = HUNT // len(SEEDS) or 80

ATOMS = [
    "a", "b", "c", "l", "s", "t", "n", "f", "e", "d2", "ver", "us", "p", "nope", "nope.x", "c.x", "c.z", "l[0]", "us[0].name", "us[0]['keys']", "d2.a.b",
    "1", "0", "-3", "2.5", "'x'", "''", "'5'", "'a,b'", "'true'", "[1, 2]", "[]", "{'k': 1}", "{}", "true", "false", "none", "'{{ a }}'",
]  # fmt: skip
FILTERS = [
    "int", "float", "string", "length", "upper", "lower", "trim", "default('d')", "default('d', true)", "d(1)", "list", "first", "last", "join(',')", "join",
    "sort", "unique", "reverse | list", "sum", "max", "min", "abs", "round", "to_json", "from_json", "b64encode", "replace('a', 'b')", "split(',')",
    "dict2items", "items2dict", "combine({'z': 9})", "flatten", "basename", "dirname", "quote", "hash('sha1')", "map('string') | list", "select | list",
    "reject('none') | list", "selectattr('name', 'defined') | list", "ternary('y', 'n')", "regex_replace('[a-c]', 'X')", "regex_search('[0-9]+')",
    "regex_findall('.')", "zip([8, 9]) | list", "product([8]) | list", "to_nice_yaml", "to_yaml", "capitalize", "center(9)", "indent", "wordcount",
    "pow(2)", "root", "extract(l)", "batch(2) | list", "items | list", "checksum", "md5", "splitext", "comment", "normpath", "urldecode",
    "zip_longest([1, 2, 3]) | list", "win_basename", "permutations(2) | list", "count", "title", "striptags", "human_readable", "to_uuid",
]  # fmt: skip
TESTS = [
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "even", "odd", "lower", "upper",
    "in [1, 2]", "divisibleby(2)", "eq(1)", "sameas true", "match('.')", "search('a')", "regex('x')", "version('20', '>')", "contains(1)", "truthy", "falsy",
    "failed", "changed", "skipped", "succeeded", "callable", "gt(1)",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "//", "~", "**"]
COMPARISONS = ["==", "!=", "<", ">", "<=", ">=", "in", "not in"]
MEMBERS = [".x", "[0]", "[-1]", ".keys()", ".items()", ".name", "['k']", ".get('k')"]
SHAPES = ["{{ %s }}", "x{{ %s }}y", "{{ %s }}{{ a }}", "{%% if (%s) is truthy %%}T{%% else %%}F{%% endif %%}"]
# What ansible-core lets pass as "undefined" although something else went wrong: nodectl tells it.
STRICTER = ("default", "d(1)", "defined", "undefined", "is truthy", " in (")


def expression(source: random.Random, depth: int) -> str:
    if depth <= 0:
        return source.choice(ATOMS)

    def part() -> str:
        return expression(source, depth - 1)

    def solid() -> str:
        """Nothing undefined: ansible-core looks for it in containers even where nobody asked for the part."""
        return part().replace("nope.x", "n").replace("nope", "n")

    forms = [
        lambda: f"{part()} | {source.choice(FILTERS)}",
        lambda: f"{part()} | {source.choice(FILTERS)}",
        lambda: f"({part()}) {source.choice(OPERATORS)} ({part()})",
        lambda: f"({part()}) {source.choice(COMPARISONS)} ({part()})",
        lambda: f"({part()}) is {source.choice(['', 'not '])}{source.choice(TESTS)}",
        lambda: f"({part()}) if ({part()}) is truthy else ({part()})",
        lambda: f"[{solid()}, {solid()}]",
        lambda: f"{{'q': {solid()}}}",
        lambda: f"({part()}){source.choice(MEMBERS)}",
    ]
    return source.choice(forms)()


def texts(seed: int) -> Iterator[str]:
    source = random.Random(seed)
    for _ in range(EACH):
        yield source.choice(SHAPES) % expression(source, source.randint(1, 2))


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture(scope="module")
def templar() -> Templar:
    return Templar(Lookups())


def differs(mine: Any, theirs: Any, text: str) -> bool:
    if mine == ERROR and any(word in text for word in STRICTER):
        return False
    return (type(mine), repr(mine)) != (type(theirs), repr(theirs))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_as_ansible(oracle: Oracle, templar: Templar, seed: int) -> None:
    wrong = []
    for text in texts(seed):
        mine, theirs = ours(templar, text), oracle.render(text)
        if differs(mine, theirs, text):
            wrong.append(f"{text}\n    ansible: {theirs!r}\n    nodectl: {mine!r}")
    assert not wrong, "\n".join(wrong)


def test_most_of_them_say_something(templar: Templar) -> None:
    """Of expressions that are all errors nothing would be learnt."""
    values = [ours(templar, text) for text in texts(0)]
    assert sum(value != ERROR for value in values) > len(values) * 0.4
    assert len({type(value) for value in values}) > 4
