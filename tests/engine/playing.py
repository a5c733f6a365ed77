"""Loads the case files and plays them with the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nodectl.cli.loading import load
from nodectl.diagnostics.model import Collector
from nodectl.engine.options import Options
from nodectl.engine.run import RunResult, run_playbook
from nodectl.report.fold import fold
from nodectl.wire.event import Event
from tests.engine.fakes import FakeConnections

CASES = Path(__file__).parent / "cases"
ONE = "h1 ansible_connection=local\n"
INVENTORY = "[all]\nh1\nh2\n[all:vars]\nansible_connection=local\n"


@dataclass
class Played:
    events: list[Event]
    result: RunResult
    connections: FakeConnections
    lines: list[str] = field(default_factory=list)

    def of(self, host: str) -> list[str]:
        """The results on one host, as "task: status"."""
        return [f"{e.data['task'] or e.data['module']}: {e.data['status']}" for e in self.events if e.kind == "task.end" and e.host == host]

    def kinds(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def shown(self, host: str) -> list[list[Any]]:
        """What the debug tasks of one host showed: [task, message], a list of messages for a loop."""
        ends = [e.data for e in self.events if e.kind == "task.end" and e.host == host and e.data["module"] == "debug" and e.data["status"] != "skipped"]
        return [[data["task"] or "debug", message_of(data["result"])] for data in ends]

    def stats(self) -> dict[str, dict[str, int]]:
        return {name: dict(vars(host.stats)) for name, host in fold(self.events).hosts.items()}


def message_of(result: Mapping[str, Any]) -> Any:
    if "results" in result:
        return [message_of(one) for one in result["results"]]
    if result.get("skipped") or result.get("failed"):
        return "skipped" if result.get("skipped") else "failed"
    return result.get("msg")


def write_tree(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def play(
    folder: Path, playbook: str, *, inventory: str = INVENTORY, files: dict[str, str] | None = None,
    connections: FakeConnections | None = None, sources: Sequence[str] = ("hosts",), **options: Any,
) -> Played:
    """Write the playbook into ``folder`` and run it. Raises Mistakes for what the loader or the preflight refuses."""
    write_tree(folder, {"site.yml": playbook, "hosts": inventory, **(files or {})})
    found = Collector()
    loaded = load([str(folder / source) for source in sources], folder / "site.yml", Options(**options), found)
    found.stop_if_wrong()
    line = connections or FakeConnections()
    events: list[Event] = []
    result = run_playbook(loaded.playbook, loaded.inventory, Options(**options), line, events.append)
    return Played(events, result, line)


@dataclass(frozen=True)
class Case:
    """One YAML file: playbook, optional inventory, files and options; ``expect`` as described in test_cases."""

    name: str
    data: dict[str, Any]

    @property
    def sources(self) -> list[str]:
        return list(self.data.get("sources", ["hosts"]))

    @property
    def options(self) -> dict[str, Any]:
        return {key: tuple(value) if isinstance(value, list) else value for key, value in self.data.get("options", {}).items()}

    @property
    def arguments(self) -> list[str]:
        """The same options for ansible-playbook."""
        spelled = [word for source in self.sources for word in ("-i", source)]
        for key, value in self.data.get("options", {}).items():
            name = "--" + key.replace("_", "-")
            if key == "extra_vars":
                spelled += ["-e", yaml.safe_dump(value, default_flow_style=True, width=10**6).strip()]
            elif value is True:
                spelled.append(name)
            else:
                spelled += [name, ",".join(value) if isinstance(value, list) else str(value)]
        return spelled

    def play(self, folder: Path, connections: FakeConnections | None = None) -> Played:
        if connections is None and ("down" in self.data or "dies" in self.data):
            connections = FakeConnections(self.data.get("down"), self.data.get("dies"))
        return play(
            folder, self.data["playbook"], inventory=self.data["inventory"], files=self.data.get("files"),
            connections=connections, sources=self.sources, **self.options,
        )


def cases(folder: Path = CASES) -> Sequence[Case]:
    return [Case(path.stem, {"inventory": INVENTORY if folder == CASES else ONE, **yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)}) for path in sorted(folder.glob("*.yml"))]
