"""What all parts of one run share: options, connections, variables, and the one door to the journal."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodectl.diagnostics.model import Collector, Mistakes
from nodectl.engine.actions.files import search_folders
from nodectl.engine.catalogue import known
from nodectl.engine.cursor import RolesRun
from nodectl.engine.handlers import HandlerTable
from nodectl.engine.masking import Masker
from nodectl.engine.options import Options
from nodectl.engine.outside import output, readers
from nodectl.engine.owed import Owed
from nodectl.engine.state import HostState
from nodectl.engine.variables import PlayVariables, Variables
from nodectl.inventory.load import add_playbook_folder, load_inventory
from nodectl.inventory.model import Inventory
from nodectl.inventory.secret_names import secret_texts
from nodectl.lang.load import LoadedRole, LoadedTasks, load_role, load_tasks, load_vars_file
from nodectl.lang.lookups import Lookups
from nodectl.lang.playbook import Play
from nodectl.lang.task import Task
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError
from nodectl.lang.unsafe import has_template
from nodectl.lang.vault import Vault
from nodectl.transport.channel import Connections
from nodectl.wire.event import Event

# Variables that are passwords by their name.
PASSWORDS = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password", "ansible_become_password", "ansible_become_pass", "ansible_sudo_pass")

Emit = Callable[[Event], None]


class Interrupted(Exception):
    """The run is being stopped: threads leave their waits with this."""


class Loader:
    """Reads task files, roles and variable files at run time, each once: hosts of one include must share the same Task objects."""

    def __init__(self, roles_path: tuple[Path, ...], vault: Vault, opened: Callable[[Any], None]) -> None:
        self.roles_path = roles_path
        self.vault = vault
        self._opened = opened
        self._lock = threading.Lock()
        self._tasks: dict[tuple[Path, int], LoadedTasks] = {}
        self._roles: dict[tuple[Any, ...], LoadedRole] = {}
        self._vars: dict[Path, dict[str, Any]] = {}

    def tasks(self, path: Path, parent: Task) -> LoadedTasks:
        """Raises Mistakes."""
        with self._lock:
            key = (path, id(parent))
            if key not in self._tasks:
                found = Collector()
                loaded = load_tasks(path, parent.role, parent, self.roles_path, known, found, self.vault)
                found.stop_if_wrong()
                self._opened(self.vault.opened)
                self._tasks[key] = loaded
            return self._tasks[key]

    def role(self, name: str, parent: Task, basedir: Path, **parts: Any) -> LoadedRole:
        """``parts``: tasks_from, vars_from, defaults_from, handlers_from, allow_duplicates. Raises Mistakes."""
        with self._lock:
            key = (name, id(parent), *sorted(parts.items()))
            if key not in self._roles:
                found = Collector()
                loaded = load_role(name, {}, basedir, parent, self.roles_path, known, found, vault=self.vault, **parts)
                found.stop_if_wrong()
                self._opened(self.vault.opened)
                self._roles[key] = loaded
            return self._roles[key]

    def vars(self, path: Path) -> dict[str, Any]:
        """Raises Mistakes."""
        with self._lock:
            if path not in self._vars:
                found = Collector()
                variables = load_vars_file(path, found, self.vault)
                found.stop_if_wrong()
                self._opened(self.vault.opened)
                self._vars[path] = variables
            return self._vars[path]


def _masker(inventory: Inventory, options: Options) -> Masker:
    """Knows from the start what is typed as a secret, and the passwords that an inventory holds in clear."""
    masker = Masker()
    masker.remember_secrets([options.become_password, dict(options.extra_vars), options.vault.opened])
    _remember(masker, inventory)
    return masker


def _remember(masker: Masker, inventory: Inventory) -> None:
    for host in inventory.names():
        variables = inventory.variables(host)
        masker.remember_secrets(variables)
        masker.remember([variables[name] for name in PASSWORDS if name in variables and not has_template(str(variables[name]))])


class Runtime:
    """One run. Everything here may be used from any thread."""

    def __init__(self, playbook: Path, inventory: Inventory, options: Options, connections: Connections, emit: Emit, templar: Templar) -> None:
        self.playbook_dir = playbook.parent.absolute()
        self.inventory = inventory
        self.options = options
        self.connections = connections
        self.asking = threading.Lock()
        self.templar = templar.with_lookup(self.lookups(None))
        self.states: dict[str, HostState] = {name: HostState(name) for name in inventory.names()}
        self.variables = Variables(inventory, options, self.states, self.templar, self.playbook_dir)
        self.masker = _masker(inventory, options)
        self.loader = Loader((self.playbook_dir / "roles", *options.roles_path), options.vault, self.masker.remember_secrets)
        self.owed = Owed(options.pending_dir, lambda text: self.emit("warning", text=text), keep=not options.check)
        self.stop = threading.Event()
        self.grown = False
        self._growing = threading.Lock()
        self._growth: list[tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]] = []
        self._emit = emit
        self._emit_lock = threading.Lock()
        self._ids = itertools.count(1)

    def lookups(self, task: Task | None) -> Lookups:
        """Lookups as ``task`` sees them: its role's files first."""
        return Lookups(lambda kind: search_folders(task, self.playbook_dir, kind), outside=readers(self), vault=self.options.vault)

    def enter(self, playbook_dir: Path) -> None:
        """A play begins (or the run ends) whose playbook is in this folder: files, roles and variables are looked for there."""
        self.playbook_dir = playbook_dir.absolute()
        self.variables.enter(self.playbook_dir)
        self.loader.roles_path = tuple(dict.fromkeys([self.playbook_dir / "roles", *self.loader.roles_path]))

    def state(self, host: str) -> HostState:
        """The implicit localhost gets its state when it is first named."""
        return self.states.setdefault(host, HostState(host))

    def grow(self, host: str, groups: Sequence[str], parents: Sequence[str], variables: Mapping[str, Any]) -> bool:
        """Add to the inventory of this run. What is added is seen from the next task on. True where something is new."""
        with self._growing:
            self.masker.remember_secrets(variables)
            self.masker.remember(list(secret_texts(variables)))
            changed = self.inventory.grow(host, groups, parents, variables)
            self._growth.append((host, groups, parents, variables))
            self.state(host)
            self.variables.forget()
            self.grown = self.grown or changed
        return changed

    def refresh_inventory(self) -> None:
        """Read the sources anew; what the run itself added stays. What is seen changes from the next task on. Raises Mistakes, and then changes nothing."""
        found = Collector()
        fresh = load_inventory(self.inventory.sources, found, self.options.vault, output)
        for folder in self.inventory.playbooks:
            add_playbook_folder(fresh, folder, found, self.options.vault)
        found.stop_if_wrong()
        with self._growing:
            _remember(self.masker, fresh)
            for growth in self._growth:
                fresh.grow(*growth)
            self.inventory.take(fresh)
            for name in fresh.names():
                self.state(name)
            self.variables.forget()
            self.grown = True

    def next_id(self) -> int:
        return next(self._ids)

    def emit(self, kind: str, host: str = "", **data: Any) -> None:
        """One event, in JSON types, with the secrets of this run masked. Events of all threads come out one after the other."""
        masked = self.masker.mask(data)
        with self._emit_lock:
            self._emit(Event(kind, time.time(), host, masked))

    def wait(self, seconds: float) -> None:
        """Sleep that an interrupt ends. Raises Interrupted."""
        if self.stop.wait(max(0.0, seconds)):
            raise Interrupted


class PlayScope(PlayVariables):
    """One batch of a play as its tasks see it."""

    def __init__(self, play: Play, hosts: list[str], batch: list[str], roles: list[Any], handlers: HandlerTable) -> None:
        super().__init__(play, hosts, batch, roles)
        self.handlers = handlers
        self.roles_run: dict[str, RolesRun] = {}
        self._leaving = threading.Lock()

    def leave(self, host: str) -> None:
        """New lists, so that a template that is reading an old one is not disturbed."""
        with self._leaving:
            self.live = [name for name in self.live if name != host]
            self.remaining = [name for name in self.remaining if name != host]


def text_of(run: Runtime, value: Any, variables: Mapping[str, Any]) -> str:
    """A name or label for people: rendered where that works, else as it was written."""
    try:
        return str(run.templar.render(value, variables))
    except TemplateError:
        return str(value)


def mistakes_text(mistakes: Mistakes) -> str:
    return "; ".join(f"{d.origin}: {d.message}" if d.origin else d.message for d in mistakes.diagnostics)
