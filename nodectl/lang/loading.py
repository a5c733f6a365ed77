"""What one load shares, and what a place in the tree of tasks hands down."""

from __future__ import annotations

import os.path
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from nodectl.lang.arguments import Known as Known
from nodectl.lang.arguments import module_defaults
from nodectl.lang.fields import Checker, Fields, is_template
from nodectl.lang.role import Role
from nodectl.lang.task import Become, Inherited, Reach, Task, Template
from nodectl.wire.origin import Origin

_Keywords = TypeVar("_Keywords", Become, Reach)
# The ways to a node: paramiko is a client for ssh as well.
CONNECTIONS = ("ssh", "local", "smart", "paramiko", "paramiko_ssh")


@dataclass(frozen=True)
class Loading:
    """One play's load. The lists are shared by all that is loaded for it; ``files`` and ``roles`` are the chain down to here.

    ``unseen`` are the includes whose file or role is only known at run time.
    """

    known: Known
    checker: Checker
    roles_path: tuple[Path, ...]
    basedir: Path
    peek: bool = True
    handlers: list[Task] = field(default_factory=list)
    later_handlers: list[Task] = field(default_factory=list)
    notified: list[tuple[str, Origin]] = field(default_factory=list)
    checked: set[Path] = field(default_factory=set)
    unseen: list[Origin] = field(default_factory=list)
    files: tuple[Path, ...] = ()
    roles: tuple[Path, ...] = ()

    def inside_file(self, path: Path) -> Loading:
        return replace(self, files=(*self.files, path.resolve()))

    def inside_role(self, path: Path) -> Loading:
        return replace(self, roles=(*self.roles, path.resolve()))

    def find(self, name: str, kind: str, role: Role | None, beside: Path) -> Path | None:
        """A file that a task names, in Ansible's order: the role's folders, beside the task's file, the playbook's."""
        # os.path and not Path: a name too long, with a NUL in it or of an unknown user is a file that is not there, not an exception.
        path = Path(os.path.expanduser(name))
        if path.is_absolute():
            return path if os.path.isfile(path) else None
        folders = [role.path / kind, role.path, role.path / "tasks"] if role else []
        for folder in (beside, self.basedir, *(one.parent for one in self.roles_path)):
            folders += [folder / kind, folder]
        return next((folder / path for folder in folders if os.path.isfile(folder / path)), None)


@dataclass(frozen=True)
class Where:
    """Where a list of tasks stands: in which role, under which inherited keywords, in which folder, among handlers or not."""

    folder: Path
    role: Role | None = None
    inherited: Inherited = Inherited()
    handler: bool = False


def inherit(outer: Inherited, fields: Fields, loading: Loading, variables: dict[str, Template] | None = None) -> Inherited:
    """What holds inside a mapping of keywords: lists grow, single values of the inner level win."""

    def or_outer(value: Any, before: Any) -> Any:
        return before if value is None else value

    notify = fields.texts("notify")
    loading.checker.seen.notified.update(notify)
    loading.checker.seen.any_handler |= any(map(is_template, notify))
    loading.notified.extend((text, at) for text, (_, at) in zip(notify, fields.items("notify"), strict=False))
    return Inherited(
        when=outer.when + fields.conditions("when"),
        tags=outer.tags | fields.words("tags"),
        scope=outer.scope + ((variables,) if variables else ()),
        become=_over(outer.become, fields.become()),
        reach=_over(outer.reach, _reach(fields)),
        environment=outer.environment + fields.environment(),
        notify=outer.notify + notify,
        ignore_errors=or_outer(fields.flag("ignore_errors"), outer.ignore_errors),
        ignore_unreachable=or_outer(fields.flag("ignore_unreachable"), outer.ignore_unreachable),
        no_log=or_outer(fields.flag("no_log"), outer.no_log),
        delegate_to=or_outer(fields.template("delegate_to"), outer.delegate_to),
        run_once=or_outer(fields.fixed_flag("run_once"), outer.run_once),
        any_errors_fatal=or_outer(fields.fixed_flag("any_errors_fatal"), outer.any_errors_fatal),
        check_mode=or_outer(fields.flag("check_mode"), outer.check_mode),
        diff=or_outer(fields.flag("diff"), outer.diff),
        timeout=or_outer(fields.template("timeout"), outer.timeout),
        throttle=or_outer(_throttle(fields), outer.throttle),
        delegate_facts=or_outer(fields.flag("delegate_facts"), outer.delegate_facts),
        module_defaults=outer.module_defaults + module_defaults(fields, loading.known),
    )


def _reach(fields: Fields) -> Reach:
    port = fields.template("port")
    if port is not None and not is_template(port) and (isinstance(port, bool) or not str(port).isdecimal() or not 0 < int(port) < 65536):
        fields.wrong("port", "a number from 1 to 65535")
        port = None
    return Reach(_connection(fields), fields.text("remote_user") or None, port)


def _connection(fields: Fields) -> Template:
    value = fields.text("connection") or None
    if value is not None and not is_template(value) and plain_connection(value) not in CONNECTIONS:
        fields.check.error("E209", f"connection '{value}' is not known", fields.at("connection"), "expected ssh or local")
        return None
    return value


def plain_connection(name: str) -> str:
    """The name of a connection without its collection."""
    return name.removeprefix("ansible.builtin.").removeprefix("ansible.legacy.")


def _throttle(fields: Fields) -> Template:
    value = fields.template("throttle")
    if value is not None and not is_template(value) and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        fields.wrong("throttle", "a number of hosts")
        return None
    return value


def _over(outer: _Keywords, inner: _Keywords) -> _Keywords:
    """Each value of the inner level, where it says one."""
    return replace(outer, **{name: value for name, value in vars(inner).items() if value is not None})
