"""What is known about each host while a run goes on. One thread works on a host at a time, so its state needs no lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from nodectl.lang.role import Role

HostStatus = Literal["ok", "failed", "unreachable", "lost", "stopped"]


@dataclass
class HostState:
    """One host. ``facts`` have no prefix, ``injected`` are the same as top-level ``ansible_`` variables.

    ``unknowable`` names the variables that check mode could not fill in: what depends on them cannot be told either.
    ``validated`` are the role uses whose arguments were found right (a list, because roles compare by identity).
    ``pending`` are notified handlers in the order of notification (a dict used as an ordered set).
    """

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    injected: dict[str, Any] = field(default_factory=dict)
    vars: dict[str, Any] = field(default_factory=dict)
    included: dict[str, Any] = field(default_factory=dict)
    status: HostStatus = "ok"
    benched: bool = False
    pending: dict[str, None] = field(default_factory=dict)
    unknowable: set[str] = field(default_factory=set)
    validated: list[Role] = field(default_factory=list)

    @property
    def gone(self) -> bool:
        """No task may run here any more, in this play or a later one (``benched``: the failure budget of a play took it out)."""
        return self.status in ("failed", "unreachable", "lost") or self.benched

    def forgive(self) -> None:
        """meta clear_host_errors: the host may take part again."""
        if self.gone:
            self.status, self.benched = "ok", False

    def learn(self, facts: dict[str, Any]) -> None:
        """Take facts as Ansible does: `ansible_x` and `ansible_facts.x` are the same value. A fact of another name stays what it is."""
        if facts:
            # New mappings: with delegate_facts another host's thread may be reading the old ones.
            self.facts = {**self.facts, **{key.removeprefix("ansible_") if key != "ansible_local" else key: value for key, value in facts.items()}}
            self.injected = {**self.injected, **facts}

    def forget_facts(self) -> None:
        self.facts = {}
        self.injected = {}
