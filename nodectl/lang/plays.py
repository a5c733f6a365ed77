"""Loads playbooks: plays, and playbooks that import playbooks."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nodectl.lang import keywords
from nodectl.lang.document import Map, Seq, bare
from nodectl.lang.fields import Checker, Fields, is_template, kind_of, looked_in, nearest
from nodectl.lang.loading import Known, Loading, Where, inherit
from nodectl.lang.nodes import names_of, node_list, only_tasks, role_entry, see_handlers
from nodectl.lang.playbook import Play, Prompt, Section
from nodectl.lang.task import Become, Inherited, Node, Task
from nodectl.lang.unsafe import has_template
from nodectl.wire.origin import Origin


@dataclass(frozen=True)
class Outer:
    """What the imports around a playbook give to its plays."""

    inherited: Inherited = Inherited()
    vars: dict[str, Any] = field(default_factory=dict)


class Books:
    """One load of a playbook with everything it imports."""

    def __init__(self, roles_path: Sequence[Path], known: Known, checker: Checker) -> None:
        self.roles_path = tuple(roles_path)
        self.known = known
        self.checker = checker

    def load(self, path: Path, chain: tuple[Path, ...] = (), at: Origin | None = None, outer: Outer | None = None) -> list[Play]:
        """The plays of a file. ``chain`` are the files that led here, ``outer`` what their imports give."""
        outer = outer or Outer()
        if path.resolve() in chain:
            self.checker.error("E215", f"{path} imports itself", at, "this closes a circle")
            return []
        self.checker.seen.folders.add(path.parent)
        value = self.checker.read(path, at)
        if not isinstance(value, Seq):
            if value is not None:
                self.checker.error("E201", f"a playbook is a list of plays, not {kind_of(value)}", Origin(str(path), 1, 1), "expected `- hosts: …`")
            return []
        plays: list[Play] = []
        for item, place in zip(value, value.item_at, strict=True):
            if not isinstance(item, Map):
                self.checker.error("E201", f"a play is a mapping, not {kind_of(item)}", place, "expected `- hosts: …`")
            elif any(key in item for key in _import_keys()):
                plays += self._import(Fields(item, self.checker), path, (*chain, path.resolve()), outer)
            else:
                plays.append(self._play(Fields(item, self.checker), path, outer))
        return plays

    def _import(self, fields: Fields, path: Path, chain: tuple[Path, ...], outer: Outer) -> list[Play]:
        key = next(key for key in _import_keys() if key in fields)
        fields.unknown((*keywords.IMPORT_PLAYBOOK, key), "an import_playbook")
        name = fields.map[key]
        if not isinstance(name, str) or not name or is_template(name):
            self.checker.error("E209", "import_playbook wants the name of a file", fields.at(key), "expected a fixed name")
            return []
        other = path.parent / name
        if not os.path.isfile(other):
            self.checker.error("E210", f"playbook '{name}' not found", fields.at(key), "this file is missing", looked_in([path.parent]))
            return []
        inside = inherit(outer.inherited, fields, self._loading(path))
        # As in Ansible, an import's variables are those of the plays, and the outer import has the last word.
        return self.load(other, chain, fields.at(key), Outer(inside, {**fields.variables(), **outer.vars}))

    def _loading(self, path: Path) -> Loading:
        return Loading(self.known, self.checker, self.roles_path, path.parent)

    def _play(self, fields: Fields, path: Path, outer: Outer) -> Play:
        self._keywords(fields)
        loading = self._loading(path)
        # become, environment and vars of a play are the engine's to merge; the rest is pushed down.
        inherited = inherit(outer.inherited, fields, loading)
        inside = replace(inherited, become=outer.inherited.become, environment=outer.inherited.environment)
        where = Where(path.parent, None, inside)
        sections = tuple(self._section(name, fields, where, loading) for name in ("pre_tasks", "tasks", "post_tasks"))
        own = only_tasks(node_list(fields.map.get("handlers"), fields.at("handlers"), replace(where, handler=True), loading))
        see_handlers(own, loading)
        handlers = (*loading.handlers, *own)
        check_notified(loading, handlers)
        hosts, hosts_at = self._hosts(fields)
        return Play(
            name=fields.text("name") or hosts,
            hosts=hosts,
            origin=fields.start,
            hosts_origin=hosts_at,
            sections=tuple(section for section in sections if section.nodes),
            handlers=handlers,
            basedir=path.parent,
            vars={**fields.variables(), **outer.vars},
            vars_files=self._vars_files(fields, path),
            gather_facts=fields.fixed_flag("gather_facts"),
            gather_subset=fields.texts("gather_subset"),
            become=Become(inherited.become.enabled, inherited.become.user, inherited.become.method, inherited.become.flags),
            reach=inherited.reach,
            strategy=self._strategy(fields),
            serial=self._serial(fields),
            max_fail_percentage=fields.template("max_fail_percentage"),
            any_errors_fatal=bool(fields.fixed_flag("any_errors_fatal")),
            force_handlers=bool(fields.fixed_flag("force_handlers")),
            environment=fields.environment(),
            tags=inherited.tags,
            order=self._one_of("order", keywords.ORDERS, fields),
            prompts=tuple(prompt for item, at in fields.items("vars_prompt") if (prompt := self._prompt(item, at)) is not None),
        )

    def _prompt(self, value: Any, at: Origin) -> Prompt | None:
        """One item of vars_prompt."""
        if not isinstance(value, Map):
            self.checker.error("E209", f"'vars_prompt' wants mappings, not {kind_of(value)}", at, "expected name: and prompt:")
            return None
        fields = Fields(value, self.checker)
        for key in [key for key in ("encrypt", "salt", "salt_size") if key in fields]:
            advice = "ask for the password and write {{ name | password_hash('sha512') }} where its hash is wanted"
            self.checker.error("E217", f"'{key}' in vars_prompt is not supported by nodectl", fields.key_at(key), "not supported", advice)
        fields.unknown((*keywords.PROMPT, "encrypt", "salt", "salt_size"), "vars_prompt")
        name = fields.name("name")
        if not name:
            self.checker.error("E209", "a question without a name", at, "expected name:", "name the variable that gets the answer")
            return None
        private = fields.fixed_flag("private")
        default = fields.text("default") if "default" in fields else None
        return Prompt(name, fields.text("prompt") or name, fields.start, default, private is not False, bool(fields.fixed_flag("confirm")))

    def _one_of(self, key: str, words: Sequence[str], fields: Fields) -> str:
        """A keyword with a fixed set of values, the first being the default."""
        value = fields.text(key, words[0])
        if value not in words:
            self.checker.error("E209", f"unknown {key} '{value}'", fields.at(key), f"expected one of {', '.join(words)}", nearest(value, words))
            return words[0]
        return value

    def _keywords(self, fields: Fields) -> None:
        for key in [key for key in fields.map if key not in keywords.PLAY]:
            if key in keywords.REFUSED:
                self.checker.error("E217", f"'{key}' is not supported by nodectl", fields.key_at(key), "not supported", keywords.REFUSED[key])
            else:
                self.checker.error("E202", f"unknown keyword '{key}' in a play", fields.key_at(key), "not a keyword", nearest(str(key), keywords.PLAY))

    def _section(self, name: str, fields: Fields, where: Where, loading: Loading) -> Section:
        """`tasks` holds the roles too: they come first, and handlers are flushed once after both."""
        nodes: list[Node] = []
        if name == "tasks":
            for item, at in fields.items("roles"):
                nodes += role_entry(item, at, where, loading)
        return Section(name, tuple(nodes + node_list(fields.map.get(name), fields.at(name), where, loading)))

    def _hosts(self, fields: Fields) -> tuple[str, Origin]:
        if "hosts" not in fields or fields.map["hosts"] in (None, ""):
            self.checker.error("E222", "a play without hosts", fields.start, "expected `hosts:`", "write hosts: all, or the name of a group")
            return "", fields.map.origin
        return ",".join(fields.texts("hosts")), fields.at("hosts")

    def _vars_files(self, fields: Fields, path: Path) -> tuple[Any, ...]:
        files = []
        for item, at in fields.items("vars_files"):
            self.checker.templates(item, at)
            files.append(bare(item))
            if isinstance(item, str) and not has_template(item):
                self._vars_file(item, at, path)
        return tuple(files)

    def _vars_file(self, name: str, at: Origin, path: Path) -> None:
        file = next((folder / name for folder in (path.parent / "vars", path.parent) if os.path.isfile(folder / name)), None)
        if file is None:
            self.checker.error("E210", f"file '{name}' not found", at, "this file is missing", looked_in([path.parent]))
        else:
            load_variables(file, self.checker)

    def _strategy(self, fields: Fields) -> str:
        strategy = fields.text("strategy", "linear").removeprefix("ansible.builtin.")
        if strategy not in keywords.STRATEGIES:
            expected = ", ".join(keywords.STRATEGIES)
            advice = nearest(strategy, keywords.STRATEGIES)
            self.checker.error("E209", f"unknown strategy '{strategy}'", fields.at("strategy"), f"expected one of {expected}", advice)
            return "linear"
        return strategy

    def _serial(self, fields: Fields) -> tuple[Any, ...]:
        steps = []
        for item, at in fields.items("serial"):
            number = str(item).removesuffix("%")
            if is_template(item) or (number.isdecimal() and int(number) > 0 and not isinstance(item, bool)):
                steps.append(item)
            else:
                self.checker.error("E209", f"'serial' wants numbers or percentages, not {item!r}", at, "expected for example 2 or 30%")
        return tuple(steps)


def _import_keys() -> tuple[str, ...]:
    return ("import_playbook", "ansible.builtin.import_playbook")


def load_variables(file: Path, checker: Checker) -> dict[str, Any]:
    """The variables of a vars file; empty with diagnostics when it holds none."""
    value = checker.read_variables(file)
    if isinstance(value, Map):
        checker.templates(value, value.origin)
        return {str(name): bare(item) for name, item in value.items()}
    if value is not None:
        checker.error("E209", f"{file} does not hold variables", Origin(str(file), 1, 1), "expected name: value pairs")
    return {}


def check_notified(loading: Loading, handlers: Sequence[Task]) -> None:
    """Every handler that is notified by a fixed name must exist. With a templated name of a handler, or of a file or role
    to include, nothing can be said before the run."""
    every = [*handlers, *loading.later_handlers]
    if loading.unseen or any(is_template(handler.name) or handler.module in keywords.DYNAMIC for handler in every):
        return
    names = {name for handler in every for name in names_of(handler)}
    for name, at in loading.notified:
        if not is_template(name) and name not in names:
            advice = nearest(name, names) or ("there are no handlers in this play" if not names else f"handlers of this play: {', '.join(sorted(names))}")
            loading.checker.error("E212", f"no handler '{name}'", at, "no handler listens to this", advice)
