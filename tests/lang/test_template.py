"""What goes beyond the comparison with ansible-core: laziness, safety, and messages that help."""

from __future__ import annotations

from collections import ChainMap
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.lang.lookups import Lookups
from nodectl.lang.scope import LazyVariables
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError, UndefinedName
from nodectl.lang.undefined import OMIT
from nodectl.lang.unsafe import Settled, Unsafe, mark_unsafe

TEMPLAR = Templar()
VARIABLES: dict[str, Any] = {
    "one": 1,
    "two": "{{ one + one }}",
    "chain": "{{ two }}!",
    "half": {"good": "{{ one }}", "bad": "{{ absent }}"},
    "loop_a": "{{ loop_b }}",
    "loop_b": "x{{ loop_a }}",
    "own": "{{ own }}",
    "word": "false",
    "broken": "{{ 'x' | int + 'y' }}",
    "node_said": Unsafe("{{ one }}"),
    "packages": ["vim", "{{ word }}"],
}


def test_variables_are_rendered_when_used_and_only_then() -> None:
    assert TEMPLAR.render("{{ two }}", VARIABLES) == 2
    assert TEMPLAR.render("{{ chain }}", VARIABLES) == "2!"
    assert TEMPLAR.render("{{ half.good }}", VARIABLES) == 1, "the undefined part beside it is not used"
    assert TEMPLAR.render("{{ packages }}", VARIABLES) == ["vim", "false"]


def test_parts_that_fail_fail_when_they_are_used() -> None:
    with pytest.raises(UndefinedName, match="'absent' is undefined, needed by 'half'"):
        TEMPLAR.render("{{ half }}", VARIABLES)
    assert TEMPLAR.render("{{ half.bad | default('none') }}", VARIABLES) == "none"
    assert TEMPLAR.render("{{ half.bad is defined }}", VARIABLES) is False


def test_an_error_is_not_taken_for_undefined() -> None:
    for text in ("{{ broken | default('x') }}", "{{ broken is defined }}", "{{ broken }}"):
        with pytest.raises(TemplateError, match="cannot add text"):
            TEMPLAR.render(text, VARIABLES)


@pytest.mark.parametrize(("text", "chain"), [("{{ loop_a }}", "loop_a → loop_b → loop_a"), ("{{ own }}", "own → own"), ("{{ loop_b }}", "loop_b → loop_a → loop_b")])
def test_a_variable_that_needs_itself_is_named_with_its_chain(text: str, chain: str) -> None:
    with pytest.raises(TemplateError, match=chain):
        TEMPLAR.render(text, VARIABLES)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("{{ packges }}", "'packges' is undefined", "did you mean 'packages'?"),
        ("{{ half.god }}", "has no attribute 'god'", "did you mean 'good'?"),
        ("{{ packages[7] }}", "the list ['vim', 'false'] has no item 7", ""),
        ("{{ nothing_like_it }}", "'nothing_like_it' is undefined", ""),
    ],
)
def test_undefined_names_come_with_the_nearest_one(text: str, message: str, hint: str) -> None:
    with pytest.raises(UndefinedName) as caught:
        TEMPLAR.render(text, VARIABLES)
    assert message in caught.value.message
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("word", "'word' is the text 'false', not true or false"),
        ("not word", "'word' is the text 'false'"),
        ("not half2.word", "'half2.word' is the text 'no'"),
        ("one == 1 and word", "'word' is the text 'false'"),
        ("one", "'one' is a number"),
        ("packages", "'packages' is a list"),
        ("one < 'x'", "cannot compare number with text"),
        ("word > 9", "cannot compare text with number"),
        ("absent", "'absent' is undefined"),
    ],
)
def test_conditions_that_are_no_booleans_are_refused_by_name(condition: str, message: str) -> None:
    """D07 and D59: both `when: x` and `when: not x` stop for the text "false", so nothing runs because of it."""
    with pytest.raises(TemplateError, match=message):
        TEMPLAR.holds([condition], {**VARIABLES, "half2": {"word": "no"}})


@pytest.mark.parametrize(("condition", "expected"), [("word | bool", False), ("not word | bool", True), ("word == 'false'", True), ("not word == 'x'", True), (True, True), (None, True)])
def test_conditions(condition: Any, expected: bool) -> None:
    assert TEMPLAR.holds([condition], VARIABLES) is expected


def test_conditions_are_joined_by_and_and_end_at_the_first_false() -> None:
    assert TEMPLAR.holds([], VARIABLES)
    assert not TEMPLAR.holds(["absent is defined", "absent.x == 1"], VARIABLES)


def test_what_came_from_a_node_is_never_rendered() -> None:
    assert TEMPLAR.render(Unsafe("{{ one }}"), VARIABLES) == "{{ one }}"
    assert TEMPLAR.render("{{ node_said }}", VARIABLES) == "{{ one }}"
    assert TEMPLAR.render("said: {{ node_said }}", VARIABLES) == "said: {{ one }}"
    assert not TEMPLAR.is_template(Unsafe("{{ one }}"))
    assert TEMPLAR.render("{{ r | type_debug }} {{ r.a | type_debug }} {{ r.b | type_debug }}", {"r": mark_unsafe({"a": [1], "b": "{{"})}) == "dict list str"
    marked = mark_unsafe({"stdout": "{{ one }}", "lines": ["{{ one }}", "plain"]})
    assert TEMPLAR.render("{{ r.lines | join(' ') }}", {"r": marked, **VARIABLES}) == "{{ one }} plain"


def test_facts_are_not_searched_for_templates_in_every_task() -> None:
    class Untouchable(Settled):
        def items(self) -> Any:
            raise AssertionError("looked through again")

    assert isinstance(mark_unsafe({"deep": {"x": 1}})["deep"], Settled)
    assert TEMPLAR.render("{{ facts.x }}", {"facts": Untouchable(x=1)}) == 1


def test_what_a_template_made_is_not_rendered_again() -> None:
    made = TEMPLAR.render("{{ '{{' }} one }}", VARIABLES)
    assert made == "{{ one }}"
    assert isinstance(made, Unsafe)
    assert TEMPLAR.render("{{ made }}", {**VARIABLES, "made": made}) == "{{ one }}"


def test_omit_leaves_out_entries() -> None:
    args = {"name": "x", "mode": "{{ absent | default(omit) }}", "list": ["{{ omit }}", 1]}
    assert TEMPLAR.render(args, VARIABLES) == {"name": "x", "list": [1]}
    assert TEMPLAR.render("{{ omit }}", VARIABLES) is OMIT
    with pytest.raises(TemplateError, match="omit cannot be a part of a text"):
        TEMPLAR.render("x{{ omit }}", VARIABLES)


@pytest.mark.parametrize("text", ["{{ ''.__class__.__mro__ }}", "{{ one.__class__ }}", "{{ lookup.__globals__ }}", "{{ [].__class__ | string }}"])
def test_python_is_out_of_reach(text: str) -> None:
    with pytest.raises(TemplateError):
        TEMPLAR.render(text, VARIABLES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ one", "end of print statement"),
        ("{{ one | nofilter }}", "No filter named 'nofilter'"),
        ("{{ one is notest }}", "No test named 'notest'"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ packages.append }}", "call it with parentheses"),
        ("{{ range(3) }}", "range"),
        ("{{ now() }}", "cannot be used here"),
        ("{{ lookup('file', 'x') }}", "cannot be used here"),
        ("{{ 'a' if false }}", "without `else`"),
        ("{{ 'x' | bool }}", "neither true nor false"),
        ("{{ '{' | from_json }}", "Expecting property name"),
        ("{{ '(' | regex_replace('(', '') }}", "missing \\), unterminated"),
    ],
)
def test_errors_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        TEMPLAR.render(text, VARIABLES)


def test_lazy_variables_render_one_by_one() -> None:
    lazy = LazyVariables(TEMPLAR, ChainMap({"x": "{{ y }}"}, {"y": "{{ z }}", "z": 3, "bad": "{{ nope }}"}))
    assert lazy["x"] == 3
    assert set(lazy) == {"x", "y", "z", "bad"}
    assert lazy.get("absent") is None
    variables = {"hostvars": {"n1": lazy}}
    assert TEMPLAR.render("{{ hostvars['n1'].x }} {{ hostvars.n1['z'] }}", variables) == "3 3"
    with pytest.raises(UndefinedName, match="'nope' is undefined"):
        TEMPLAR.render("{{ hostvars.n1.bad }}", variables)
    assert TEMPLAR.render("{{ hostvars.n1.bad | default('d') }} {{ hostvars.n1['absent'] | default('e') }}", variables) == "d e"
    with pytest.raises(UndefinedName):
        TEMPLAR.render("{{ hostvars.n1.absent }}", variables)
    with pytest.raises(UndefinedName, match="'nope' is undefined"):
        lazy["bad"]


def test_template_files_take_options_from_their_first_line() -> None:
    text = "#jinja2: variable_start_string: '[%', variable_end_string: '%]', trim_blocks: false\n[% one %]\n{% if one %}\nx\n{% endif %}\n"
    assert TEMPLAR.render_file(text, VARIABLES, "a.j2") == "1\n\nx\n"
    with pytest.raises(TemplateError, match="unknown option 'trim'"):
        TEMPLAR.render_file("#jinja2: trim: 1\n{{ one }}", VARIABLES, "a.j2")


def test_template_files_name_themselves_in_errors() -> None:
    with pytest.raises(TemplateError, match=r"a\.j2:3: "):
        TEMPLAR.render_file("x\n\n{{ one \n", VARIABLES, "a.j2")
    with pytest.raises(UndefinedName, match=r"a\.j2:1: 'pakages' is undefined \(did you mean 'packages'\?\)"):
        TEMPLAR.render_file("{{ pakages }}\n", VARIABLES, "a.j2")


def test_syntax_is_checked_without_rendering() -> None:
    assert TEMPLAR.syntax_error("{{ absent.x }}") is None
    assert TEMPLAR.syntax_error("absent is defined", expression=True) is None
    assert TEMPLAR.syntax_error("fine {{ x }}\n{{ y", expression=False) == ("unexpected end of template, expected 'end of print statement'.", 2)
    assert TEMPLAR.syntax_error("a b", expression=True) is not None
    assert TEMPLAR.file_syntax_error("#jinja2: trim_blocks: true\nx\n{% if %}\n") == ("Expected an expression, got 'end of statement block'", 3)


def test_another_lookup_shares_the_compiled_templates() -> None:
    other = TEMPLAR.with_lookup(Lookups(environ={"WHO": "me"}))
    assert other.render("{{ lookup('env', 'WHO') }}", {}) == "me"
    with pytest.raises(TemplateError, match="cannot be used here"):
        TEMPLAR.render("{{ lookup('env', 'WHO') }}", {})


PIECES = st.sampled_from(["{{ ", " }}", "{% if ", " %}", "{% endif %}", "one", "absent", " | ", "default", "(", ")", "'", ".x", "[0]", " + ", "'a'", "{#", "#}", "{", "}", "\n", "two", "\\"])


@given(st.lists(PIECES, max_size=12).map("".join))
@settings(max_examples=150, deadline=2000)
def test_any_text_gives_a_value_or_a_template_error(text: str) -> None:
    with suppress(TemplateError):
        TEMPLAR.render(text, VARIABLES)


LINES = [
    ("a\n{{ nope }}\n", "f.j2:2: 'nope' is undefined"),
    ("#jinja2: trim_blocks:False\na\n{{ nope }}\n", "f.j2:3: 'nope' is undefined"),
    ("{% for x in [1, 2] %}\n{{ x }}\n{{ nope.a }}\n{% endfor %}", "f.j2:3: 'nope' is undefined"),
    ("\n{% if nope %}{% endif %}", "f.j2:2: 'nope' is undefined"),
    ("\n\n{% for x in nope %}{% endfor %}", "f.j2:3: 'nope' is undefined"),
    ("{% macro m(a) %}\n{{ a.b }}\n{% endmacro %}\n{{ m({}) }}", "f.j2:2: "),
    ("a\n{{ 1 + [] }}\n", "'f.j2:2'"),
    ("a\nb\n{{ 'x' | from_json }}\n", "f.j2:3"),
    ("a\n{{ x ", "f.j2:2: "),
    ("#jinja2: trim_blocks:False\na\n{{ x ", "f.j2:3: "),
    ("a\n{{ held }}\n", "f.j2:2: 'nope' is undefined, needed by 'held'"),
]


@pytest.mark.parametrize(("text", "said"), LINES)
def test_what_goes_wrong_in_a_file_has_its_line(text: str, said: str) -> None:
    with pytest.raises(TemplateError) as error:
        Templar().render_file(text, {"held": "{{ nope }}"}, "f.j2")
    assert said in error.value.message
