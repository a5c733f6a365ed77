"""A Secret in the language itself: text inside an expression, a Secret outside of it. The way through the engine: tests/engine/test_secrets."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nodectl.lang.lookups import Lookups
from nodectl.lang.scope import LazyVariables
from nodectl.lang.secrets import SHORTEST_INSIDE, SecretText, hidden, reveal
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError
from nodectl.wire.secret import MASK, Secret

TEXT = "correct-horse"
VARIABLES: dict[str, Any] = {
    "pw": Secret(TEXT), "short": Secret("ab"), "empty": Secret(""), "user": {"name": "ops", "pw": Secret(TEXT)}, "line": "key={{ pw }}", "n": 5,
    "braces": Secret("{{ n }}"),
}  # fmt: skip

SECRET = [
    # what comes out as a Secret, and its text
    ("{{ pw }}", TEXT), ("key={{ pw }}", f"key={TEXT}"), ("{{ line }}", f"key={TEXT}"), ("{{ user.pw }}", TEXT), ("{{ pw ~ '!' }}", f"{TEXT}!"),
    ("{{ pw + '!' }}", f"{TEXT}!"), ("{{ 'x%sx' % pw }}", f"x{TEXT}x"), ("{{ [pw, 'a'] | join(',') }}", f"{TEXT},a"), ("{{ pw | replace('z', 'y') }}", TEXT),
    ("{{ {'k': pw} | to_json }}", '{"k": "correct-horse"}'), ("{{ lookup('vars', 'pw') }}", TEXT), ("{{ vars.pw }}", TEXT), ("{{ short }}", "ab"),
    ("a{{ short }}", "aab"), ("{{ braces }}", "{{ n }}"), ("<{{ braces }}>", "<{{ n }}>"), ("{{ pw | default('x') }}", TEXT), ("{{ nope | default(pw) }}", TEXT),
]  # fmt: skip
PLAIN = [
    # what is no secret, although one was looked at
    ("{{ pw | length }}", 13), ("{{ pw == 'correct-horse' }}", True), ("{{ pw is defined }}", True), ("{{ user.name }}", "ops"), ("{{ 'yes' if pw else 'no' }}", "yes"),
    ("{{ n }}", 5), ("{{ short ~ '!' }}", "ab!"), ("{{ pw | hash('sha1') | length }}", 40), ("{{ 'no' if empty else 'empty' }}", "empty"),
]  # fmt: skip


@pytest.fixture(scope="module")
def templar() -> Templar:
    return Templar(Lookups())


@pytest.mark.parametrize(("text", "value"), SECRET)
def test_a_text_that_holds_it_is_a_secret(templar: Templar, text: str, value: str) -> None:
    found = templar.render(text, VARIABLES)
    assert isinstance(found, Secret)
    assert found.reveal() == value
    assert str(found) == MASK


@pytest.mark.parametrize(("text", "value"), PLAIN)
def test_what_is_only_about_it_is_none(templar: Templar, text: str, value: Any) -> None:
    found = templar.render(text, VARIABLES)
    assert (type(found), found) == (type(value), value)


def test_inside_containers_only_the_parts_that_hold_it(templar: Templar) -> None:
    assert templar.render({"a": ["{{ user }}", "x {{ pw }}"], "b": "{{ n }}"}, VARIABLES) == {
        "a": [{"name": "ops", "pw": Secret(TEXT)}, Secret(f"x {TEXT}")],
        "b": 5,
    }
    assert templar.render("{{ [user.name, pw, [pw ~ 'x']] }}", VARIABLES) == ["ops", Secret(TEXT), [Secret(f"{TEXT}x")]]


def test_a_secret_as_a_key_is_shown_as_text_to_the_node(templar: Templar) -> None:
    assert templar.render("{{ {pw: 1} }}", VARIABLES) == {TEXT: 1}


def test_files_hold_it_in_clear(templar: Templar) -> None:
    text = templar.render_file("key: {{ pw }}\n{{ user | to_json }}\n{{ braces }}\n", VARIABLES, "a.j2")
    assert type(text) is str
    assert text == f'key: {TEXT}\n{{"name": "ops", "pw": "{TEXT}"}}\n{{{{ n }}}}\n'


def test_other_hosts_variables_give_secrets(templar: Templar) -> None:
    variables = LazyVariables(templar, VARIABLES)
    assert variables["line"] == Secret(f"key={TEXT}")
    assert variables["pw"] == Secret(TEXT)
    assert len(variables) == len(VARIABLES)
    found = templar.render("{{ hostvars.h.line }}", {"hostvars": {"h": variables}})
    assert isinstance(found, Secret)


def test_a_condition_must_be_a_boolean_and_does_not_show_the_secret(templar: Templar) -> None:
    assert templar.holds(["pw | length == 13", "pw != 'x'", "'horse' in pw"], VARIABLES)
    with pytest.raises(TemplateError, match="secret text") as caught:
        templar.holds(["pw"], VARIABLES)
    assert TEXT not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "secrets", "marked"),
    [
        ("a long-enough b", {"long-enough"}, True),
        ("a ab b", {"ab"}, False),
        ("ab", {"ab"}, True),
        ("x" * SHORTEST_INSIDE + "y", {"x" * SHORTEST_INSIDE}, True),
        ("x" * SHORTEST_INSIDE, {"x" * (SHORTEST_INSIDE - 1)}, False),
        ("other", {"long-enough"}, False),
        ("other", set(), False),
    ],
)
def test_which_texts_hold_a_secret(value: str, secrets: set[str], marked: bool) -> None:
    assert isinstance(hidden(value, secrets), SecretText) is marked
    found = hidden({"a": [value, 1, None], "b": (value,)}, secrets)
    assert isinstance(found["a"][0], SecretText) is marked
    assert found["a"][1:] == [1, None]
    assert hidden(5, secrets) == 5


def test_reveal_leaves_what_it_is_given_alone() -> None:
    given = {"a": [Secret("x"), (Secret("y"),)], "b": 1}
    before = copy.copy(given["a"])
    assert reveal(given) == {"a": ["x", ["y"]], "b": 1}
    assert given["a"] == before
