"""From a run's events to who is handed off, and why the others are not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodectl.wire.event import Event


@dataclass(frozen=True)
class HandedNode:
    """One node that passed. ``nproc`` is its number of ranks (GPUs, or 1); ``fabric_address`` is where its peers reach it."""

    host: str
    address: str
    fabric_address: str
    interface: str
    gpus: int
    nproc: int
    torch_python: str
    user: str
    port: int
    key_file: str
    backend: str
    connection: str = "ssh"
    ssh_options: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Excluded:
    """One node that is left out. ``kind``: failed, unknown, unreachable, lost, task_failed, stopped, not_verified."""

    host: str
    kind: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Pool:
    """Nodes in the order of their verdicts, which is the inventory's; ``checks`` are the events' data, per host, failed and passed alike."""

    run_id: str
    nodes: tuple[HandedNode, ...]
    excluded: tuple[Excluded, ...]
    checks: Mapping[str, tuple[Mapping[str, Any], ...]]

    @property
    def world_size(self) -> int:
        return sum(node.nproc for node in self.nodes)


@dataclass
class _Seen:
    """What the events said of one host so far."""

    node: Mapping[str, Any] | None = None
    verdict: str = ""
    reasons: list[str] = field(default_factory=list)
    away: str = ""
    why: str = ""
    failed_tasks: list[str] = field(default_factory=list)
    checks: list[Mapping[str, Any]] = field(default_factory=list)


def pool_of(events: Sequence[Event]) -> Pool:
    """The pool of one run. A host passes when its last verdict is pass, it was described, and the line to it did not break."""
    seen: dict[str, _Seen] = {}
    run_id = ""
    for event in events:
        if event.kind == "run.start":
            run_id = str(event.data.get("run_id", ""))
        if event.kind == "play.start":
            for host in event.data.get("hosts", []):
                seen.setdefault(str(host), _Seen())
        if event.host:
            _note(seen.setdefault(event.host, _Seen()), event)
    judged = dict.fromkeys(event.host for event in events if event.kind == "verdict")
    passed = {host: seen[host].node for host in judged if _passes(seen[host])}
    nodes = tuple(_handed(host, node) for host, node in passed.items() if node is not None)
    excluded = tuple(_excluded(host, one) for host, one in seen.items() if not _passes(one))
    return Pool(run_id, nodes, excluded, {host: tuple(one.checks) for host, one in seen.items()})


def _note(one: _Seen, event: Event) -> None:
    if event.kind == "node":
        one.node = event.data
    elif event.kind == "check":
        one.checks.append(event.data)
    elif event.kind == "verdict":
        one.verdict = str(event.data.get("verdict", "unknown"))
        one.reasons = [str(reason) for reason in event.data.get("reasons", [])]
    elif event.kind in ("host.unreachable", "host.lost", "host.stopped"):
        one.away = event.kind.partition(".")[2]
        one.why = str(event.data.get("reason", ""))
    elif event.kind == "task.end" and event.data.get("status") == "failed":
        result = event.data.get("result")
        text = str(result.get("msg", "")) if isinstance(result, Mapping) else ""
        one.failed_tasks.append(f"task '{event.data.get('task', '')}' failed: {text}")


def _passes(one: _Seen) -> bool:
    return one.verdict == "pass" and one.node is not None and not one.away


def _excluded(host: str, one: _Seen) -> Excluded:
    if one.away:
        return Excluded(host, one.away, (one.why, *one.reasons) if one.why else tuple(one.reasons))
    if one.verdict == "fail":
        return Excluded(host, "failed", tuple(one.reasons))
    if one.failed_tasks:
        return Excluded(host, "task_failed", tuple(one.failed_tasks))
    if one.verdict:
        return Excluded(host, "unknown", tuple(one.reasons) or ("it passed, but was never described: nothing to hand off",))
    return Excluded(host, "not_verified", ("it was not verified in this run",))


def _handed(host: str, data: Mapping[str, Any]) -> HandedNode:
    address = str(data["address"])
    return HandedNode(
        host, address, str(data.get("fabric_address") or address), str(data.get("interface", "")), int(data.get("gpus", 0)), int(data.get("nproc", 1)),
        str(data.get("torch_python") or "python3"), str(data.get("user", "")), int(data.get("port") or 22), str(data.get("key_file", "")),
        str(data.get("backend", "gloo")), str(data.get("connection", "ssh")),
        _texts(data.get("ssh_options")), _texts(data.get("env")),
    )


def _texts(value: Mapping[str, Any] | None) -> dict[str, str]:
    return {str(key): str(item) for key, item in (value or {}).items()}
