"""The same templates rendered by ansible-core and by nodectl. An error on one side must be one on the other; its text may differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodectl.lang.lookups import Lookups
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError

CASES = Path(__file__).parent / "cases"
ERROR = "an error"
VARIABLES: dict[str, Any] = {
    "a": 1,
    "b": "{{ a + 1 }}",
    "c": {"x": "{{ b }}", "z": [1, {"q": "{{ a }}"}]},
    "l": ["{{ a }}", 2, 3],
    "s": "text",
    "t": True,
    "n": None,
    "f": 1.5,
    "e": "",
    "false": "false",
    "d2": {"a": {"b": 1, "l": [1]}, "k": 2},
    "d3": {"a": {"c": 3, "l": [2]}, "k": 5},
    "ver": "22.04",
    "us": [{"name": "u1", "keys": ["k1", "k2"], "on": True}, {"name": "u2", "keys": [], "on": False}],
    "p": "/etc/ssh/sshd_config.d",
}


def cases(name: str) -> list[str]:
    return list(json.loads((CASES / f"{name}.json").read_text()))


class Oracle:
    """ansible-core's templar; its texts must be marked as trusted, which is what its own YAML loader does."""

    def __init__(self) -> None:
        from ansible.errors import AnsibleError
        from ansible.parsing.dataloader import DataLoader
        from ansible.plugins.loader import init_plugin_loader
        from ansible.template import Templar as Theirs
        from ansible.template import trust_as_template

        init_plugin_loader([])
        self.error = AnsibleError
        self.trust = trust_as_template
        self.templar = Theirs(loader=DataLoader(), variables=self.trusted(VARIABLES))

    def trusted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.trust(value)
        if isinstance(value, dict):
            return {key: self.trusted(item) for key, item in value.items()}
        return [self.trusted(item) for item in value] if isinstance(value, list) else value

    def render(self, text: str, **options: Any) -> Any:
        try:
            return bare(self.templar.template(self.trust(text), **options))
        except self.error:
            return ERROR

    def holds(self, text: str) -> Any:
        try:
            return self.templar.evaluate_conditional(self.trust(text))
        except self.error:
            return ERROR


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


def bare(value: Any) -> Any:
    """Without the marks that both sides put on their values, so that types can be compared exactly."""
    if isinstance(value, dict):
        return {bare(key): bare(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bare(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


@pytest.fixture(scope="module")
def templar() -> Templar:
    return Templar(Lookups())


def ours(templar: Templar, text: str) -> Any:
    try:
        return bare(templar.render(text, VARIABLES))
    except TemplateError:
        return ERROR


@pytest.mark.parametrize("text", cases("expressions"))
def test_expression(oracle: Oracle, templar: Templar, text: str) -> None:
    mine, theirs = ours(templar, text), oracle.render(text)
    assert (type(mine), mine) == (type(theirs), theirs)


@pytest.mark.parametrize("text", cases("conditions"))
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_condition(oracle: Oracle, templar: Templar, text: str) -> None:
    try:
        mine: Any = templar.holds([text], VARIABLES)
    except TemplateError:
        mine = ERROR
    assert mine == oracle.holds(text)


@pytest.mark.parametrize("text", cases("files"))
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_template_file(oracle: Oracle, templar: Templar, text: str) -> None:
    theirs = oracle.render(text, escape_backslashes=False, overrides={"trim_blocks": True, "lstrip_blocks": False, "newline_sequence": "\n"})
    assert templar.render_file(text, VARIABLES, "a.j2") == ("" if theirs is None else str(theirs))
