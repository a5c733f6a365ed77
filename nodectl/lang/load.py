"""Reads playbooks, task files, roles and variables from disk. The only entry for other rooms.

Nothing here raises for a user's mistake: everything wrong goes into the collector with its place, and loading goes on,
so that one run shows all mistakes.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nodectl.diagnostics.model import Collector
from nodectl.lang.fields import Checker
from nodectl.lang.loading import Known, Loading, Where
from nodectl.lang.nodes import INCLUDED, beneath, bring_role, load_file
from nodectl.lang.playbook import Playbook
from nodectl.lang.plays import Books, load_variables
from nodectl.lang.role import Role
from nodectl.lang.roles import RoleFiles, RoleSource, find_role, read_role
from nodectl.lang.task import Inherited, Node, Task, tasks_of
from nodectl.lang.vault import NO_PASSWORDS, Vault
from nodectl.wire.origin import Origin


class LoadedTasks(NamedTuple):
    """The tasks of a file, and the handlers of the roles that it imports."""

    nodes: tuple[Node, ...]
    handlers: tuple[Task, ...]


class LoadedRole(NamedTuple):
    """A role ready to run: its value, its tasks (those of its dependencies first), its handlers (likewise)."""

    role: Role
    nodes: tuple[Node, ...]
    handlers: tuple[Task, ...]


def load_playbook(path: Path, roles_path: Sequence[Path], known: Known, found: Collector, vault: Vault = NO_PASSWORDS) -> Playbook:
    """The playbook with all its imports. ``known`` gives the parameters of a module by its short name, or None."""
    checker = Checker(found, vault)
    if not os.path.isfile(path):
        checker.error("E109", f"playbook {path} does not exist", None, help="give the path of a YAML file")
        return Playbook(path, ())
    return Playbook(path, tuple(Books(roles_path, known, checker).load(path)), checker.seen)


def load_tasks(
    path: Path, role: Role | None, parent: Task | None, roles_path: Sequence[Path], known: Known, found: Collector, vault: Vault = NO_PASSWORDS
) -> LoadedTasks:
    """The tasks that an include_tasks brings at run time. ``parent`` is the include: its variables are a scope of theirs."""
    loading = Loading(known, Checker(found, vault), tuple(roles_path), path.parent, peek=False)
    nodes = tuple(load_file(path, parent.origin if parent else None, Where(path.parent, role, _inside(parent)), loading))
    return LoadedTasks(nodes, tuple(loading.handlers))


def load_role(
    name: str,
    params: dict[str, Any],
    basedir: Path,
    parent: Task | None,
    roles_path: Sequence[Path],
    known: Known,
    found: Collector,
    tasks_from: str = "main",
    vars_from: str = "main",
    defaults_from: str = "main",
    handlers_from: str = "main",
    allow_duplicates: bool = True,
    vault: Vault = NO_PASSWORDS,
) -> LoadedRole:
    """A role that an include_role brings at run time. ``basedir`` is the playbook's folder."""
    checker = Checker(found, vault)
    loading = Loading(known, checker, tuple(roles_path), basedir, peek=False)
    files = RoleFiles(tasks_from, vars_from, defaults_from, handlers_from)
    at = parent.origin if parent else Origin(str(basedir), 1, 1)
    around = parent.role if parent else None
    where = Where(basedir, around, beneath(_inside(parent), around))
    nodes = tuple(bring_role(name, params, at, where, loading, files, use=INCLUDED, allow_duplicates=allow_duplicates))
    return LoadedRole(_role_of(name, params, nodes, where, loading, files), nodes, tuple(loading.handlers))


def load_vars_file(path: Path, found: Collector, vault: Vault = NO_PASSWORDS) -> dict[str, Any]:
    """The variables of a YAML file."""
    return load_variables(path, Checker(found, vault))


def _inside(parent: Task | None) -> Inherited:
    if parent is None:
        return Inherited()
    inherited = parent.inherited or Inherited(scope=parent.scope)
    return replace(inherited, scope=inherited.scope + ((parent.vars,) if parent.vars else ()))


def _role_of(name: str, params: dict[str, Any], nodes: Sequence[Node], where: Where, loading: Loading, files: RoleFiles) -> Role:
    """The Role object that the role's own tasks carry; made anew for a role without tasks."""
    path = find_role(name, loading.basedir, loading.roles_path, where.role.path.parent if where.role else None)
    for task in tasks_of(nodes):
        if task.role is not None and task.role.path == path:
            return task.role
    if path is None:
        return Role(name, loading.basedir / "roles" / name)
    return _read_again(path, params, files, loading.checker.vault).role


def _read_again(path: Path, params: dict[str, Any], files: RoleFiles, vault: Vault) -> RoleSource:
    return read_role(path.name, path, params, files, Checker(Collector(), vault), None)
