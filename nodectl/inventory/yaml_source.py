"""An inventory written in YAML."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nodectl.inventory.build import Builder
from nodectl.inventory.model import Group
from nodectl.lang.document import Map, Seq
from nodectl.wire.origin import Origin

_KEYS = ("hosts", "vars", "children")


def read(path: Path, builder: Builder) -> None:
    """Adds the groups of the file; what cannot be read as meant is a diagnostic, never fewer hosts."""
    top = builder.checker.read(path)
    if top is None:
        return
    if not isinstance(top, Map):
        at = top.origin if isinstance(top, Seq) else Origin(str(path), 1, 1)
        builder.found.error("E301", "an inventory is a mapping of groups", at, label="expected `all:` here", help="write all: {hosts: {n1: …}}")
        return
    for name, value in top.items():
        _group(name, value, top, builder)


def _group(name: Any, value: Any, parent: Map, builder: Builder) -> Group | None:
    at = parent.key_at[name]
    if not isinstance(name, str):
        builder.found.error("E301", f"{name!r} is not a group name", at, label="expected text", help=f"write '{name}' in quotes")
        return None
    group = builder.group(name, at)
    if value is None:
        return group
    if not isinstance(value, Map):
        where = parent.value_at[name]
        builder.found.error("E301", f"group '{name}' is not a mapping", where, label="expected hosts:, children: or vars:", help=_list_help(value))
        return group
    for key in value:
        if key not in _KEYS:
            _unknown(key, name, value, builder)
    _variables(group, value, builder)
    _hosts(group, value, builder)
    _children(group, value, builder)
    return group


def _unknown(key: Any, group: str, value: Map, builder: Builder) -> None:
    near = get_close_matches(str(key), _KEYS, n=1)
    advice = f"did you mean '{near[0]}'?" if near else "a group below this one goes under `children:`, a host under `hosts:`, a variable under `vars:`"
    builder.found.error("E302", f"unknown key '{key}' in group '{group}'", value.key_at[key], label="expected hosts, children or vars", help=advice)


def _list_help(value: Any) -> str:
    return "write each name as a key that ends with a colon, not with a dash before it" if isinstance(value, list) else ""


def _part(group: Group, value: Map, key: str, builder: Builder) -> Map | None:
    part = value.get(key)
    if part is None or isinstance(part, Map):
        return part
    what = "a list" if isinstance(part, Seq) else "text" if isinstance(part, str) else "not a mapping"
    advice = _list_help(part) or f"write {key}: {{{part}: }}"
    builder.found.error("E301", f"`{key}` of group '{group.name}' is {what}", value.value_at[key], label="expected a mapping", help=advice)
    return None


def _variables(group: Group, value: Map, builder: Builder) -> None:
    part = _part(group, value, "vars", builder)
    if part is not None:
        _take(group, part, builder)


def _take(into: Any, values: Map, builder: Builder) -> None:
    good = {}
    for name, value in values.items():
        if isinstance(name, str):
            good[name] = value
        else:
            builder.found.error("E107", f"variable name {name!r} is not text", values.key_at[name], label="expected a name", help=f"write '{name}' in quotes")
    builder.variables(into, good, {name: values.value_at[name] for name in good}, {name: values.key_at[name] for name in good})


def _hosts(group: Group, value: Map, builder: Builder) -> None:
    part = _part(group, value, "hosts", builder)
    for name, variables in (part or {}).items():
        assert part is not None
        at = part.key_at[name]
        if not isinstance(name, str):
            builder.found.error("E308", f"{name!r} is not a host name", at, label="expected text", help=f"write '{name}' in quotes")
            continue
        hosts = builder.hosts(name, group, at)
        if variables is not None and not isinstance(variables, Map):
            builder.found.error("E301", f"the variables of host '{name}' are not a mapping", part.value_at[name], label="expected name: value pairs")
            continue
        if variables is not None:
            for host in hosts:
                _take(host, variables, builder)


def _children(group: Group, value: Map, builder: Builder) -> None:
    part = _part(group, value, "children", builder)
    for name, below in (part or {}).items():
        assert part is not None
        child = _group(name, below, part, builder)
        if child is not None:
            builder.child(group, child, part.key_at[name])
