"""What came of one task on one host, and what it changes in what is known about hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nodectl.engine.cursor import Inclusion
from nodectl.engine.state import HostState
from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.origin import Origin

Status = Literal["ok", "changed", "failed", "skipped", "ignored"]
CENSORED = "the output has been hidden due to the fact that 'no_log: true' was specified for this result"


@dataclass
class Effects:
    """Variables that a task gives to a host; after a run_once task, to all hosts. ``unknowable``: check mode could not fill them in.

    ``elsewhere`` are those for another host (delegate_facts), by its name.
    """

    vars: dict[str, Any] = field(default_factory=dict)
    included: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    unknowable: set[str] = field(default_factory=set)
    elsewhere: dict[str, Effects] = field(default_factory=dict)

    def give_to(self, state: HostState) -> None:
        state.vars.update(self.vars)
        state.included.update(self.included)
        state.learn(self.facts)
        state.unknowable = (state.unknowable - self.vars.keys()) | self.unknowable

    def take(self, other: Effects) -> None:
        self.vars.update(other.vars)
        self.included.update(other.included)
        self.facts.update(other.facts)
        self.unknowable |= other.unknowable
        for host, more in other.elsewhere.items():
            self.elsewhere.setdefault(host, Effects()).take(more)


@dataclass
class Item:
    """One try of a task: the whole task, or one item of its loop. ``result`` is what `register` gets."""

    result: dict[str, Any]
    effects: Effects = field(default_factory=Effects)
    inclusions: list[Inclusion] = field(default_factory=list)
    origin: Origin | None = None
    strict: bool = False

    @property
    def status(self) -> Status:
        if self.result.get("failed"):
            return "failed"
        if self.result.get("skipped"):
            return "skipped"
        return "changed" if self.result.get("changed") else "ok"


@dataclass
class Done:
    """``gone``: the line to the host, which leaves the run. ``notified``: keys of handlers. ``name`` is the task's rendered name."""

    result: dict[str, Any]
    status: Status
    origin: Origin
    name: str = ""
    effects: Effects = field(default_factory=Effects)
    inclusions: list[Inclusion] = field(default_factory=list)
    notified: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    no_log: bool = False
    seconds: float = 0.0
    gone: Unreachable | Lost | None = None


def failed(msg: str, **values: Any) -> dict[str, Any]:
    return {**values, "changed": False, "failed": True, "msg": msg}


def skipped(reason: str, **values: Any) -> dict[str, Any]:
    return {**values, "changed": False, "skipped": True, "skip_reason": reason}


def of_loop(items: list[Item], loop_results: list[dict[str, Any]]) -> dict[str, Any]:
    """The result of a whole loop, as Ansible registers it."""
    if not items:
        return {"changed": False, "skipped": True, "skipped_reason": "No items in the list", "results": []}
    whole: dict[str, Any] = {"changed": any(item.result.get("changed") for item in items), "results": loop_results, "msg": "All items completed"}
    if any(item.result.get("failed") for item in items):
        whole.update(failed=True, msg="One or more items failed")
    elif all(item.result.get("skipped") for item in items):
        whole.update(skipped=True, msg="All items skipped")
    return whole


def shown(result: Mapping[str, Any], no_log: bool) -> dict[str, Any]:
    """What an event may hold: no facts by the hundred, no diff twice, nothing under no_log."""
    if no_log:
        return {"censored": CENSORED, **{key: result[key] for key in ("changed", "failed", "skipped") if key in result}}
    kept = {key: value for key, value in result.items() if key not in ("ansible_facts", "diff", "results", "warnings")}
    if "results" in result:
        kept["results"] = [shown(one, no_log) if isinstance(one, Mapping) else one for one in result["results"]]
    return kept
