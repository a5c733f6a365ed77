"""From a run's events to who is handed off, and why the others are not. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from nodectl.handoff.machine import UNKNOWN_MACHINE, Machine, machine_of
from nodectl.wire.event import Event


@dataclass(frozen=True)
class Waived:
    """One check of a node that was handed off although it is not a pass: who excused it, why, and until which day."""

    check: str
    who: str
    why: str
    until: str


@dataclass(frozen=True)
class Names:
    """What schedulers call the host: ``slurm_node_name`` and ``kubernetes_node_name`` of the inventory, "" where they call it like the inventory."""

    slurm: str = ""
    kubernetes: str = ""


NO_NAMES = Names()


@dataclass(frozen=True)
class HandedNode:
    """One node that passed, or whose every other verdict the user waived beforehand (``waivers`` names them).

    ``nproc`` is its number of ranks (GPUs, or 1); ``fabric_address`` is where its peers reach it.
    """

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
    fabric: str = ""
    machine: Machine = UNKNOWN_MACHINE
    waivers: tuple[Waived, ...] = ()
    names: Names = NO_NAMES

    @property
    def verdict(self) -> str:
        return "skipped" if self.waivers else "pass"


@dataclass(frozen=True)
class Excluded:
    """One node that is left out. ``kind``: failed, unknown, unreachable, lost, task_failed, stopped, not_verified.

    ``address`` is where it was asked, "" where the run does not say.
    """

    host: str
    kind: str
    reasons: tuple[str, ...]
    address: str = ""
    names: Names = NO_NAMES

    @property
    def sentence(self) -> str:
        """Kind and reasons in one."""
        return f"{self.kind}: {'; '.join(self.reasons)}" if self.reasons else self.kind


@dataclass(frozen=True)
class Pool:
    """Nodes in the order of their verdicts, which is the inventory's; ``checks`` are the events' data, per host, failed and passed alike.

    ``judged`` is when the last verdict was given, UTC in the words of ISO 8601; "" where there is none.
    """

    run_id: str
    nodes: tuple[HandedNode, ...]
    excluded: tuple[Excluded, ...]
    checks: Mapping[str, tuple[Mapping[str, Any], ...]]
    judged: str = ""

    @property
    def simulated(self) -> bool:
        """Whether any figure stands in for hardware: then nothing here promises speed."""
        return any(check.get("simulated") is True for checks in self.checks.values() for check in checks)

    @property
    def world_size(self) -> int:
        return sum(node.nproc for node in self.nodes)


@dataclass
class _Seen:
    """What the events said of one host so far."""

    node: Mapping[str, Any] | None = None
    target: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = ""
    reasons: list[str] = field(default_factory=list)
    away: str = ""
    why: str = ""
    failed_tasks: list[str] = field(default_factory=list)
    checks: list[Mapping[str, Any]] = field(default_factory=list)


def pool_of(events: Sequence[Event]) -> Pool:
    """The pool of one run. A host passes when its last verdict is pass (or all that is not was waived), it was described, and the line to it did not break."""
    seen: dict[str, _Seen] = {}
    run_id = ""
    for event in events:
        if event.kind == "run.start":
            run_id = str(event.data.get("run_id", ""))
        if event.kind == "play.start":
            for host in event.texts("hosts"):
                seen.setdefault(host, _Seen())
        if event.host:
            _note(seen.setdefault(event.host, _Seen()), event)
    judged = dict.fromkeys(event.host for event in events if event.kind == "verdict" and event.host)
    passed = {host: seen[host] for host in judged if _passes(seen[host])}
    excluded = tuple(_excluded(host, one) for host, one in seen.items() if not _passes(one))
    pool = Pool(run_id, (), excluded, {host: tuple(one.checks) for host, one in seen.items()}, _when(events))
    for host, one in passed.items():
        pool = _with(pool, host, one)
    return pool


def _when(events: Sequence[Event]) -> str:
    """Of the last verdict; "" for a time that no calendar has."""
    times = [event.at for event in events if event.kind == "verdict"]
    try:
        return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if times else ""
    except (ValueError, OverflowError, OSError):
        return ""


def without(pool: Pool, host: str, why: str) -> Pool:
    """The pool without a node that passed and still cannot be handed off."""
    kind, reasons = "unknown", (f"it passed, but cannot be handed off: {why}",)
    known = next((node for node in pool.nodes if node.host == host), None)
    left_out = Excluded(host, kind, reasons, known.address, known.names) if known else Excluded(host, kind, reasons)
    return replace(pool, nodes=tuple(node for node in pool.nodes if node.host != host), excluded=(*pool.excluded, left_out))


def _with(pool: Pool, host: str, one: _Seen) -> Pool:
    try:
        node = replace(_handed(host, one.node or {}), waivers=_waivers(one) if one.verdict == "skipped" else (), names=_names(one.target))
        return replace(pool, nodes=(*pool.nodes, node))
    except ValueError as error:
        return without(pool, host, str(error))


def _note(one: _Seen, event: Event) -> None:
    if event.kind == "node":
        one.node = event.data
    elif event.kind == "target":
        one.target = event.data
    elif event.kind == "check":
        one.checks.append(event.data)
    elif event.kind == "verdict":
        one.verdict = str(event.data.get("verdict", "unknown"))
        one.reasons = event.texts("reasons")
    elif event.kind in ("host.unreachable", "host.lost", "host.stopped"):
        one.away = event.kind.partition(".")[2]
        one.why = str(event.data.get("reason", ""))
    elif event.kind == "task.end" and event.data.get("status") == "failed":
        one.failed_tasks.append(f"task '{event.data.get('task', '')}' failed: {event.mapping('result').get('msg', '')}")


def _passes(one: _Seen) -> bool:
    good = one.verdict == "pass" or (one.verdict == "skipped" and bool(_waivers(one)))
    return good and one.node is not None and not one.away


def _waivers(one: _Seen) -> tuple[Waived, ...]:
    """Of the checks that were skipped; none at all where one of them does not say who waived it and why."""
    found = []
    for check in one.checks:
        if check.get("verdict") != "skipped":
            continue
        waiver = check.get("waiver")
        if not isinstance(waiver, Mapping) or not waiver.get("who") or not waiver.get("why"):
            return ()
        found.append(Waived(str(check.get("name", "")), str(waiver["who"]), str(waiver["why"]), str(waiver.get("until", ""))))
    return tuple(found)


def _excluded(host: str, one: _Seen) -> Excluded:
    described = (one.node or {}).get("address") or one.target.get("address")
    kind, reasons = _why_not(one)
    return Excluded(host, kind, reasons, described if isinstance(described, str) else "", _names(one.target))


def _names(target: Mapping[str, Any]) -> Names:
    return Names(str(target.get("slurm_node_name") or ""), str(target.get("kubernetes_node_name") or ""))


def _why_not(one: _Seen) -> tuple[str, tuple[str, ...]]:
    if one.away:
        return one.away, (one.why, *one.reasons) if one.why else tuple(one.reasons)
    if one.verdict == "fail":
        return "failed", tuple(one.reasons)
    if one.failed_tasks:
        return "task_failed", tuple(one.failed_tasks)
    if one.verdict == "skipped" and not _waivers(one):
        return "unknown", ("checks were skipped, and not every one of them names who waived it and why", *one.reasons)
    if one.verdict:
        return "unknown", tuple(one.reasons) or ("it passed, but was never described: nothing to hand off",)
    return "not_verified", ("it was not verified in this run",)


def _handed(host: str, data: Mapping[str, Any]) -> HandedNode:
    """Raises ValueError for a description that no launcher could use."""
    if not _NAME.fullmatch(host) or not host.isprintable() or host in (".", ".."):
        raise ValueError(f"{host!r} cannot be the name of a file and of a host")
    address = _word(data, "address")
    return HandedNode(
        host, address, _word(data, "fabric_address", address), _text(data, "interface", ""), _number(data, "gpus", 0, 0), _number(data, "nproc", 1, 1),
        _text(data, "torch_python", "python3"), _text(data, "user", ""), _number(data, "port", 22, 1), _text(data, "key_file", ""),
        _text(data, "backend", "gloo"), _text(data, "connection", "ssh"), _texts(data, "ssh_options"), _texts(data, "env"), _text(data, "fabric", ""),
        machine_of(data.get("machine")),
    )


# What an inventory takes for a host, less what no file's name (/), no pattern of ssh_config (*) and no command line of ssh (@, -) can hold.
_NAME = re.compile(r"(?!-)[^\s/@,;&!'\"\\|<>(){}$`*?#]+")


def _useless(key: str, value: object) -> ValueError:
    return ValueError(f"its {key} is {value!r}")


def _number(data: Mapping[str, Any], key: str, otherwise: int, least: int) -> int:
    value = data.get(key, otherwise)
    if type(value) is not int or not least <= value <= _MOST:
        raise _useless(key, value)
    return value


# As many as ports; no node has more ranks.
_MOST = 65535


def _text(data: Mapping[str, Any], key: str, otherwise: str) -> str:
    value = data.get(key) or otherwise
    if not isinstance(value, str) or not value.isprintable():
        raise _useless(key, value)
    return value


def _word(data: Mapping[str, Any], key: str, otherwise: str = "") -> str:
    value = _text(data, key, otherwise)
    if not value or " " in value:
        raise _useless(key, value)
    return value


def _texts(data: Mapping[str, Any], key: str) -> dict[str, str]:
    value = data.get(key) or {}
    if not isinstance(value, Mapping):
        raise _useless(key, value)
    return {str(name): str(item) for name, item in value.items()}
