"""A role as a value. Its tasks are loaded beside it, not in it: see lang.load."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodectl.wire.origin import Origin


@dataclass(frozen=True)
class Use:
    """What tells two uses of a role apart: one that equals a use that ran already is not gone through again, as in Ansible.

    ``when``, ``tags`` and ``vars`` are those written at this use, not what is around it.
    """

    path: Path
    files: tuple[str, ...]
    params: dict[str, Any]
    when: tuple[Any, ...] = ()
    tags: frozenset[str] = frozenset()
    vars: dict[str, Any] = field(default_factory=dict)
    included: bool = False


@dataclass(frozen=True, eq=False)
class Role:
    """One use of a role. ``params`` are the variables given where it is used (roles: - {role: x, bucket: a}).

    Identity matters: two uses with different params are two Role objects. ``parent`` is the role whose dependency it is, where it is one.
    ``use`` and ``allow_duplicates`` say whether it is gone through again where it ran already.
    """

    name: str
    path: Path
    defaults: dict[str, Any] = field(default_factory=dict)
    vars: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    argument_specs: dict[str, Any] = field(default_factory=dict)
    parent: Role | None = None
    use: Use | None = None
    allow_duplicates: bool = False
