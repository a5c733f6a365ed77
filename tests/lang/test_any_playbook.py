"""Whatever stands under the words of the language: mistakes are told, nothing is raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodectl.diagnostics.model import Collector
from nodectl.inventory.load import load_inventory
from nodectl.lang import keywords
from nodectl.lang.load import load_playbook
from tests.lang.specs import SPECS, known

WORDS = sorted({*keywords.PLAY, *keywords.TASK, *keywords.BLOCK, *keywords.REFUSED, *keywords.LOOP_CONTROL, *SPECS, "import_tasks", "import_role", "with_items"})
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5000), st.floats(allow_nan=False),
    st.sampled_from(["x", "", "{{ x }}", "{{", "a == 1", "a =", "site.yml", "self.yml", "a=b c", "a='", "name=x", "2nd", "role", "../x", "\x07", "\x00", "~nobody/x", "a" * 300, "1:2"]),
)  # fmt: skip
KEYS = st.one_of(st.sampled_from(WORDS), st.sampled_from(["name", "src", "file", "path", "module", "role", "apply", "loop_var"]), st.integers(0, 3), st.none())
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=15)
TASKS = st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5), max_size=3)
PLAYS = st.fixed_dictionaries({"hosts": st.just("all"), "tasks": TASKS}, optional=dict.fromkeys(("roles", "handlers", "vars", "serial", "vars_files"), VALUES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("any")
    (root / "roles/role/tasks").mkdir(parents=True)
    (root / "self.yml").write_text("- import_tasks: self.yml\n")
    return root


def load(folder: Path, value: Any) -> Collector:
    (folder / "site.yml").write_text(yaml.safe_dump(value, allow_unicode=True))
    found = Collector()
    load_playbook(folder / "site.yml", [], known, found)
    return found


@given(st.one_of(st.lists(PLAYS, max_size=2), VALUES))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_a_playbook_of_any_shape(folder: Path, value: Any) -> None:
    for one in load(folder, value):
        assert one.message
        assert one.code


@pytest.mark.parametrize("value", [None, 5, True, "text", "{{ x }}", [], [[1]], {}, {"a": {"b": 1}}, [{"a": 1}], {1: 2}], ids=repr)
def test_each_word_with_each_kind_of_value(folder: Path, value: Any) -> None:
    for word in WORDS:
        tasks = [{"debug": {"msg": "x"}, word: value}, {word: value}, {"block": [{word: value}], word: value}]
        plays = [{"hosts": "all", "tasks": tasks}, {"hosts": "all", word: value}, {"hosts": "all", "roles": [{"role": "role", word: value}]}]
        assert load(folder, plays).errors, word


GROUP_KEYS = st.sampled_from(["hosts", "vars", "children", "all", "gpu", "n[1:3]", "n1", "ansible_group_priority", "file_mounts", "network_tier", "/data", "source"])
GROUPS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(GROUP_KEYS | st.integers(0, 2), inner, max_size=4), max_leaves=15)


@given(GROUPS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_an_inventory_of_any_shape(folder: Path, value: Any) -> None:
    (folder / "hosts.yaml").write_text(yaml.safe_dump(value, allow_unicode=True))
    inventory = load_inventory([str(folder / "hosts.yaml")], Collector())
    for host in inventory.names():
        inventory.variables(host)


@given(st.lists(st.sampled_from(["[gpu]", "[gpu:vars]", "[x:children]", "[", "n1", "n[1:2]", " a=1", " b='", "=", "#", "\n", "gpu", "[gpu:odd]", "\x00", "é"]), max_size=15).map("".join))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_ini_inventory_of_any_text(folder: Path, text: str) -> None:
    (folder / "hosts.ini").write_text(text)
    inventory = load_inventory([str(folder / "hosts.ini")], Collector())
    for host in inventory.names():
        inventory.variables(host)
