"""What the command line says about a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodectl.lang.vault import NO_PASSWORDS, Vault
from nodectl.wire.secret import Secret


@dataclass(frozen=True)
class Options:
    """``forks``: worker threads, so hosts worked on at a time; 16 threads are one rack of nodes and cost no CPU while they wait.

    ``step_timeout`` (s): the longest that one module may take where its task sets no `timeout`. An hour is over twice what the
    longest honest step takes (a driver package with its DKMS build, about 25 min); a dead line is noticed much earlier by the
    channel's own watchdog. ``pending_dir`` keeps notified handlers that did not run for the next run on the same nodes.
    ``roles_path`` is searched after the playbook's own roles folder. ``vault`` opens what is encrypted among the files.
    """

    check: bool = False
    diff: bool = False
    forks: int = 16
    tags: tuple[str, ...] = ()
    skip_tags: tuple[str, ...] = ()
    limit: str | None = None
    extra_vars: Mapping[str, Any] = field(default_factory=dict)
    become: bool | None = None
    become_user: str | None = None
    become_password: Secret | None = None
    remote_user: str = ""
    private_key: str = ""
    start_at_task: str | None = None
    force_handlers: bool = False
    step_timeout: float = 3600.0
    pending_dir: Path | None = None
    roles_path: tuple[Path, ...] = ()
    vault: Vault = NO_PASSWORDS
