"""Loads lists of tasks: tasks, blocks, imports, roles. What an outer level says is pushed down into each task."""

from __future__ import annotations

import os.path
from dataclasses import replace
from pathlib import Path
from typing import Any

from nodectl.lang import document, keywords, lookups
from nodectl.lang.argument_specs import check_literal, options_of
from nodectl.lang.arguments import Call, find_call
from nodectl.lang.document import Map, Seq, bare
from nodectl.lang.fields import Fields, is_template, kind_of, looked_in, nearest, variables_of
from nodectl.lang.loading import Loading, Where, inherit
from nodectl.lang.role import Role, Use
from nodectl.lang.roles import RoleFiles, RoleSource, find_file, find_role, missing_role, read_role
from nodectl.lang.seen import Handler
from nodectl.lang.task import Block, Inherited, LoopControl, Node, Task
from nodectl.wire.origin import Origin

# An include or import of a role is another use than the same role in `roles:`.
INCLUDED = Use(Path(), (), {}, included=True)
# What steers the run itself: nothing of it could go on in the background.
STRUCTURE = (*keywords.STATIC, *keywords.DYNAMIC, "meta")
# Keywords of a task that are false where nobody said anything.
_SWITCHES = ("ignore_errors", "ignore_unreachable", "no_log", "run_once", "any_errors_fatal", "delegate_facts")
# Modules that read a file of the controller: the parameter that names it, and the folder of a role where it is.
# Not include_vars: roles try it for a file of this distribution and rescue or ignore that there is none.
_SOURCES = {"template": ("src", "templates"), "copy": ("src", "files")}


def load_file(path: Path, at: Origin | None, where: Where, loading: Loading) -> list[Node]:
    """The nodes of a task file; ``at`` is the place that names it. A file that imports itself is refused."""
    if path.resolve() in loading.files:
        loading.checker.error("E215", f"{path} imports itself", at, "this closes a circle", "use include_tasks with a `when` that ends it")
        return []
    loading.checked.add(path.resolve())
    value = loading.checker.read(path, at)
    return node_list(value, Origin(str(path), 1, 1), replace(where, folder=path.parent), loading.inside_file(path))


def node_list(value: Any, at: Origin, where: Where, loading: Loading) -> list[Node]:
    """The nodes of a YAML list; imports are already replaced by what they bring."""
    if value is None:
        return []
    if not isinstance(value, Seq):
        loading.checker.error("E201", f"tasks are a list, not {kind_of(value)}", getattr(value, "origin", at), "expected `- ` before each task")
        return []
    nodes: list[Node] = []
    for item, place in zip(value, value.item_at, strict=True):
        if isinstance(item, Map):
            nodes += _node(Fields(item, loading.checker), where, loading)
        elif item is not None:
            loading.checker.error("E201", f"a task is a mapping, not {kind_of(item)}", place, "expected a module with its parameters")
    return nodes


def _node(fields: Fields, where: Where, loading: Loading) -> list[Node]:
    if any(part in fields for part in ("block", "rescue", "always")):
        return [_block(fields, where, loading)]
    task, call = _task(fields, where, loading)
    if task is None or call is None:
        return []
    if task.module == "import_tasks":
        return _import_tasks(task, call, where, loading)
    if task.module == "import_role":
        return _import_role(task, call, where, loading)
    if loading.peek:
        _peek(task, call, where, loading)
    return [task]


def _block(fields: Fields, where: Where, loading: Loading) -> Block:
    for key in [key for key in fields.map if key not in keywords.BLOCK]:
        if key in keywords.REFUSED:
            loading.checker.error("E217", f"'{key}' is not supported by nodectl", fields.key_at(key), "not supported", keywords.REFUSED[key])
        else:
            loading.checker.error("E202", f"unknown keyword '{key}' in a block", fields.key_at(key), "not a keyword", nearest(str(key), keywords.BLOCK))
    if where.handler:
        loading.checker.error("E219", "a block cannot be a handler", fields.start, "expected a task")
    if "block" not in fields:
        loading.checker.error("E219", "rescue and always need a block", fields.start, "no block here")
    inside = replace(where, inherited=inherit(where.inherited, fields, loading, fields.variables()))
    parts = {part: tuple(node_list(fields.map.get(part), fields.at(part), inside, loading)) for part in ("block", "rescue", "always")}
    return Block(parts["block"], parts["rescue"], parts["always"], fields.start, fields.text("name"))


def _task(fields: Fields, where: Where, loading: Loading) -> tuple[Task | None, Call | None]:
    outer = inherit(where.inherited, fields, loading)
    call = find_call(fields, loading.known, outer.module_defaults)
    loop, kind = _loop(fields)
    origins = {str(key): at for key, at in fields.map.key_at.items()}
    if call is not None:
        origins.update({f"args.{name}": at for name, at in call.key_at.items()})
    apply = _apply(call, where, loading)
    register = fields.name("register")
    if register:
        loading.checker.seen.registered[fields.at("register")] = register
    task = Task(
        module=call.module if call else "",
        args=call.args if call else {},
        origin=fields.start,
        name=fields.text("name"),
        origins=origins,
        role=where.role,
        loop=loop,
        loop_kind=kind,
        loop_control=_loop_control(fields),
        register=register,
        vars=fields.variables(),
        changed_when=fields.conditions("changed_when") if "changed_when" in fields else None,
        failed_when=fields.conditions("failed_when") if "failed_when" in fields else None,
        listen=_listen(fields, where),
        until=fields.conditions("until"),
        retries=fields.template("retries"),
        delay=fields.template("delay"),
        seconds=_seconds("async", call, fields),
        poll=_seconds("poll", call, fields),
        apply_tags=apply.tags - where.inherited.tags if apply else frozenset(),
        inherited=apply,
        **_given(outer),
    )
    if call is not None and call.local:
        task = replace(task, delegate_to="localhost")
    return (task if call else None), call


def _given(outer: Inherited) -> dict[str, Any]:
    """The inherited values under a task's own names, with what nobody said filled in."""
    values = dict(vars(outer))
    for name in _SWITCHES:
        values[name] = False if values[name] is None else values[name]
    return values


def _seconds(key: str, call: Call | None, fields: Fields) -> Any:
    """async and poll: a number of seconds, for what runs on the node."""
    value = fields.template(key)
    if value is not None and not is_template(value) and (isinstance(value, bool) or not str(value).isdecimal()):
        fields.wrong(key, "a number of seconds")
        return None
    if value and call is not None and (call.module in STRUCTURE):
        message = f"'{key}' cannot be used with {call.module}"
        fields.check.error("E209", message, fields.key_at(key), "nothing runs on the node here", "give it to the tasks inside")
    return value


def _apply(call: Call | None, where: Where, loading: Loading) -> Inherited | None:
    """For an include: what its tasks will get from the blocks around it and from `apply`."""
    if call is None or call.module not in keywords.DYNAMIC:
        return None
    value = call.raw.get("apply")
    if not isinstance(value, Map):
        return where.inherited
    fields = Fields(value, loading.checker)
    fields.unknown(keywords.SHARED, "apply")
    return inherit(where.inherited, fields, loading, fields.variables())


def _listen(fields: Fields, where: Where) -> tuple[str, ...]:
    if "listen" in fields and not where.handler:
        fields.check.error("E202", "'listen' is for handlers only", fields.key_at("listen"), "not a keyword of a task")
    return fields.texts("listen")


def _loop(fields: Fields) -> tuple[Any, str]:
    names = [key for key in fields.map if isinstance(key, str) and (key == "loop" or key.startswith("with_"))]
    for key in names:
        _check_lookup(key, fields)
    if len(names) > 1:
        fields.check.error("E220", f"two loops in one task: '{names[0]}' and '{names[1]}'", fields.key_at(names[1]), "a second loop")
    if not names:
        return None, "loop"
    value = fields.template(names[0])
    if value is None:
        fields.check.error("E220", f"'{names[0]}' says nothing", fields.key_at(names[0]), "expected a list or a template")
    return value, names[0].removeprefix("with_")


def _check_lookup(key: str, fields: Fields) -> None:
    """A with_ keyword names a lookup."""
    name = key.removeprefix("with_")
    if name in lookups.REFUSED:
        fields.check.error("E217", f"'{key}' is not supported by nodectl", fields.key_at(key), "not supported", lookups.REFUSED[name])
    elif key != "loop" and name not in lookups.names():
        advice = nearest(key, [f"with_{one}" for one in lookups.names()])
        fields.check.error("E202", f"unknown keyword '{key}' in a task", fields.key_at(key), "no lookup of this name", advice)


def _loop_control(fields: Fields) -> LoopControl:
    value = fields.map.get("loop_control")
    if value is None:
        return LoopControl()
    if not isinstance(value, Map):
        fields.wrong("loop_control", "a mapping")
        return LoopControl()
    inner = Fields(value, fields.check)
    inner.unknown(keywords.LOOP_CONTROL, "loop_control")
    pause = inner.template("pause", 0.0)
    if isinstance(pause, bool) or not isinstance(pause, (int, float)):
        inner.wrong("pause", "a number of seconds")
        pause = 0.0
    extended, all_items = bool(inner.fixed_flag("extended")), inner.fixed_flag("extended_allitems") is not False
    names = inner.name("loop_var") or "item", inner.name("index_var")
    return LoopControl(*names, inner.template("label"), float(pause), extended, all_items, inner.conditions("break_when"))


def _no_loop(task: Task, call: Call, loading: Loading) -> None:
    if task.loop is not None:
        dynamic = task.module.replace("import", "include")
        loading.checker.error("E220", f"{task.module} cannot loop: it is resolved before the run", call.at, "a loop needs an include", f"write {dynamic}")


def _inside(task: Task, where: Where) -> Inherited:
    """What an import gives to what it brings: all its keywords, and its variables as one more scope."""
    taken = {name: getattr(task, name) for name in vars(where.inherited)}
    for name in _SWITCHES:
        taken[name] = taken[name] or None
    taken["scope"] = task.scope + ((task.vars,) if task.vars else ())
    return Inherited(**taken)


def beneath(inherited: Inherited, role: Role | None) -> Inherited:
    """For a role that ``role`` includes or imports: the names and folders of the roles around it, the nearest first."""
    if role is None:
        return inherited
    names, paths = "ansible_parent_role_names", "ansible_parent_role_paths"
    outer: dict[str, Any] = next((layer for layer in reversed(inherited.scope) if names in layer), {names: [], paths: []})
    return replace(inherited, scope=(*inherited.scope, {names: [role.name, *outer[names]], paths: [str(role.path), *outer[paths]]}))


def _literal(call: Call, name: str, loading: Loading) -> str | None:
    value = call.args.get(name)
    if not isinstance(value, str) or not value:
        return None
    if is_template(value):
        dynamic = call.module.replace("import", "include")
        advice = f"write {dynamic}, which is resolved when the variables are known"
        loading.checker.error("E209", f"the {name} of {call.module} cannot be a template", call.value_at.get(name, call.at), "expected a fixed name", advice)
        return None
    return value


def _import_tasks(task: Task, call: Call, where: Where, loading: Loading) -> list[Node]:
    _no_loop(task, call, loading)
    name = _literal(call, "file", loading)
    if name is None:
        return []
    at = call.value_at.get("file", call.at)
    path = loading.find(name, "tasks", where.role, where.folder)
    if path is None:
        loading.checker.error("E210", f"file '{name}' not found", at, "this file is missing", _looked(where))
        return []
    return load_file(path, at, replace(where, inherited=_inside(task, where)), loading)


def _looked(where: Where) -> str:
    folders = [where.role.path / "tasks"] if where.role else []
    return looked_in([*folders, where.folder])


def _role_files(call: Call) -> RoleFiles:
    names = {part: call.args.get(f"{part}_from") for part in ("tasks", "vars", "defaults", "handlers")}
    return RoleFiles(**{part: str(name) for part, name in names.items() if name and not is_template(name)})


def _import_role(task: Task, call: Call, where: Where, loading: Loading) -> list[Node]:
    _no_loop(task, call, loading)
    name = _literal(call, "name", loading)
    if name is None:
        return []
    inside = replace(where, inherited=beneath(_inside(task, where), where.role))
    again = call.args.get("allow_duplicates", True) not in (False, "no", "false")
    return bring_role(name, {}, call.value_at.get("name", call.at), inside, loading, _role_files(call), use=INCLUDED, allow_duplicates=again)


def _peek(task: Task, call: Call, where: Where, loading: Loading) -> None:
    """What an include, a template or a copy names outright is looked at now, so that its mistakes show before the run."""
    if task.module == "include_tasks":
        _peek_tasks(task, call, where, loading)
    elif task.module == "include_role":
        _peek_role(task, call, where, loading)
    elif task.module in _SOURCES:
        _peek_source(call, where, loading)


def _peek_tasks(task: Task, call: Call, where: Where, loading: Loading) -> None:
    name = call.args.get("file")
    if not isinstance(name, str) or is_template(name):
        loading.unseen.append(call.at)
        return
    path = loading.find(name, "tasks", where.role, where.folder)
    if path is None:
        loading.checker.error("E210", f"file '{name}' not found", call.value_at.get("file", call.at), "this file is missing", _looked(where))
    elif path.resolve() not in loading.checked:
        # Handlers of roles imported there come when the include runs.
        apart = replace(loading, handlers=loading.later_handlers)
        load_file(path, call.at, replace(where, inherited=task.inherited or Inherited()), apart)


def _peek_role(task: Task, call: Call, where: Where, loading: Loading) -> None:
    name = call.args.get("name")
    if not isinstance(name, str) or is_template(name):
        loading.unseen.append(call.at)
        loading.checker.seen.unknown = True
        return
    path = find_role(name, loading.basedir, loading.roles_path, where.role.path.parent if where.role else None)
    if path is None:
        missing_role(name, call.value_at.get("name", call.at), loading.basedir, loading.roles_path, loading.checker)
    elif path.resolve() not in loading.checked:
        loading.checked.add(path.resolve())
        apart = replace(loading, handlers=loading.later_handlers)
        bring_role(name, {}, call.at, replace(where, inherited=task.inherited or Inherited()), apart, _role_files(call))


def _peek_source(call: Call, where: Where, loading: Loading) -> None:
    param, kind = _SOURCES[call.module]
    name = call.args.get(param)
    if not isinstance(name, str) or is_template(name) or call.args.get("remote_src", False) not in (False, "no", "false"):
        return
    path = loading.find(name.rstrip("/"), kind, where.role, where.folder)
    at = call.value_at.get(param, call.at)
    if path is None and not _is_folder(name, kind, where, loading):
        folders = [where.role.path / kind] if where.role else [where.folder / kind, where.folder]
        loading.checker.error("E210", f"file '{name}' not found", at, "this file is missing", looked_in(folders))
    elif path is not None and call.module == "template" and path.resolve() not in loading.checked:
        loading.checked.add(path.resolve())
        text = document.read_text(path, loading.checker.found, at, loading.checker.vault)
        if text is not None:
            loading.checker.file(text.text, text.file)


def _is_folder(name: str, kind: str, where: Where, loading: Loading) -> bool:
    folders = [where.role.path / kind, where.role.path] if where.role else []
    folders += [where.folder / kind, where.folder, loading.basedir / kind, loading.basedir]
    return any(os.path.isdir(folder / name) for folder in folders)


def role_entry(value: Any, at: Origin, where: Where, loading: Loading, parent: Role | None = None) -> list[Node]:
    """One item of `roles:` or of a role's dependencies: a name, or {role: name, keywords and parameters}."""
    if isinstance(value, str):
        return bring_role(value, {}, at, where, loading, parent=parent)
    if not isinstance(value, Map):
        loading.checker.error("E209", f"a role is a name or a mapping, not {kind_of(value)}", at, "expected the name of a role")
        return []
    fields = Fields(value, loading.checker)
    key = "role" if "role" in fields else "name"
    name = fields.text(key)
    if not name:
        loading.checker.error("E209", "a role without a name", value.origin, "expected `role: NAME`")
        return []
    extra = Map(value.origin)
    for word in [word for word in value if word not in keywords.ROLE]:
        if word in keywords.REFUSED:
            loading.checker.error("E217", f"'{word}' is not supported by nodectl", fields.key_at(word), "not supported", keywords.REFUSED[word])
        else:
            extra[word], extra.key_at[word], extra.value_at[word] = value[word], value.key_at[word], value.value_at[word]
    inside = replace(where, inherited=inherit(where.inherited, fields, loading, fields.variables()))
    own = Use(Path(), (), {}, _plain(value, "when"), fields.words("tags"), bare(value.get("vars")) or {})
    return bring_role(name, extra, fields.at(key), inside, loading, parent=parent, use=own)


def bring_role(
    name: str,
    params: dict[str, Any],
    at: Origin,
    where: Where,
    loading: Loading,
    files: RoleFiles | None = None,
    *,
    parent: Role | None = None,
    use: Use | None = None,
    allow_duplicates: bool = False,
) -> list[Node]:
    """The nodes of a role, those of its dependencies first; its handlers go to the play.

    ``parent`` is the role whose dependency it is; ``use`` holds the when, tags and vars of this use.
    """
    path = find_role(name, loading.basedir, loading.roles_path, where.role.path.parent if where.role else None)
    if path is None:
        missing_role(name, at, loading.basedir, loading.roles_path, loading.checker)
        return []
    if path.resolve() in loading.roles:
        loading.checker.error("E215", f"role '{name}' needs itself", at, "this closes a circle")
        return []
    files = files or RoleFiles()
    own = variables_of(params, loading.checker) if isinstance(params, Map) else dict(params)
    source = read_role(path.name, path, {**(parent.params if parent else {}), **own}, files, loading.checker, at)
    _check_params(source.role, params, files, loading)
    use = replace(use or Use(Path(), (), {}), path=path.resolve(), files=tuple(vars(files).values()), params=own)
    role = replace(source.role, parent=parent, use=use, allow_duplicates=allow_duplicates or source.role.allow_duplicates)
    return _role_nodes(replace(source, role=role), files, at, where, loading.inside_role(path))


def _plain(value: Map, key: str) -> tuple[Any, ...]:
    said = bare(value.get(key))
    return tuple(said) if isinstance(said, list) else () if said is None else (said,)


def _check_params(role: Role, params: dict[str, Any], files: RoleFiles, loading: Loading) -> None:
    if not isinstance(params, Map):
        return
    for problem in check_literal(role, bare(params), files.tasks):
        name = problem.param.split(".")[0].split("[")[0]
        known = [*options_of(role, files.tasks), *role.defaults, *keywords.ROLE]
        advice = "" if name in known else nearest(name, known)
        loading.checker.error("E216", problem.message, params.key_at.get(name, params.origin), f"see {role.name}/meta/argument_specs.yml", advice)


def _role_nodes(source: RoleSource, files: RoleFiles, at: Origin, where: Where, loading: Loading) -> list[Node]:
    role = source.role
    nodes: list[Node] = []
    for item, place in zip(source.dependencies, source.dependencies.item_at, strict=True) if source.dependencies else ():
        nodes += role_entry(item, place, replace(where, role=role), loading, parent=role)
    inside = Where(role.path / "tasks", role, where.inherited)
    loading.handlers.extend(_role_handlers(role, files, at, inside, loading))
    tasks = find_file(role.path / "tasks", files.tasks)
    if tasks is not None:
        return [*nodes, Block(tuple(load_file(tasks, at, inside, loading)), (), (), at, role=role)]
    if files.tasks != "main":
        loading.checker.error("E210", f"role '{role.name}' has no tasks/{files.tasks}.yml", at, "this file is missing")
    return nodes


def _role_handlers(role: Role, files: RoleFiles, at: Origin, inside: Where, loading: Loading) -> list[Task]:
    file = find_file(role.path / "handlers", files.handlers)
    if file is None:
        if files.handlers != "main":
            loading.checker.error("E210", f"role '{role.name}' has no handlers/{files.handlers}.yml", at, "this file is missing")
        return []
    handlers = only_tasks(load_file(file, at, replace(inside, handler=True), loading))
    if files.tasks == "main":  # with tasks_from, those who notify may stand in the file that is not read now
        see_handlers(handlers, loading)
    return handlers


def see_handlers(handlers: list[Task], loading: Loading) -> None:
    """For the warning that nobody notifies them."""
    seen = loading.checker.seen
    for handler in handlers:
        if not is_template(handler.name) and handler.module not in keywords.DYNAMIC:
            at = handler.origins.get("name", handler.origin)
            seen.handlers[at] = Handler(str(handler.name), names_of(handler), at)


def names_of(handler: Task) -> frozenset[str]:
    """All names by which a handler can be notified."""
    plain = {str(handler.name), *handler.listen}
    return frozenset(plain | ({f"{handler.role.name} : {name}" for name in plain} if handler.role else set()))


def only_tasks(nodes: list[Node]) -> list[Task]:
    """Handlers are tasks; blocks among them have been reported."""
    return [node for node in nodes if isinstance(node, Task)]
