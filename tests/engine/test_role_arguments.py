"""A role's argument_specs are checked before its first task that really runs, on each host with that host's values."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.diagnostics.model import Mistakes
from tests.engine.playing import Played, play

SPECS = """\
argument_specs:
  main:
    options:
      size: {type: int, required: true}
      color: {type: str, choices: [red, blue], default: red}
"""
FILES = {
    "roles/r/meta/argument_specs.yml": SPECS,
    "roles/r/tasks/main.yml": "- {name: first, command: 'true'}\n- {name: second, debug: {msg: '{{ size }}'}}\n",
    "roles/r/tasks/other.yml": "- {name: other, debug: {msg: a}}\n",
}


def run(folder: Path, tasks: str, inventory: str = "[all]\nh1\n[all:vars]\nansible_connection=local\n") -> Played:
    return play(folder, f"- hosts: all\n  gather_facts: false\n  tasks:\n{tasks}", inventory=inventory, files=FILES)


WRONG = [
    ("{include_role: {name: r}}", "'size' is required"),
    ("{include_role: {name: r}, vars: {size: many}}", "whole number"),
    ("{include_role: {name: r}, vars: {size: 1, color: green}}", "red, blue"),
    ("{import_role: {name: r}, ignore_errors: true}", "'size' is required"),
]


@pytest.mark.parametrize(("task", "said"), WRONG)
def test_wrong_arguments_fail_before_anything_is_done(tmp_path: Path, task: str, said: str) -> None:
    played = run(tmp_path, f"    - {task}\n")
    assert played.of("h1")[-1] == "first: failed"
    assert said in played.kinds("task.end")[-1].data["result"]["msg"]
    assert played.connections.steps == []


def test_right_arguments_pass(tmp_path: Path) -> None:
    assert run(tmp_path, "    - {name: in, include_role: {name: r}, vars: {size: '{{ 1 + 1 }}'}}\n").of("h1") == ["in: ok", "first: changed", "second: ok"]


def test_a_role_that_is_skipped_needs_no_arguments(tmp_path: Path) -> None:
    assert run(tmp_path, "    - {import_role: {name: r}, when: false}\n").of("h1") == ["first: skipped", "second: skipped"]


def test_other_entries_are_not_held_to_the_main_one(tmp_path: Path) -> None:
    assert run(tmp_path, "    - {name: in, include_role: {name: r, tasks_from: other}}\n").of("h1") == ["in: ok", "other: ok"]


def test_what_an_inventory_says_wrong_is_told_at_load(tmp_path: Path) -> None:
    inventory = "[all]\nh1 size=3\nh2 size=three\nh3 size='{{ later }}'\n[all:vars]\nansible_connection=local\n"
    with pytest.raises(Mistakes, match=r"hosts:3:1: role 'r': 'size' wants a whole number, not 'three'"):
        run(tmp_path, "    - {import_role: {name: r}}\n", inventory)


def test_a_host_that_the_role_does_not_run_on_may_mean_something_else_by_the_name(tmp_path: Path) -> None:
    text = "- hosts: h1\n  gather_facts: false\n  roles: [r]\n"
    played = play(tmp_path, text, inventory="[all]\nh1 size=3\nh2 size=three\n[all:vars]\nansible_connection=local\n", files=FILES)
    assert played.result.exit_code == 0


def test_each_host_is_judged_by_its_own_values(tmp_path: Path) -> None:
    inventory = "[all]\nh1 size=3\nh2 size={{word}} word=three\n[all:vars]\nansible_connection=local\n"
    played = run(tmp_path, "    - {import_role: {name: r}}\n", inventory)
    assert played.result.status == {"h1": "ok", "h2": "failed"}
