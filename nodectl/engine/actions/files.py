"""Files of the controller that a task names: the role's folder is looked at first, then the task file's, then the playbook's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from nodectl.engine.actions.contract import ActionFailed
from nodectl.lang.task import Task

# Read so much of a local file at a time while hashing it: large enough to be as fast as the disk.
PIECE = 1024 * 1024


def search_folders(task: Task | None, playbook_dir: Path, kind: str) -> list[Path]:
    """Folders in Ansible's order, each once. ``kind`` is files, templates, vars or tasks."""
    return list(dict.fromkeys(_folders(task, playbook_dir, kind)))


def find_source(name: str, task: Task | None, playbook_dir: Path, kind: str) -> Path:
    """The first file or folder called ``name``. Raises ActionFailed with every place that was looked at."""
    path = Path(name).expanduser()
    looked = [path] if path.is_absolute() else [folder / name for folder in search_folders(task, playbook_dir, kind)]
    for candidate in looked:
        if candidate.exists():
            return candidate
    raise ActionFailed(f"{name} is not on the controller; looked at: " + ", ".join(map(str, looked)))


def sha1_of(path: Path) -> str:
    """SHA-1 of a file, as Ansible's copy compares by: it tells change from no change, and guards nothing."""
    digest = hashlib.sha1(usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _folders(task: Task | None, playbook_dir: Path, kind: str) -> Iterator[Path]:
    if task is not None and task.role is not None:
        yield from (task.role.path / kind, task.role.path, task.role.path / "tasks")
    if task is not None:
        beside = Path(task.origin.file).parent
        yield from (beside / kind, beside)
    yield from (playbook_dir / kind, playbook_dir)
