"""Every keyword of the language in every place where it may and may not stand, and every kind of value that it may get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from nodectl.diagnostics.model import Collector, Diagnostic
from nodectl.lang import keywords
from nodectl.lang.arguments import short_name
from nodectl.lang.load import load_playbook
from tests.lang.specs import known

# A value that is right for each keyword.
RIGHT: dict[str, Any] = {
    "name": "x", "when": "a", "tags": ["t"], "vars": {"v": 1}, "become": True, "become_user": "u", "become_method": "sudo", "become_flags": "-H",
    "environment": {"E": "1"}, "ignore_errors": True, "ignore_unreachable": True, "no_log": True, "delegate_to": "h", "run_once": True,
    "any_errors_fatal": True, "check_mode": False, "diff": True, "timeout": 5, "notify": "{{ h }}", "connection": "local", "collections": ["ansible.builtin"],
    "args": {"chdir": "/"}, "loop": [1], "loop_control": {"label": "x"}, "register": "r", "changed_when": False, "failed_when": "a", "until": "a",
    "retries": 2, "delay": 1, "hosts": "all", "gather_facts": False, "gather_subset": ["min"], "vars_files": ["{{ f }}"], "roles": [], "tasks": [],
    "pre_tasks": [], "post_tasks": [], "handlers": [], "serial": 1, "strategy": "free", "max_fail_percentage": 10, "force_handlers": True,
    "order": "inventory", "role": "r", "block": [{"debug": None}], "rescue": [{"debug": None}], "always": [{"debug": None}], "listen": "t",
    "action": "debug", "local_action": "debug", "throttle": 2, "delegate_facts": True, "module_defaults": {"debug": {"msg": "x"}},
    "vars_prompt": [{"name": "x"}], "async": 60, "poll": 5, "remote_user": "u", "port": 22,
}  # fmt: skip
# What must not be anything but text, a list, a mapping, a boolean …: the kinds that are refused. Templates pass where a value may come later.
KINDS: dict[str, Any] = {"a mapping": {"label": "v"}, "a list": [["x"]], "text": "some words", "a number": 7, "a boolean": True}
REFUSES: dict[str, set[str]] = {
    "name": {"a mapping", "a list", "a boolean"},
    "when": {"a mapping", "a list", "a number", "text"},
    "tags": {"a mapping", "a list", "a boolean"},
    "vars": {"a list", "text", "a number", "a boolean"},
    "become": {"a mapping", "a list", "text", "a number"},
    "ignore_errors": {"a mapping", "a list", "text", "a number"},
    "no_log": {"a mapping", "a list", "text", "a number"},
    "run_once": {"a mapping", "a list", "text", "a number"},
    "check_mode": {"a mapping", "a list", "text", "a number"},
    "environment": {"a list", "text", "a number", "a boolean"},
    "register": {"a mapping", "a list", "text", "a number", "a boolean"},
    "loop_control": {"a list", "text", "a number", "a boolean"},
    "throttle": {"a mapping", "a list", "text", "a boolean"},
    "delegate_facts": {"a mapping", "a list", "text", "a number"},
    "module_defaults": {"a mapping", "a list", "text", "a number", "a boolean"},
    "args": {"a mapping", "a list", "text", "a number", "a boolean"},
    "changed_when": {"a mapping", "a list", "text", "a number"},
    "failed_when": {"a mapping", "a list", "text", "a number"},
    "until": {"a mapping", "a list", "text", "a number"},
    "async": {"a mapping", "a list", "text", "a boolean"},
    "poll": {"a mapping", "a list", "text", "a boolean"},
    "port": {"a mapping", "a list", "text", "a boolean"},
    "remote_user": {"a mapping", "a list", "a boolean"},
}


def found_in(folder: Path, play: dict[str, Any]) -> list[Diagnostic]:
    (folder / "roles/r/tasks").mkdir(parents=True, exist_ok=True)
    (folder / "roles/r/tasks/main.yml").write_text("- debug:\n")
    (folder / "site.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    found = Collector()
    load_playbook(folder / "site.yml", [folder / "roles"], known, found)
    return list(found)


def with_task(**keys: Any) -> dict[str, Any]:
    return {"hosts": "all", "tasks": [{"command": "id", **keys}]}


def with_block(**keys: Any) -> dict[str, Any]:
    return {"hosts": "all", "tasks": [{"block": [{"command": "id"}], **keys}]}


def with_role(**keys: Any) -> dict[str, Any]:
    return {"hosts": "all", "roles": [{"role": "r", **keys}]}


def with_play(**keys: Any) -> dict[str, Any]:
    return {"hosts": "all", "tasks": [{"command": "id"}], **keys}


def with_handler(**keys: Any) -> dict[str, Any]:
    return {"hosts": "all", "handlers": [{"name": "{{ any }}", "command": "id", **keys}]}


PLACES = {"a task": with_task, "a block": with_block, "a role": with_role, "a play": with_play, "a handler": with_handler}
ALLOWED = {
    "a task": set(keywords.TASK) - {"listen", "action", "local_action"},
    "a block": set(keywords.BLOCK),
    "a role": set(keywords.ROLE),
    "a play": set(keywords.PLAY),
    "a handler": set(keywords.TASK) - {"action", "local_action"},
}
# A role takes any other word as a parameter of its own.
NOT_TOLD = {"a role"}


def test_every_keyword_has_a_value_here() -> None:
    words = {*keywords.TASK, *keywords.BLOCK, *keywords.ROLE, *keywords.PLAY}
    assert words == set(RIGHT)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", sorted(RIGHT))
def test_a_keyword_is_taken_where_it_belongs_and_nowhere_else(tmp_path: Path, place: str, word: str) -> None:
    errors = [one for one in found_in(tmp_path, PLACES[place](**{word: RIGHT[word]})) if one.severity == "error"]
    if word in ALLOWED[place]:
        assert not errors, errors[0].message
    elif place not in NOT_TOLD:
        assert any(word in one.message for one in errors)
        assert all(one.origin is not None for one in errors)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", sorted(keywords.REFUSED))
def test_what_is_not_there_is_refused_with_what_to_do_instead(tmp_path: Path, place: str, word: str) -> None:
    found = [one for one in found_in(tmp_path, PLACES[place](**{word: 1})) if one.code == "E217"]
    assert [one.message for one in found] == [f"'{word}' is not supported by nodectl"]
    assert found[0].help == keywords.REFUSED[word]
    assert len(found[0].help) > 20


@pytest.mark.parametrize(("word", "kind"), [(word, kind) for word in REFUSES for kind in KINDS])
def test_a_value_of_the_wrong_kind_is_told_at_the_value(tmp_path: Path, word: str, kind: str) -> None:
    found = [one for one in found_in(tmp_path, with_task(**{word: KINDS[kind]})) if one.severity == "error"]
    if kind not in REFUSES[word]:
        assert not found, found[0].message
        return
    assert found
    assert found[0].code in ("E203", "E206", "E209", "E213", "E221")
    assert found[0].origin is not None
    assert found[0].origin.line >= 4


@pytest.mark.parametrize("word", ["when", "changed_when", "failed_when", "until"])
@pytest.mark.parametrize(("value", "wrong"), [("a ==", 1), (["a", "b =="], 1), (["(", ")"], 2), ("a is nosuchtest", 1), ("a | nosuchfilter", 1), ("a.b[0] == 'x'", 0)])
def test_conditions_are_read_at_load(tmp_path: Path, word: str, value: Any, wrong: int) -> None:
    assert [one.code for one in found_in(tmp_path, with_task(**{word: value}))] == ["E213"] * wrong


NAMES = [
    # as written, and the module that it means
    ("file", "file"), ("ansible.builtin.file", "file"), ("ansible.legacy.file", "file"), ("ansible.posix.file", "file"), ("community.general.file", "file"),
    ("nodectl.file", "file"), ("other.collection.file", None), ("ansible.builtin.nothing", None), ("ansible.builtin.import_tasks", "import_tasks"),
    ("ansible.builtin.ansible.builtin.file", None), ("builtin.file", None), ("", None), ("File", None),
]  # fmt: skip


@pytest.mark.parametrize(("written", "module"), NAMES)
def test_names_of_modules(written: str, module: str | None) -> None:
    assert short_name(written, known) == module


@pytest.mark.parametrize("word", ["wehn", "regsiter", "tgas", "become_usr", "ignore_error", "notfy", "loop_contrl", "chekc_mode"])
def test_a_misspelt_keyword_comes_with_the_nearest_one(tmp_path: Path, word: str) -> None:
    (one,) = found_in(tmp_path, with_task(**{word: 1}))
    assert (one.code, one.help[:14]) == ("E202", "did you mean '")
    assert one.help[14:-2] in keywords.TASK


@pytest.mark.parametrize("module", ["import_tasks", "include_tasks", "import_role", "include_role", "include_vars", "template", "assert", "meta"])
def test_what_a_module_cannot_do_without_is_told_at_load(tmp_path: Path, module: str) -> None:
    found = found_in(tmp_path, {"hosts": "all", "tasks": [{module: None}]})
    assert [one.code for one in found] in (["E208"], ["E208", "E208"]) or module == "include_vars"
    assert all("missing parameter" in one.message for one in found)


MODULE_OR_KEYWORD: list[tuple[dict[str, Any], dict[str, str]]] = [
    # the keys of a task without a module that is known, and what each of them is taken for
    ({"comand": "id"}, {"comand": "E203"}), ({"comand": "id", "when": "a"}, {"comand": "E203"}), ({"name": "x", "wehn": "a"}, {"wehn": "E203"}),
    ({"debgu": None, "wehn": "a"}, {"debgu": "E203", "wehn": "E202"}), ({"command": "id", "wehn": "a"}, {"wehn": "E202"}),
    ({"frobnicate": 1, "zzz": 2}, {"frobnicate": "E203", "zzz": "E203"}), ({"action": "command id", "wehn": 1}, {"wehn": "E202"}),
]  # fmt: skip


@pytest.mark.parametrize(("task", "told"), MODULE_OR_KEYWORD, ids=[" ".join(str(key) for key in dict(task)) for task, _ in MODULE_OR_KEYWORD])
def test_a_word_is_taken_for_what_it_most_likely_is(tmp_path: Path, task: dict[str, Any], told: dict[str, str]) -> None:
    found = found_in(tmp_path, {"hosts": "all", "tasks": [task]})
    assert {one.message.split("'")[1]: one.code for one in found} == told
