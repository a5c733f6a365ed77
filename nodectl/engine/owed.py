"""Handlers that were notified and have not run yet, kept on disk so that no end of a run forgets them."""

from __future__ import annotations

import json
import os
import threading
import urllib.parse
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.engine.handlers import HandlerTable

# Handlers by the inventory name under which they were notified: several names may lead to one node.
Names = dict[str, list[str]]


class Owed:
    """One small JSON file per node, true at every moment of a run: a run that is killed forgets nothing, and the next one finds it.

    A node is its address and port, for two inventories may call different nodes by the same name. A task is noted *before* it is sent
    (``expect``) and taken back when it said that nothing changed (``settle``): what broke off in between may have changed something,
    and a restart too many does no harm. Safe to call from any thread; one thread at a time works on a host. Without ``folder``, or with
    ``keep`` False (check mode), everything stays in memory. ``trouble`` hears what cannot be written.
    """

    def __init__(self, folder: Path | None, trouble: Callable[[str], None], *, keep: bool = True) -> None:
        self._folder = folder
        self._keep = keep and folder is not None
        self._trouble = trouble
        self._lock = threading.Lock()
        self._nodes: dict[str, Names] = _read_all(folder)
        self._expected: dict[str, tuple[str, list[str]]] = {}

    def of(self, node: str, host: str, inventory: Container[str], table: HandlerTable) -> list[str]:
        """What ``host`` owes and this play can do, and what the node owes under a name that is not in ``inventory`` any more."""
        with self._lock:
            names = self._fresh(node)
            orphans = [key for name, keys in names.items() if name not in inventory for key in keys]
            if orphans:
                names = {name: keys for name, keys in names.items() if name in inventory}
                names[host] = list(dict.fromkeys([*names.get(host, ()), *orphans]))
                self._write(node, names)
            return table.with_keys(names.get(host, ()))

    def expect(self, node: str, host: str, keys: Sequence[str]) -> None:
        """A task that notifies these handlers is about to be sent to ``host``."""
        with self._lock:
            fresh = [key for key in keys if key not in self._fresh(node).get(host, ())]
            if fresh:
                self._expected[host] = (node, [*self._expected.get(host, (node, []))[1], *fresh])
                self._add(node, host, fresh)

    def expected(self, host: str) -> list[str]:
        """What the task that is under way on ``host`` may owe in the end."""
        with self._lock:
            return list(self._expected.get(host, ("", []))[1])

    def settle(self, host: str, notified: Sequence[str]) -> None:
        """The task came to its end: it notified these, and what else was expected is not owed."""
        with self._lock:
            node, keys = self._expected.pop(host, ("", []))
            vain = [key for key in keys if key not in notified]
            if vain:
                self._remove(node, host, vain)

    def owe(self, node: str, host: str, keys: Sequence[str]) -> None:
        """These handlers were notified for ``host``."""
        with self._lock:
            if not set(keys) <= set(self._nodes.get(node, {}).get(host, ())):
                self._add(node, host, keys)

    def done(self, node: str, host: str, key: str) -> None:
        """The handler ran."""
        with self._lock:
            if key in self._nodes.get(node, {}).get(host, ()):
                self._remove(node, host, [key])

    # -- all below is called under the lock

    def _add(self, node: str, host: str, keys: Sequence[str]) -> None:
        names = self._fresh(node)
        self._write(node, {**names, host: list(dict.fromkeys([*names.get(host, ()), *keys]))})

    def _remove(self, node: str, host: str, gone: Sequence[str]) -> None:
        names = self._fresh(node)
        left = {**names, host: [key for key in names.get(host, ()) if key not in gone]}
        self._write(node, {name: keys for name, keys in left.items() if keys})

    def _fresh(self, node: str) -> Names:
        """From the file, where there is one: another run may have been at it."""
        if self._keep:
            try:
                self._nodes[node] = _read(self._file(node))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                self._trouble(f"{self._file(node)}, which lists handlers that still have to run, cannot be read any more: {error}")
        return self._nodes.get(node, {})

    def _write(self, node: str, names: Names) -> None:
        self._nodes[node] = names
        if not self._keep:
            return
        try:
            _replace(self._file(node), node, names)
        except OSError as error:
            keys = ", ".join(dict.fromkeys(key for keys in names.values() for key in keys)) or "none"
            known = f"if this run is killed, nobody will know that {node} owes the handlers: {keys}"
            self._trouble(f"{self._file(node)} cannot be written ({error.strerror}): {known}")

    def _file(self, node: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{urllib.parse.quote(node, safe=':@')}.json"


def _replace(file: Path, node: str, names: Names) -> None:
    if not names:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps({"version": 1, "node": node, "owed": names}, indent=1) + "\n", "utf-8")
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _read(file: Path) -> Names:
    try:
        data = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return {str(host): [str(key) for key in keys] for host, keys in data["owed"].items()}


def _read_all(folder: Path | None) -> dict[str, Names]:
    """What earlier runs left. Raises Mistakes for a file that cannot be read: what is owed must not be forgotten silently."""
    found: dict[str, Names] = {}
    wrong = []
    for file in sorted(folder.glob("*.json")) if folder is not None else ():
        try:
            found[urllib.parse.unquote(file.name.removesuffix(".json"))] = _read(file)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            help = "it lists handlers that still have to run; repair it, or remove it if you restarted those services yourself"
            wrong.append(Diagnostic("E403", f"{file} cannot be read: {error}", help=help))
    if wrong:
        raise Mistakes(wrong)
    return found
