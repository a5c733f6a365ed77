"""Finds a role and reads everything of it but its tasks: defaults, vars, what it depends on, what arguments it takes."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nodectl.lang.document import Map, Seq, bare
from nodectl.lang.fields import Checker, kind_of, looked_in, variables_of
from nodectl.lang.role import Role
from nodectl.wire.origin import Origin

ENDINGS = (".yml", ".yaml", ".json", "")


@dataclass(frozen=True)
class RoleFiles:
    """Which file of each folder of the role is meant (tasks_from …)."""

    tasks: str = "main"
    vars: str = "main"
    defaults: str = "main"
    handlers: str = "main"


@dataclass(frozen=True)
class RoleSource:
    """A role as read from disk. ``dependencies`` are entries as in `roles:`."""

    role: Role
    dependencies: Seq | None


def find_role(name: str, basedir: Path, roles_path: Sequence[Path], beside: Path | None = None) -> Path | None:
    """The folder of a role: roles/ beside the playbook, the folders of ``roles_path``, beside the role that asks, the playbook's own folder."""
    folders = [basedir / "roles", *roles_path, *([beside] if beside else []), basedir]
    return next((folder / name for folder in folders if os.path.isdir(folder / name)), None)


def missing_role(name: str, at: Origin, basedir: Path, roles_path: Sequence[Path], checker: Checker) -> None:
    folders = list(dict.fromkeys([basedir / "roles", *roles_path]))
    names = [entry.name for folder in folders if folder.is_dir() for entry in folder.iterdir() if entry.is_dir()]
    near = get_close_matches(name, names, n=1)
    advice = f"did you mean '{near[0]}'?" if near else looked_in(folders)
    checker.error("E211", f"role '{name}' not found", at, "no folder of this name", advice)


def find_file(folder: Path, name: str) -> Path | None:
    """`main` as main.yml, main.yaml or main.json; a name with an ending as it stands."""
    return next((folder / (name + ending) for ending in ENDINGS if os.path.isfile(folder / (name + ending))), None)


def read_role(name: str, path: Path, params: dict[str, Any], files: RoleFiles, checker: Checker, at: Origin | None) -> RoleSource:
    """The role without its tasks. ``at`` is where it is used."""
    checker.seen.folders.add(path)
    defaults, default_origins = _variables(path / "defaults", files.defaults, checker, at)
    values, value_origins = _variables(path / "vars", files.vars, checker, at)
    meta = _mapping(path / "meta", "main", checker)
    specs = _mapping(path / "meta", "argument_specs", checker).get("argument_specs", meta.get("argument_specs"))
    dependencies = meta.get("dependencies")
    if dependencies is not None and not isinstance(dependencies, Seq):
        checker.error("E209", f"'dependencies' wants a list, not {kind_of(dependencies)}", meta.value_at["dependencies"], "expected a list of roles")
        dependencies = None
    role = Role(name, path, defaults, values, params, {**default_origins, **value_origins}, bare(specs) if isinstance(specs, Map) else {})
    return RoleSource(replace(role, allow_duplicates=meta.get("allow_duplicates") is True), dependencies)


def _mapping(folder: Path, name: str, checker: Checker) -> Map:
    file = find_file(folder, name)
    value = checker.read(file) if file else None
    if isinstance(value, Map):
        return value
    if value is not None:
        checker.error("E209", f"{file} does not hold a mapping", Origin(str(file), 1, 1), "expected name: value pairs")
    return Map(Origin(str(file or folder), 1, 1))


def _variables(folder: Path, name: str, checker: Checker, at: Origin | None) -> tuple[dict[str, Any], dict[str, Origin]]:
    """Variables of `main.yml`, or of all files of a folder `main/`, and where each was written."""
    file = find_file(folder, name)
    files = [file] if file else []
    if not file and os.path.isdir(folder / name):
        files = sorted(entry for entry in (folder / name).rglob("*") if entry.suffix in ENDINGS[:3])
    if not files and name != "main":
        checker.error("E210", f"no file '{name}' in {folder}", at, "this file is missing")
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for one in files:
        value = checker.read_variables(one)
        if isinstance(value, Map):
            values.update(variables_of(value, checker))
            origins.update({key: place for key, place in value.key_at.items() if isinstance(key, str)})
        elif value is not None:
            checker.error("E209", f"{one} does not hold variables", Origin(str(one), 1, 1), "expected name: value pairs")
    return values, origins
