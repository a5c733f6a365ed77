"""An inventory that a program prints: Ansible's JSON for `--list`, with `_meta` or a call of `--host` for each host."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from nodectl.inventory.build import Builder
from nodectl.inventory.model import Group
from nodectl.lang.document import Map, Seq, parse
from nodectl.wire.origin import Origin

# (the program and its arguments) to what it prints; raises ValueError with what went wrong.
Run = Callable[[Sequence[str]], str]
_KEYS = ("hosts", "vars", "children")


def refused(argv: Sequence[str]) -> NoReturn:
    """Where no program may be run."""
    raise ValueError(f"{argv[0]} is a program, and none is run here")


def is_program(path: Path) -> bool:
    """Executable, and its first bytes say that it is a script or a binary: on many a share every YAML file is executable too."""
    if not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        return file.read(4).startswith((b"#!", b"\x7fELF"))


def read(path: Path, builder: Builder, run: Run) -> None:
    """Adds the groups that the program prints."""
    listed = _printed(path, ["--list"], builder, run)
    if listed is None:
        return
    meta = listed.pop("_meta", None)
    known: list[str] = []
    for name, value in listed.items():
        known += _group(str(name), value, listed.key_at[name], builder)
    if isinstance(meta, Map) and isinstance(meta.get("hostvars"), Map):
        _host_variables(meta["hostvars"], builder)
        return
    for host in dict.fromkeys(known):
        values = _printed(path, ["--host", host], builder, run)
        if values:
            _take(builder.inventory.hosts[host], values, builder)


def _printed(path: Path, words: Sequence[str], builder: Builder, run: Run) -> Map | None:
    shown = f"{path} {' '.join(words)}"
    try:
        text = run([str(path.absolute()), *words])
    except ValueError as error:
        builder.found.error("E316", f"inventory program: {error}", Origin(str(path), 1, 1), label="asked for the inventory", help=f"try it by hand: {shown}")
        return None
    value = parse(text, f"{path} (output)", builder.found, builder.checker.vault) if text.strip() else Map(Origin(str(path), 1, 1))
    if isinstance(value, Map):
        return value
    if not builder.found.errors:
        builder.found.error("E316", f"inventory program: {shown} prints no JSON object", Origin(str(path), 1, 1), help="expected {GROUP: {hosts: [...]}}")
    return None


def _group(name: str, value: Any, at: Origin, builder: Builder) -> list[str]:
    """The hosts that the group names. A bare list is a list of hosts; a mapping without any of the three keys is a host of that name with variables."""
    group = builder.group(name, at)
    if isinstance(value, Seq):
        return _hosts(value, group, builder)
    if not isinstance(value, Map):
        builder.found.error("E316", f"inventory program: group '{name}' is no mapping", at, label="expected hosts, vars or children")
        return []
    if not any(key in _KEYS for key in value):
        hosts = builder.hosts(name, group, at)
        _take(hosts[0], value, builder)
        return [host.name for host in hosts]
    if isinstance(value.get("vars"), Map):
        _take(group, value["vars"], builder)
    for child in _list(value, "children", name, builder):
        builder.child(group, builder.group(str(child), at), at)
    return _hosts(_list(value, "hosts", name, builder), group, builder)


def _list(value: Map, key: str, group: str, builder: Builder) -> Seq:
    part = value.get(key)
    if isinstance(part, Seq):
        return part
    if part is not None:
        builder.found.error("E316", f"inventory program: {key} of group '{group}' is no list", value.value_at[key], label="expected a list of names")
    return Seq(value.origin)


def _hosts(names: Seq, group: Group, builder: Builder) -> list[str]:
    return [host.name for name, at in zip(names, names.item_at, strict=True) for host in builder.hosts(str(name), group, at)]


def _host_variables(hostvars: Map, builder: Builder) -> None:
    for name, values in hostvars.items():
        host = builder.inventory.hosts.get(str(name))
        if host is not None and isinstance(values, Map):
            _take(host, values, builder)


def _take(into: Any, values: Map, builder: Builder) -> None:
    plain = {str(name): value for name, value in values.items()}
    builder.variables(into, plain, {str(name): at for name, at in values.value_at.items()}, {str(name): at for name, at in values.key_at.items()})
