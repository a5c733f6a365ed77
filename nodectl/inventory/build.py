"""Adds hosts and groups to an inventory, whatever the format they were written in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.diagnostics.model import Collector
from nodectl.inventory.model import Group, Host, Inventory
from nodectl.inventory.ranges import BadRange, expand, split_port
from nodectl.inventory.tiers import check_variable
from nodectl.lang.fields import Checker
from nodectl.lang.vault import NO_PASSWORDS, Vault
from nodectl.wire.origin import Origin

# What would be read as part of a pattern or break a command line is no host name.
_FORBIDDEN = frozenset(" \t\n,;&!'\"\\|<>(){}$`*?#")


class Builder:
    """One inventory in the making."""

    def __init__(self, inventory: Inventory, found: Collector, vault: Vault = NO_PASSWORDS) -> None:
        self.inventory = inventory
        self.found = found
        self.checker = Checker(found, vault)
        self.checked: set[tuple[str, Origin]] = set()

    def group(self, name: str, origin: Origin) -> Group:
        """The group, made on first sight."""
        if name not in self.inventory.groups:
            self.inventory.groups[name] = Group(name, origin)
        group = self.inventory.groups[name]
        group.origin = group.origin or origin
        return group

    def hosts(self, pattern: str, group: Group, origin: Origin) -> list[Host]:
        """The hosts that a pattern stands for, put into ``group``."""
        name, port = split_port(pattern)
        try:
            names = expand(name)
        except BadRange as wrong:
            message = f"host name '{pattern}': {wrong}"
            self.found.error("E303", message, origin, label="this range cannot be read", help="write for example gpu-[01:16] or n[a:c]")
            return []
        if not name or _FORBIDDEN & set(name):
            self.found.error("E308", f"'{pattern}' is not a host name", origin, label="a character here cannot be in a host name")
            return []
        # As in Ansible, the port counts where a host is named first.
        fresh = {one for one in names if one not in self.inventory.hosts}
        hosts = [self._host(one, group, origin) for one in names]
        for host in hosts if port else []:
            if host.name in fresh:
                host.vars["ansible_port"] = port
        return hosts

    def _host(self, name: str, group: Group, origin: Origin) -> Host:
        host = self.inventory.hosts.setdefault(name, Host(name, origin))
        if name in group.hosts:
            message = f"host '{name}' is named twice in group '{group.name}'"
            self.found.warning("E307", message, origin, label="named before", help="the later variables win; remove one of them")
        else:
            group.hosts.append(name)
            host.groups.append(group.name)
        return host

    def child(self, parent: Group, child: Group, origin: Origin) -> None:
        """Puts ``child`` under ``parent`` unless that would close a circle."""
        if child.name == "all" or parent.name in self._below(child.name):
            self.found.error("E309", f"group '{child.name}' cannot be inside '{parent.name}': it holds it", origin, label="this closes a circle")
        elif child.name not in parent.children:
            parent.children.append(child.name)
            child.parents.append(parent.name)

    def variables(self, into: Host | Group, values: Mapping[str, Any], origins: Mapping[str, Origin], keys: Mapping[str, Origin] | None = None) -> None:
        """Gives variables to a host or group; templates in them and nodectl's own variables are checked where they are written.

        ``origins`` are the places of the values, ``keys`` those of the names where the two are apart.
        """
        for name, value in values.items():
            if (name, origins[name]) not in self.checked:  # the hosts of one range share what is written
                self.checked.add((name, origins[name]))
                self.checker.templates(value, origins[name])
                check_variable(name, value, origins[name], self.found)
        into.vars.update(values)
        into.origins.update(keys or origins)

    def finish(self) -> None:
        """Every group without a parent is a child of `all`; hosts in no group are `ungrouped`. Safe to call again."""
        everything = self.inventory.groups["all"]
        for group in self.inventory.groups.values():
            if group.name != "all" and not group.parents:
                everything.children.append(group.name)
                group.parents.append("all")
        ungrouped = self.inventory.groups["ungrouped"]
        for host in self.inventory.hosts.values():
            others = [name for name in host.groups if name not in ("all", "ungrouped")]
            if not others and host.name not in ungrouped.hosts:
                ungrouped.hosts.append(host.name)
                host.groups.append("ungrouped")
            elif others and host.name in ungrouped.hosts:
                ungrouped.hosts.remove(host.name)
                host.groups.remove("ungrouped")

    def _below(self, name: str) -> set[str]:
        seen: set[str] = set()
        todo = [name]
        while todo:
            group = todo.pop()
            if group not in seen:
                seen.add(group)
                todo += self.inventory.groups[group].children
        return seen
