"""Writing fstab: whole, atomically, with a backup where wished, and telling systemd."""

from __future__ import annotations

import os
import time

from nodectl.agent import fstab
from nodectl.agent.system import System

RELOAD_SECONDS = 60.0


def load(system: System, path: str = fstab.PATH) -> str:
    return (system.read(path) or b"").decode("utf-8", "surrogateescape")


def store(system: System, text: str, path: str = fstab.PATH, backup: bool = False) -> str:
    """Replace the file; returns the backup's path or "". Units that systemd made from the old lines are read again."""
    old = system.read(path)
    kept = ""
    if backup and old is not None:
        kept = f"{path}.{time.strftime('%Y-%m-%d@%H:%M:%S', time.gmtime())}~"
        system.write_atomic(kept, old, mode=0o600)
    system.write_atomic(path, text.encode("utf-8", "surrogateescape"))
    if path == fstab.PATH and os.path.isdir("/run/systemd/system") and system.which("systemctl"):
        system.run(["systemctl", "daemon-reload"], timeout=RELOAD_SECONDS)
    return kept
