"""What differs between the two sides of one case: flags, the return values that fields.toml names, and what lies on the nodes afterwards."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from tests.differential.case_files import FOLDER, ROOT, Case
from tests.differential.twins import LINES, Left, Told

FIELDS: Mapping[str, Mapping[str, list[str]]] = tomllib.loads((FOLDER / "fields.toml").read_text("utf-8"))
Difference = tuple[Any, Any]
# What Ansible makes of a set: its order means nothing.
UNORDERED = ("sources_added", "sources_removed", "results")


def module_of(task: Mapping[str, Any]) -> str:
    """The module that a task names: its one key that fields.toml or a module's name has."""
    keywords = {"name", "register", "loop", "when", "vars", "become", "become_user", "environment", "args", "failed_when", "changed_when", "check_mode", "diff", "ignore_errors", "until", "retries"}
    return next(key for key in task if key not in keywords).rsplit(".", 1)[-1]


def told(case: Case, ansible: Mapping[str, Told], nodectl: Mapping[str, Told]) -> dict[str, dict[str, Difference]]:
    """Task number -> field -> (Ansible's, nodectl's), where they are not the same."""
    found = {}
    for number, task in enumerate(case.data["tasks"], 1):
        name = f"{case.id}#{number}"
        differing = of_task(module_of(task), ansible.get(name), nodectl.get(name), case)
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
    if _of_a_loop(theirs.result) and _of_a_loop(ours.result):
        return {**found, **_items(names, theirs.result["results"], ours.result["results"])}
    found.update(_values(names, theirs.result, ours.result))
    if case.data.get("diff") and table.get("diff"):
        found.update(_diffs(table["diff"], theirs, ours))
    return found


def _of_a_loop(result: Mapping[str, Any]) -> bool:
    """dnf returns texts under that name."""
    return "results" in result and all(isinstance(one, Mapping) for one in result["results"])


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
        if name in UNORDERED and isinstance(one, list) and isinstance(other, list):
            one, other = sorted(one), sorted(other)
        if name == "elapsed" and isinstance(one, int) and isinstance(other, int) and abs(one - other) <= 1:
            continue  # both count whole seconds, on a machine that does other things too
        if one is not None and one != other:
            found[name] = (one, other)
    return found


def _own_names(result: dict[str, Any]) -> list[str]:
    """What `debug: var=` shows under the variable's name."""
    return [key for key in result if not key.startswith("_") and key not in ("msg", "changed", "failed", "false_condition", "skip_reason", "skipped_reason", "exception", "ansible_facts", "warnings")]


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


def files(theirs: Left, ours: Left, below: str) -> dict[str, Difference]:
    """Paths at or below ``below`` that the two sides left in another way."""
    return {path: pair for path, pair in _files(theirs, ours).items() if path == below or path.startswith(below + "/")}


def elsewhere(theirs: Left, ours: Left) -> dict[str, Difference]:
    """What the two sides left in another way outside of the cases' own folders: path or kind of line -> (Ansible's, nodectl's)."""
    found: dict[str, Difference] = {path: pair for path, pair in _files(theirs, ours).items() if not path.startswith(ROOT)}
    found.update({name: (theirs.get(name), ours.get(name)) for name in LINES if theirs.get(name) != ours.get(name)})
    return found


def _files(theirs: Left, ours: Left) -> dict[str, Difference]:
    one, other = theirs.get("files", {}), ours.get("files", {})
    absent = "as it was"
    return {path: (one.get(path, absent), other.get(path, absent)) for path in sorted({*one, *other}) if one.get(path, absent) != other.get(path, absent)}
