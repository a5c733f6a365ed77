"""Random template files: the same bytes from ansible-core and from nodectl, whatever newlines and marks stand where (D67).

The seeds are fixed. To hunt: `NODECTL_HUNT=20000 pytest tests/lang/test_any_template.py`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from nodectl.lang.lookups import Lookups
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError
from tests.lang.test_oracle import ERROR, VARIABLES, Oracle

HUNT = int(os.environ.get("NODECTL_HUNT", "0"))
SEEDS = range(4)
EACH = HUNT // len(SEEDS) or 60

HEADERS = [
    "", "", "", "#jinja2: lstrip_blocks: True\n", "#jinja2: trim_blocks: False\n", "#jinja2: trim_blocks:True, lstrip_blocks:True\n",
    "#jinja2: newline_sequence:'\\r\\n'\n", "#jinja2: keep_trailing_newline:False\n",
]  # fmt: skip
TEXTS = [
    "\n", "\n", "\n\n", " ", "  ", "\t", "text", "A", "# x\n", "\\n", "\\", "\r\n", "{# c #}", "{#- c -#}", "{# c\nd #}", "{{ a }}", "{{ s }}", "{{- a }}",
    "{{ a -}}", "{{- a -}}", "{{ l }}", "{{ e }}", "{{ n }}", "{{ t }}", "{% set q = 1 %}", "{{ 'x' if t }}", "{% raw %}{{ r }}\n{% endraw %}", "{{ '\\n' }}",
    "{{ s | upper }}\n", "{{ nope }}", "{{ l | join('\\n') }}",
]  # fmt: skip
IFS = ["{% if t %}", "{% if t -%}", "{%- if t %}", "{%- if not t -%}", "{%+ if t %}", "  {% if t %}\n"]
ELSES = ["{% else %}", "{%- else -%}", "{% else %}\n"]
ENDIFS = ["{% endif %}", "{%- endif %}", "{% endif -%}", "{% endif +%}", "{% endif %}\n", "  {% endif %}\n"]
FORS = ["{% for i in l %}", "{%- for i in l -%}", "{% for i in [1, 2] %}\n", "  {% for i in l %}\n"]
ENDFORS = ["{% endfor %}", "{%- endfor -%}", "{% endfor %}\n"]


def body(source: random.Random, depth: int) -> str:
    parts = []
    for _ in range(source.randint(1, 5)):
        kind = source.randint(0, 5)
        if kind == 0 and depth:
            other = source.choice(ELSES) + body(source, depth - 1) if source.random() < 0.4 else ""
            parts.append(source.choice(IFS) + body(source, depth - 1) + other + source.choice(ENDIFS))
        elif kind == 1 and depth:
            parts.append(source.choice(FORS) + body(source, depth - 1) + source.choice(ENDFORS))
        else:
            parts.append(source.choice(TEXTS))
    return "".join(parts)


def texts(seed: int) -> Iterator[str]:
    source = random.Random(seed)
    for _ in range(EACH):
        text = body(source, 2)
        # Below a header, ansible-core counts the header's own newline among those of a body that is nothing but newlines.
        yield (source.choice(HEADERS) if text.strip() else "") + text


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture(scope="module")
def templar() -> Templar:
    return Templar(Lookups())


def theirs(oracle: Oracle, text: str) -> str:
    found = oracle.render(text, escape_backslashes=False, overrides={"trim_blocks": True, "lstrip_blocks": False, "newline_sequence": "\n"})
    return "" if found is None else str(found)


def mine(templar: Templar, text: str) -> str:
    try:
        return templar.render_file(text, VARIABLES, "a.j2")
    except TemplateError:
        return ERROR


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_bytes_as_ansible(oracle: Oracle, templar: Templar, seed: int) -> None:
    for text in texts(seed):
        assert (text, mine(templar, text)) == (text, theirs(oracle, text))


def test_most_of_them_give_bytes(templar: Templar) -> None:
    answers = [mine(templar, text) for text in texts(0)]
    assert sum(answer != ERROR for answer in answers) > len(answers) / 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#jinja2: trim_blocks: maybe", "expected True or False"),
        ("#jinja2: trim_block: True", "unknown option 'trim_block'"),
        ("#jinja2: newline_sequence: '\\t'", "expected one of"),
        ("#jinja2: variable_start_string: '{%'", "two marks the same"),
        ("#jinja2: block_start_string: ''", "one empty"),
        ("#jinja2: variable_start_string: 5", "expected a text"),
        ("#jinja2: nothing", "unknown option 'nothing'"),
    ],
)
def test_a_first_line_that_cannot_be_followed(templar: Templar, line: str, said: str) -> None:
    with pytest.raises(TemplateError, match=said):
        templar.render_file(f"{line}\n{{{{ a }}}}\n", VARIABLES, "a.j2")
    wrong = templar.file_syntax_error(f"{line}\n{{{{ a }}}}\n")
    assert wrong is not None
    assert said in wrong[0]
