"""What a load has seen of names: the results that are registered and the names that are read, the handlers that are there and those notified.

A result that nobody reads and a handler that nobody notifies are right for the language; most are a slip of the pen all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nodectl.diagnostics.model import Collector
from nodectl.lang.unsafe import has_template
from nodectl.wire.origin import Origin

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
# Beside a playbook, and in a role: where files lie that a task may bring in by a name that only the run knows.
_FOLDERS = ("tasks", "handlers", "vars", "defaults", "templates", "group_vars", "host_vars")
# Bytes. A larger file is data, not tasks or a template.
_MOST = 1024 * 1024


@dataclass
class Handler:
    """``names`` are all by which it can be notified."""

    name: str
    names: frozenset[str]
    at: Origin


@dataclass
class Seen:
    """``unknown``: a role is named by a template, so that nothing can be said of what is missing; ``any_handler``: a notified handler is."""

    read: set[str] = field(default_factory=set)
    registered: dict[Origin, str] = field(default_factory=dict)
    notified: set[str] = field(default_factory=set)
    handlers: dict[Origin, Handler] = field(default_factory=dict)
    files: set[Path] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)
    unknown: bool = False
    any_handler: bool = False

    def expression(self, text: str) -> None:
        self.read.update(_NAME.findall(text))

    def template(self, text: str) -> None:
        """The names between its braces."""
        for part in _BRACES.findall(text):
            self.expression(part)

    def warn(self, others: Iterable[Any], found: Collector) -> None:
        """``others`` are values that templates may stand in besides (variables of the inventory)."""
        for text in _texts(others):
            self.template(text)
        if self.unknown:
            return
        self._unread(found)
        for handler in () if self.any_handler else self.handlers.values():
            if not handler.names & self.notified:
                found.warning("E224", f"nobody notifies the handler '{handler.name}'", handler.at, label="it never runs", help="notify it, or remove it")

    def _unread(self, found: Collector) -> None:
        read = self.read | self._elsewhere()
        for at, name in self.registered.items():
            # A leading _ says that nobody will.
            if name not in read and not name.startswith("_"):
                near = get_close_matches(name, read - set(self.registered.values()), n=1)
                advice = f"did you mean '{near[0]}'?" if near else "remove `register`, or begin the name with _ if that is meant"
                found.warning("E223", f"nobody reads the result '{name}'", at, label="is this name right?", help=advice)

    def _elsewhere(self) -> set[str]:
        """Every word of the files that were not read and may be brought in."""
        paths = (path for folder in self.folders for name in _FOLDERS for path in (folder / name).rglob("*"))
        unread = (path for path in paths if path.is_file() and path.resolve() not in self.files and path.stat().st_size <= _MOST)
        return {word for path in unread for word in _NAME.findall(path.read_text("utf-8", "replace"))}


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Every template in ``values``, however deep."""
    for value in values:
        if isinstance(value, dict):
            yield from _texts(value.values())
        elif isinstance(value, list):
            yield from _texts(value)
        elif isinstance(value, str) and has_template(value):
            yield value
