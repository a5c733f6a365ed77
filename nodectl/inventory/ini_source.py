"""An inventory written in Ansible's INI form."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

from nodectl.inventory.build import Builder
from nodectl.inventory.model import Group
from nodectl.lang.document import read_text
from nodectl.wire.origin import Origin

_SECTION = re.compile(r"^\[([^:\[\]]+)(?::(\w+))?\]\s*(?:[#;].*)?$")
_KINDS = ("hosts", "vars", "children")


def read(path: Path, builder: Builder) -> None:
    """Adds the groups of the file."""
    source = read_text(path, builder.found, None, builder.checker.vault)
    if source is None:
        return
    reader = _Reader(builder)
    for number, line in enumerate(source.text.splitlines(), 1):
        bare = line.strip()
        if bare and bare[0] not in "#;":
            reader.line(bare, Origin(source.file, number, line.index(bare) + 1, len(bare)))
    reader.finish()


def value_of(text: str) -> Any:
    """INI values are Python literals where they can be read as such (1, 'a', True, [1]), text otherwise (true, yes)."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text
    return value if isinstance(value, (str, int, float, bool, list, dict, type(None))) else text


class _Reader:
    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.found = builder.found
        self.kind = "hosts"
        self.group: Group | None = None
        self.pending: list[tuple[str, str, Origin]] = []
        self.declared: set[str] = {"all", "ungrouped"}

    def line(self, text: str, at: Origin) -> None:
        if text.startswith("["):
            section = _SECTION.match(text)
            if section or text.rstrip().endswith("]"):
                self.section(text, at)
                return
        {"hosts": self.host, "vars": self.variable, "children": self.child}[self.kind](text, at)

    def section(self, text: str, at: Origin) -> None:
        match = _SECTION.match(text)
        if not match or (match.group(2) or "hosts") not in _KINDS:
            self.found.error("E310", f"'{text}' is no section", at, label="expected [group], [group:vars] or [group:children]")
            return
        self.kind = match.group(2) or "hosts"
        name = match.group(1).strip()
        if self.kind == "vars":
            self.pending.append(("vars", name, at))
        else:
            self.declared.add(name)
        self.group = self.builder.group(name, at)

    def host(self, text: str, at: Origin) -> None:
        try:
            words = shlex.split(text, comments=True)
        except ValueError as error:
            self.found.error("E310", f"this line cannot be split into words: {error}", at, label="a quote is not closed?")
            return
        group = self.group or self.builder.group("ungrouped", at)
        hosts = self.builder.hosts(words[0], group, at._replace(width=len(words[0])))
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if not equals:
                self.found.error("E310", f"'{word}' is not a name=value pair", at, label="in this line")
                continue
            for host in hosts:
                self.builder.variables(host, {name: value_of(value)}, {name: at})

    def variable(self, text: str, at: Origin) -> None:
        name, equals, value = text.partition("=")
        if not equals or self.group is None:
            self.found.error("E310", f"'{text}' is not a name=value pair", at, label="a :vars section holds name=value lines")
            return
        self.builder.variables(self.group, {name.strip(): value_of(value.strip())}, {name.strip(): at})

    def child(self, text: str, at: Origin) -> None:
        name = text.split("#")[0].strip()
        self.pending.append(("child", name, at))
        if self.group is not None:
            self.builder.child(self.group, self.builder.group(name, at), at)

    def finish(self) -> None:
        """Names used before their section are fine; names without any section are mistakes."""
        for what, name, at in self.pending:
            if name not in self.declared:
                place = "`:children`" if what == "child" else "`:vars`"
                self.found.error("E310", f"{place} names group '{name}', which has no section", at, label="no such group", help=f"add a section [{name}]")
