"""Cases made from tables: every pair of places that may set a variable, and every way to bring a role in (D57)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import yaml

# The places of a play that can hold a variable, weakest first as Ansible documents them, and the file of the case where each is written.
PLACES: Mapping[str, str] = {
    "role_defaults": "roles/r/defaults/main.yml",
    "inventory_all": "inv/hosts.yml all",
    "inventory_parent": "inv/hosts.yml parent",
    "inventory_child": "inv/hosts.yml child",
    "inventory_group_vars_all": "inv/group_vars/all.yml",
    "playbook_group_vars_all": "group_vars/all.yml",
    "inventory_group_vars_parent": "inv/group_vars/parent.yml",
    "inventory_group_vars_child": "inv/group_vars/child/main.yml",
    "playbook_group_vars_parent": "group_vars/parent.yml",
    "playbook_group_vars_child": "group_vars/child.yml",
    "inventory_host": "inv/hosts.yml host",
    "inventory_host_vars": "inv/host_vars/h1.yml",
    "playbook_host_vars": "host_vars/h1/main.yml",
    "play_vars": "play vars",
    "vars_files": "vars.yml",
    "role_vars": "roles/r/vars/main.yml",
    "block_vars": "roles/r/tasks block",
    "task_vars": "roles/r/tasks task",
    "include_vars": "included.yml",
    "set_fact": "set_fact",
    "role_params": "role params",
    "include_params": "include params",
    "extra_vars": "-e",
}
# How the role comes in, and what is then handed to it: `roles:` and dependencies have parameters of their own.
WAYS = ("roles", "dependency", "import_role", "include_role")
PAIRS = list(combinations(PLACES, 2))


def name_of(first: str, second: str) -> str:
    return f"{first}__{second}"


def values_of(place: str) -> dict[str, str]:
    """All variables that ``place`` sets: one for each other place, each with the place as its value."""
    return {name_of(*pair): place for pair in PAIRS if place in pair}


def dump(value: Any) -> str:
    return str(yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=True, width=200))


def look_tasks() -> str:
    """One task that shows every variable, where all places are in force: inside a block, an included file, and the role."""
    shown = {name_of(*pair): "{{ " + name_of(*pair) + " }}" for pair in PAIRS}
    task = {"name": "look", "debug": {"msg": shown}, "vars": values_of("task_vars")}
    return dump([{"name": "block", "vars": values_of("block_vars"), "block": [task]}])


def inventory() -> str:
    child = {"hosts": {"h1": values_of("inventory_host")}, "vars": values_of("inventory_child")}
    every = {"ansible_connection": "local", **values_of("inventory_all")}
    return dump({"all": {"vars": every, "children": {"parent": {"vars": values_of("inventory_parent"), "children": {"child": child}}}}})


def files_of(way: str) -> dict[str, str]:
    files = {path: dump(values_of(place)) for place, path in PLACES.items() if path.endswith(".yml") and " " not in path}
    files["inv/hosts.yml"] = inventory()
    files["roles/r/tasks/main.yml"] = dump([{"name": "include", "include_tasks": "look.yml", "vars": values_of("include_params")}])
    files["roles/r/tasks/look.yml"] = look_tasks()
    if way == "dependency":
        files["roles/top/meta/main.yml"] = dump({"dependencies": [{"role": "r", **values_of("role_params")}]})
    return files


def brought_in(way: str) -> dict[str, Any]:
    params = values_of("role_params")
    if way == "roles":
        return {"roles": [{"role": "r", **params}]}
    if way == "dependency":
        return {"roles": ["top"]}
    return {"tasks": [{"name": way, way: {"name": "r"}, "vars": params}]}


def precedence(way: str) -> dict[str, Any]:
    """A case file as the loader of cases reads them."""
    before = [
        {"name": "set", "set_fact": values_of("set_fact")},
        {"name": "include", "include_vars": "included.yml"},
    ]
    play = {"hosts": "all", "gather_facts": False, "vars": values_of("play_vars"), "vars_files": ["vars.yml"], "pre_tasks": before, **brought_in(way)}
    return {
        "about": f"which of two places wins, for each pair of {len(PLACES)} places; the role comes in through {way}",
        "sources": ["inv/hosts.yml"],
        "inventory": "",
        "files": files_of(way),
        "options": {"extra_vars": values_of("extra_vars")},
        "playbook": dump([play]),
    }


def made_cases() -> Iterator[tuple[str, dict[str, Any]]]:
    for way in WAYS:
        yield f"precedence_{way}", precedence(way)
