"""What differs between the two sides of one case: flags, the return values that fields.toml names, and what lies on the nodes afterwards."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from tests.differential.case_files import FOLDER, ROOT, Case
from tests.differential.twins import Side, Told, Twins

FIELDS: Mapping[str, Mapping[str, list[str]]] = tomllib.loads((FOLDER / "fields.toml").read_text("utf-8"))
# What tells the twins apart from their first day; shadow holds the day of a change, and is compared line by line without it.
OWN = ("/etc/hostname", "/etc/hosts", "/etc/machine-id", "/etc/ssh/ssh_host_", "/etc/resolv.conf", "/etc/mtab", "/etc/fstab", "/etc/shadow")
Difference = tuple[Any, Any]


def module_of(task: Mapping[str, Any]) -> str:
    """The module that a task names: its one key that fields.toml or a module's name has."""
    keywords = {"name", "register", "loop", "when", "vars", "become", "become_user", "environment", "args", "failed_when", "changed_when", "check_mode", "diff", "ignore_errors", "until", "retries"}
    return next(key for key in task if key not in keywords)


def told(case: Case, twins: Twins) -> dict[str, dict[str, Difference]]:
    """Task number -> field -> (Ansible's, nodectl's), where they are not the same."""
    found = {}
    for number, task in enumerate(case.data["tasks"], 1):
        name = f"{case.id}#{number}"
        differing = of_task(module_of(task), twins.ansible.told.get(name), twins.nodectl.told.get(name), case)
        if differing:
            found[str(number)] = differing
    return found


def of_task(module: str, theirs: Told | None, ours: Told | None, case: Case) -> dict[str, Difference]:
    if theirs is None or ours is None:
        return {} if theirs is ours else {"ran": (theirs and theirs.status, ours and ours.status)}
    found = {key: pair for key, pair in _flags(theirs, ours).items() if pair[0] != pair[1]}
    table = FIELDS.get(module, {})
    if theirs.failed or ours.failed:
        return {**found, **_values(table.get("failed", []), theirs.result, ours.result)}
    names = [*table.get("fields", []), *(table.get("unchanged", []) if not theirs.result.get("changed") else [])]
    if "results" in theirs.result and "results" in ours.result:
        return {**found, **_items(names, theirs.result["results"], ours.result["results"])}
    found.update(_values(names, theirs.result, ours.result))
    if case.data.get("diff") and table.get("diff"):
        found.update(_diffs(table["diff"], theirs, ours))
    return found


def _flags(theirs: Told, ours: Told) -> dict[str, Difference]:
    flags: dict[str, Difference] = {"failed": (theirs.failed, ours.failed), "skipped": (theirs.status == "skipped", ours.status == "skipped")}
    if not theirs.failed and not ours.failed:
        flags["changed"] = (bool(theirs.result.get("changed")), bool(ours.result.get("changed")))
    return flags


def _items(names: list[str], theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> dict[str, Difference]:
    found: dict[str, Difference] = {} if len(theirs) == len(ours) else {"results": (len(theirs), len(ours))}
    for number, (one, other) in enumerate(zip(theirs, ours, strict=False)):
        found.update({f"results.{number}.{key}": pair for key, pair in _values([*names, "changed", "failed", "skipped", "item"], one, other).items()})
    return found


def _values(names: list[str], theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, Difference]:
    """Where Ansible returns something and nodectl something else, or nothing under that name."""
    found = {}
    for name in [*(name for name in names if name != "*"), *(_own_names(theirs) if "*" in names else [])]:
        one, other = _inside(name, theirs), _inside(name, ours)
        if name == "elapsed" and isinstance(one, int) and isinstance(other, int) and abs(one - other) <= 1:
            continue  # both count whole seconds, on a machine that does other things too
        if one is not None and one != other:
            found[name] = (one, other)
    return found


def _own_names(result: dict[str, Any]) -> list[str]:
    """What `debug: var=` shows under the variable's name."""
    return [key for key in result if not key.startswith("_") and key not in ("msg", "changed", "failed", "false_condition", "skip_reason", "exception", "ansible_facts", "warnings")]


def _inside(name: str, value: Any) -> Any:
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _diffs(names: list[str], theirs: Told, ours: Told) -> dict[str, Difference]:
    """Texts before and after. Ansible shows both although they are equal; its attributes (mode, owner) are an entry that holds no text."""
    one, other = ({name: "".join(part[name] for part in told.diff if isinstance(part.get(name), str)) for name in names} for told in (theirs, ours))
    if len(set(one.values())) < 2:
        return {}
    return {f"diff.{name}": (one[name], other[name]) for name in names if one[name] != other[name]}


def files(twins: Twins, below: str) -> dict[str, Difference]:
    """Paths at or below ``below`` that are not the same on both nodes."""
    return {path: pair for path, pair in _files(twins).items() if path == below or path.startswith(below + "/")}


def other_files(twins: Twins) -> dict[str, Difference]:
    """Paths that belong to no case's own folder and are not the same on both nodes."""
    return {path: pair for path, pair in _files(twins).items() if not path.startswith((*OWN, ROOT))}


def _files(twins: Twins) -> dict[str, Difference]:
    one, other = twins.ansible.state["files"], twins.nodectl.state["files"]
    return {path: (one.get(path), other.get(path)) for path in sorted({*one, *other}) if one.get(path) != other.get(path)}


def lines(twins: Twins, what: str) -> tuple[list[str], list[str]]:
    """(lines only Ansible's node has, lines only nodectl's node has) of passwd, group, shadow, packages or units."""
    one, other = (_neutral(side, what) for side in (twins.ansible, twins.nodectl))
    return sorted(one - other), sorted(other - one)


def _neutral(side: Side, what: str) -> set[str]:
    return {re.sub(rf"\b{side.host}\b", "HOST", line) for line in side.state[what]}
