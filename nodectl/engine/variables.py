"""Which value a name has for one task on one host: Ansible's precedence, as layers that are looked through and never copied."""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from nodectl.engine.cursor import Position
from nodectl.engine.options import Options
from nodectl.engine.state import HostState
from nodectl.inventory.model import LOCALHOST, Inventory
from nodectl.lang.playbook import Play
from nodectl.lang.role import Role
from nodectl.lang.scope import LazyVariables
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError
from nodectl.lang.undefined import OMIT

# The release whose language nodectl speaks; roles ask for it in `ansible_version.full is version(…)`.
LANGUAGE = (2, 19, 14)

Layer = Mapping[str, Any]


class PlayVariables:
    """The play's part: its variables, its roles, and who takes part.

    ``live`` (of the batch) and ``remaining`` (of the play) are shared lists, remade when a host leaves: no task copies them.
    """

    def __init__(self, play: Play, hosts: Sequence[str], batch: Sequence[str], roles: Sequence[Role]) -> None:
        self.play = play
        self.hosts = list(hosts)
        self.remaining = list(hosts)
        self.live = list(batch)
        self.roles = list(roles)
        self.files: dict[str, Layer] = {}

    def magic(self) -> dict[str, Any]:
        return {
            "ansible_play_name": self.play.name,
            "ansible_play_hosts_all": self.hosts,
            "ansible_play_hosts": self.remaining,
            "ansible_play_batch": self.live,
            "play_hosts": self.live,
            **self._role_names(),
        }

    def _role_names(self) -> dict[str, list[str]]:
        """Roles that the play names itself, and those that came as dependencies."""
        named = [role.name for role in self.roles if role.parent is None]
        needed = list(dict.fromkeys(role.name for role in self.roles if role.parent is not None))
        return {
            "ansible_play_role_names": named, "role_names": named, "ansible_dependent_role_names": needed,
            "ansible_role_names": list(dict.fromkeys([*needed, *named])),
        }


class Variables:
    """All variables of a run. Reading is safe from many threads; each host's own state is written by the thread that works on it."""

    def __init__(self, inventory: Inventory, options: Options, states: Mapping[str, HostState], templar: Templar, playbook_dir: Path) -> None:
        self._inventory = inventory
        self._options = options
        self._states = states
        self._templar = templar
        self._playbook_dir = playbook_dir
        self._of_host: dict[str, Layer] = {}
        self._magic_of: dict[str, Layer] = {}
        self._hostvars = HostVars(self)

    def enter(self, playbook_dir: Path) -> None:
        """A play begins whose playbook is in this folder: its group_vars and host_vars count now. No task may be under way."""
        if playbook_dir != self._playbook_dir:
            self._playbook_dir = playbook_dir
            self.forget()

    def forget(self) -> None:
        """The inventory has changed. New mappings: a thread that is just reading fills the old ones."""
        self._of_host, self._magic_of = {}, {}
        self.__dict__.pop("_run_magic", None)

    def of_task(self, scope: PlayVariables, host: str, position: Position) -> ChainMap[str, Any]:
        """Highest first; the first, empty layer takes loop variables and what a loop sets as it goes."""
        task, state = position.task, self._states[host]
        roles = ([task.role] if task.role else []) + [role for role in position.roles if role is not task.role]
        every = roles + [role for role in reversed(scope.roles) if role not in roles]
        return ChainMap(
            {},
            _role_magic(task.role),
            scope.magic(),
            self._magic(host),  # type: ignore[arg-type]
            self._options.extra_vars,  # type: ignore[arg-type]  # read only, like every layer but the first
            position.params,  # type: ignore[arg-type]
            *(role.params for role in roles),
            state.vars,
            state.included,
            task.vars,
            *reversed(task.scope),
            *(role.vars for role in every),
            scope.files.get(host, {}),  # type: ignore[arg-type]
            scope.play.vars,
            {"ansible_facts": state.facts},
            state.injected,
            self.of_inventory(host),  # type: ignore[arg-type]
            *(role.defaults for role in every),
        )

    def of_play(self, scope: PlayVariables, host: str) -> ChainMap[str, Any]:
        """What holds for a host in a play outside any task: names of handlers, paths of vars_files."""
        layers = [{}, scope.magic(), *self._host_layers(host)]
        layers[6:6] = [scope.files.get(host, {}), scope.play.vars]
        return ChainMap(*layers, *(role.defaults for role in reversed(scope.roles)))  # type: ignore[arg-type]

    def of_host(self, host: str) -> ChainMap[str, Any]:
        """A host without play and task: hostvars, and what is handed on after the run."""
        return ChainMap({}, *self._host_layers(host))  # type: ignore[arg-type]

    def of_inventory(self, host: str) -> Layer:
        """What the inventory says; a host that is only a delegation target has no entry."""
        cache = self._of_host
        if host not in cache:
            known = host in self._inventory.hosts or host == LOCALHOST
            cache[host] = self._inventory.variables(host, self._playbook_dir) if known else {}
        return cache[host]

    def rendered(self, host: str) -> dict[str, Any]:
        """``of_host`` with every template rendered; what cannot be rendered outside its play stays as it was written."""
        variables = self.of_host(host)
        found: dict[str, Any] = {}
        for name in variables:
            if name not in self._run_magic:
                try:
                    found[name] = self._templar.render(variables[name], variables)
                except TemplateError:
                    found[name] = variables[name]
        return found

    def lazily(self, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """``variables``, each rendered when it is asked for."""
        return LazyVariables(self._templar, variables)

    def host_names(self) -> Mapping[str, Any]:
        """The hosts of the run, in inventory order (a mapping, so that asking for one is cheap)."""
        return self._states

    def _host_layers(self, host: str) -> list[Layer]:
        state = self._states.get(host) or HostState(host)
        return [
            self._magic(host), self._options.extra_vars, state.vars, state.included,
            {"ansible_facts": state.facts}, state.injected, self.of_inventory(host),
        ]

    def _magic(self, host: str) -> Layer:
        cache = self._magic_of
        if host not in cache:
            groups = self._inventory.groups_of(host) if host in self._inventory.hosts else []
            own = {"inventory_hostname": host, "inventory_hostname_short": host.split(".")[0], "group_names": groups, **self._inventory.file_of(host)}
            cache[host] = {**self._run_magic, **own}
        return cache[host]

    @cached_property
    def _run_magic(self) -> dict[str, Any]:
        full = ".".join(map(str, LANGUAGE))
        return {
            "groups": {name: self._inventory.group_members(name) for name in self._inventory.groups},
            "hostvars": self._hostvars,
            "playbook_dir": str(self._playbook_dir),
            "ansible_playbook_python": sys.executable,
            "ansible_inventory_sources": list(self._inventory.sources),
            "omit": OMIT,
            "ansible_check_mode": self._options.check,
            "ansible_diff_mode": self._options.diff,
            "ansible_forks": self._options.forks,
            "ansible_verbosity": 0,
            "ansible_run_tags": list(self._options.tags) or ["all"],
            "ansible_skip_tags": list(self._options.skip_tags),
            **({"ansible_limit": self._options.limit} if self._options.limit else {}),
            "ansible_version": {"full": full, "string": full, "major": LANGUAGE[0], "minor": LANGUAGE[1], "revision": LANGUAGE[2]},
        }


class HostVars(Mapping[str, Mapping[str, Any]]):
    """`hostvars`: every host's variables, made when one is asked for, so that it costs nothing to have it in every task."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def __getitem__(self, host: str) -> Mapping[str, Any]:
        if host not in self._variables.host_names() and host != LOCALHOST:
            raise KeyError(host)
        return self._variables.lazily(_Unlisted(self._variables.of_host(host)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables.host_names())

    def __len__(self) -> int:
        return len(self._variables.host_names())


class _Unlisted(Mapping[str, Any]):
    """A host's variables that have hostvars and omit but do not list them: the one would never end when shown, the other is no value."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables

    def __getitem__(self, name: str) -> Any:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._variables if name not in ("hostvars", "omit"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _role_magic(role: Role | None) -> dict[str, Any]:
    if role is None:
        return {}
    return {"role_name": role.name, "ansible_role_name": role.name, "role_path": str(role.path)}
