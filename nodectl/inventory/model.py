"""Hosts, groups, and what a host's variables are: Ansible's precedence, without any template rendered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from nodectl.wire.origin import Origin

# A command line has no position; this stands for it in messages.
COMMAND_LINE = "command line"
# Ansible's "implicit localhost": a play may name it without any inventory.
LOCALHOST = "localhost"


@dataclass
class Host:
    """``groups`` are those that name the host themselves. ``origins`` tells where each variable was written."""

    name: str
    origin: Origin
    vars: dict[str, Any] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    origins: dict[str, Origin] = field(default_factory=dict)


@dataclass
class Group:
    """``hosts`` and ``children`` are what the group names itself, not what it holds through children."""

    name: str
    origin: Origin | None = None
    vars: dict[str, Any] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    origins: dict[str, Origin] = field(default_factory=dict)


class Layer(NamedTuple):
    """Variables that are given together. ``what`` says for whom, in the words of a person; ``origins`` where each was written."""

    what: str
    values: dict[str, Any]
    origins: dict[str, Origin]


@dataclass
class VarsFolder:
    """The group_vars/ and host_vars/ beside one inventory file or playbook."""

    path: Path
    groups: dict[str, Layer] = field(default_factory=dict)
    hosts: dict[str, Layer] = field(default_factory=dict)


class Said(NamedTuple):
    """One place that gives a host a variable."""

    what: str
    origin: Origin | None
    value: Any


class Inventory:
    """Hosts in the order they were written. Built by ``inventory.load``."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.groups: dict[str, Group] = {"all": Group("all"), "ungrouped": Group("ungrouped")}
        self.folders: list[VarsFolder] = []
        self.playbooks: dict[Path, VarsFolder] = {}
        self.sources: list[str] = []

    def names(self) -> list[str]:
        return list(self.hosts)

    def file_of(self, host: str) -> dict[str, str | None]:
        """`inventory_file` and `inventory_dir`: where the host was first named; null for one of the command line."""
        known = self.hosts.get(host)
        if known is None:
            return {}
        path = None if known.origin.file == COMMAND_LINE else Path(known.origin.file).absolute()
        return {"inventory_file": str(path) if path else None, "inventory_dir": str(path.parent) if path else None}

    def groups_of(self, host: str) -> list[str]:
        """All groups that hold the host, `all` left out, sorted by name as in `group_names`."""
        return sorted(name for name in self._groups_up(host) if name != "all")

    def group_members(self, group: str) -> list[str]:
        """The hosts of a group and of all below it, in inventory order. Raises KeyError for an unknown group."""
        if group == "all":
            return list(self.hosts)
        below = self._below(group)
        members = {host for name in below for host in self.groups[name].hosts}
        return [host for host in self.hosts if host in members]

    def variables(self, host: str, playbook: Path | None = None) -> dict[str, Any]:
        """Everything the inventory says about one host, the strongest last. Raises KeyError for an unknown host.

        What stands in group_vars/ and host_vars/ beside a playbook counts for its plays: ``playbook`` is its folder, None the first one read.

        Order: group variables of the inventory files (all, then parents before children, then by name), group_vars/all,
        other group_vars/, the host's own variables, host_vars/. `localhost` needs no entry: it is then reached locally.
        """
        merged: dict[str, Any] = {}
        for layer in self.layers(host, playbook):
            merged.update(layer.values)
        return {name: value for name, value in merged.items() if name != "ansible_group_priority"}

    def explain(self, host: str, name: str, playbook: Path | None = None) -> list[Said]:
        """Every place that gives ``host`` the variable ``name``, the one that holds last. Raises KeyError for an unknown host."""
        given = [layer for layer in self.layers(host, playbook) if name in layer.values]
        return [Said(layer.what, layer.origins.get(name), layer.values[name]) for layer in given]

    def grow(self, host: str, groups: Sequence[str], parents: Sequence[str], variables: Mapping[str, Any]) -> bool:
        """Adds to what is there while a run goes on; True where something is new.

        Nothing that is there is changed in place, because other threads read it meanwhile.
        """
        at = Origin("this run", 1, 1)
        before = self._shape()
        known = self.hosts.get(host) or Host(host, at)
        wanted = groups or ([] if known.groups else ["ungrouped"])
        new = replace(known, vars={**known.vars, **variables}, groups=list(dict.fromkeys([*known.groups, *wanted])))
        self.hosts = {**self.hosts, host: new}
        for name in new.groups:
            self._put(name, hosts=[host])
        if groups and "ungrouped" in new.groups:
            self._leave_ungrouped(new)
        for parent in parents:
            self._put(parent, children=[name for name in groups if name != parent])
        return before != self._shape()

    def take(self, other: Inventory) -> None:
        """What another reading of the same sources found, in place of what is here; in one step for who reads meanwhile."""
        self.__dict__.update(other.__dict__)

    def _leave_ungrouped(self, host: Host) -> None:
        self.hosts = {**self.hosts, host.name: replace(host, groups=[name for name in host.groups if name != "ungrouped"])}
        rest = self.groups["ungrouped"]
        self.groups = {**self.groups, "ungrouped": replace(rest, hosts=[name for name in rest.hosts if name != host.name])}

    def _shape(self) -> tuple[set[str], dict[str, tuple[list[str], list[str]]]]:
        return set(self.hosts), {name: (group.hosts, group.children) for name, group in self.groups.items()}

    def _put(self, name: str, hosts: Sequence[str] = (), children: Sequence[str] = ()) -> None:
        group = self.groups.get(name) or Group(name, parents=[] if name == "all" else ["all"])
        whole = replace(group, hosts=list(dict.fromkeys([*group.hosts, *hosts])), children=list(dict.fromkeys([*group.children, *children])))
        self.groups = {**self.groups, name: whole}
        for child in children:
            one = self.groups.get(child) or Group(child)
            self.groups = {**self.groups, child: replace(one, parents=list(dict.fromkeys([*one.parents, name])))}

    def layers(self, host: str, playbook: Path | None = None) -> list[Layer]:
        """What ``variables`` lays over each other, the strongest last."""
        folders = self._folders(playbook)
        everything = [folder.groups["all"] for folder in folders if "all" in folder.groups]
        if host == LOCALHOST and host not in self.hosts:
            return [Layer("the implicit localhost", {"ansible_connection": "local"}, {}), self._of_group("all"), *everything]
        groups = self._ordered_groups(host)
        own = self.hosts[host]
        return [
            *map(self._of_group, groups),
            *everything,
            *(folder.groups[name] for folder in folders for name in groups if name != "all" and name in folder.groups),
            Layer(f"host {host}", own.vars, own.origins),
            *(folder.hosts[host] for folder in folders if host in folder.hosts),
        ]

    def every_layer(self) -> Iterator[Layer]:
        """All that was written about anybody, each once."""
        yield from (self._of_group(name) for name in self.groups)
        yield from (Layer(f"host {host.name}", host.vars, host.origins) for host in self.hosts.values())
        for folder in {id(folder): folder for folder in (*self.folders, *self.playbooks.values())}.values():
            yield from (*folder.groups.values(), *folder.hosts.values())

    def _of_group(self, name: str) -> Layer:
        return Layer(f"group {name}", self.groups[name].vars, self.groups[name].origins)

    def _folders(self, playbook: Path | None) -> list[VarsFolder]:
        beside = self.playbooks.get(playbook.resolve()) if playbook else next(iter(self.playbooks.values()), None)
        return [*self.folders, beside] if beside else self.folders

    def _ordered_groups(self, host: str) -> list[str]:
        return sorted(self._groups_up(host), key=lambda name: (self._depth(name), self._priority(name), name))

    def _groups_up(self, host: str) -> set[str]:
        seen: set[str] = set()
        todo = list(self.hosts[host].groups)
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += self.groups[name].parents
        return seen | {"all"}

    def _below(self, group: str) -> list[str]:
        seen = [group]
        for name in seen:
            seen += [child for child in self.groups[name].children if child not in seen]
        return seen

    def _depth(self, group: str) -> int:
        """Steps from `all` along the longest way; the loader has refused loops."""
        return 0 if group == "all" else 1 + max((self._depth(parent) for parent in self.groups[group].parents), default=0)

    def _priority(self, group: str) -> int:
        value = self.groups[group].vars.get("ansible_group_priority", 1)
        return int(value) if str(value).isdecimal() else 1
