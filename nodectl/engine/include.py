"""include_tasks and include_role: what stands in another file, put in at this point for this host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodectl.engine.actions.contract import ActionFailed
from nodectl.engine.actions.files import search_folders
from nodectl.engine.cursor import Inclusion, Position
from nodectl.engine.results import Item
from nodectl.engine.runtime import PlayScope, Runtime
from nodectl.lang.task import Task
from nodectl.lang.template_error import TemplateError


def include(run: Runtime, scope: PlayScope, host: str, position: Position, args: Mapping[str, Any], variables: Mapping[str, Any]) -> Item:
    """The item's inclusion. Raises ActionFailed or Mistakes."""
    task = position.task
    params = _params(run, task, variables)
    if task.module == "include_tasks":
        path = task_file(run, task, str(args["file"]))
        file = run.loader.tasks(path, task)
        scope.handlers.add(file.handlers)
        return Item({"changed": False, "failed": False, "include": str(path)}, inclusions=[Inclusion(file.nodes, params)])
    parts = {name: str(args[name]) for name in ("tasks_from", "vars_from", "defaults_from", "handlers_from")}
    loaded = run.loader.role(str(args["name"]), task, run.playbook_dir, allow_duplicates=args["allow_duplicates"], **parts)
    if args["tasks_from"] != "main" or not args["rolespec_validate"]:
        run.state(host).validated.append(loaded.role)
    scope.handlers.add(loaded.handlers)
    if args["public"] and loaded.role not in scope.roles:
        scope.roles = [*scope.roles, loaded.role]
    return Item({"changed": False, "failed": False, "include_role": loaded.role.name}, inclusions=[Inclusion(loaded.nodes, params, loaded.role)])


def _params(run: Runtime, task: Task, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The include's own variables. Inside a loop they are rendered now: an inner loop has another `item`."""
    if task.loop is None:
        return dict(task.vars)
    names = [task.loop_control.loop_var, task.loop_control.index_var]
    params = {name: variables[name] for name in names if name and name in variables}
    for name, value in task.vars.items():
        try:
            params[name] = run.templar.render(value, variables)
        except TemplateError:
            params[name] = value
    return params


def task_file(run: Runtime, task: Task, name: str) -> Path:
    looked = [Path(name)] if Path(name).is_absolute() else _places(run, task, name)
    for path in looked:
        if path.is_file():
            return path
    raise ActionFailed(f"{name} is not there; looked at: " + ", ".join(map(str, looked)))


def _places(run: Runtime, task: Task, name: str) -> list[Path]:
    """Beside the including file first, then in the role's tasks, then beside the playbook."""
    beside = Path(task.origin.file).absolute().parent / name
    folders = search_folders(task, run.playbook_dir, "tasks")
    return list(dict.fromkeys([beside, *(folder / name for folder in folders)]))
