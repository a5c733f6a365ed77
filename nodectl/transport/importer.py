"""Runs on the node, not here: imports nodectl from the dictionary SOURCES that the loader received. Python 3.8, stdlib only; newer spellings
stand in annotations alone, which nobody evaluates.

`bundle.py` reads this file as data. Modules are compiled when they are first imported, so a step costs only what it uses.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType


class Importer:
    """Finder and loader in one, for the names in ``sources`` and nothing else; the agent adds to them what it is sent later."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in self._sources:
            return None
        # The agent's packages are all empty, and nothing else is: what is below them may come later.
        is_package = self._sources[name] == ""
        return ModuleSpec(name, self, origin=f"nodectl:{name}", is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        # The sources are our own, sent by the controller over the channel that it authenticated.
        exec(compile(self._sources[name], f"nodectl:{name}", "exec", dont_inherit=True), module.__dict__)  # noqa: S102

    def get_source(self, name: str) -> str:
        """The traceback module asks for this, so that a traceback from a node shows its source lines."""
        return self._sources[name]


def start(sources: dict[str, str]) -> None:
    """Run the agent to its end."""
    sys.meta_path.insert(0, Importer(sources))
    sys.exit(importlib.import_module("nodectl.agent.boot").main(sources))


if "SOURCES" in globals():
    start(globals()["SOURCES"])
