"""What one step did: the value that becomes the registered variable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List


@dataclass
class Change:
    """What ``diff`` found: empty ``actions`` means that the node is as wished.

    ``actions`` are short sentences ("create /etc/x.conf"); ``before``/``after`` are texts for `--diff`.
    ``data`` carries what ``write`` needs, and is not shown.
    """

    actions: List[str] = field(default_factory=list)
    before: str = ""
    after: str = ""
    before_header: str = ""
    after_header: str = ""
    data: Dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.actions)


@dataclass
class Outcome:
    """The result of a step. ``values`` are the module's return values (rc, stdout, stat, …), JSON types only.

    ``diff`` is a list of {before, after, before_header, after_header}. ``unknown`` is True when check mode could not tell.
    """

    changed: bool = False
    failed: bool = False
    skipped: bool = False
    msg: str = ""
    values: Dict[str, Any] = field(default_factory=dict)
    diff: List[Dict[str, str]] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)
    facts: Dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> Dict[str, Any]:
        return dict(vars(self))

    def to_result(self) -> Dict[str, Any]:
        """As Ansible registers it: return values beside changed, failed and msg."""
        result: Dict[str, Any] = dict(self.values)
        result["changed"] = self.changed
        result["failed"] = self.failed
        if self.skipped:
            result["skipped"] = True
        for key in ("msg", "diff", "warnings"):
            if getattr(self, key):
                result[key] = getattr(self, key)
        if self.facts:
            result["ansible_facts"] = self.facts
        return result


def outcome_from_json(data: Dict[str, Any]) -> Outcome:
    """The inverse of ``Outcome.to_json``."""
    return Outcome(**data)
