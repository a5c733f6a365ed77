"""Where a file that a task names is looked for on the controller: the role's folder first, then the task file's, then the playbook's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nodectl.engine.actions.contract import ActionFailed
from nodectl.lang.task import Task


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


def _folders(task: Task | None, playbook_dir: Path, kind: str) -> Iterator[Path]:
    if task is not None and task.role is not None:
        yield from (task.role.path / kind, task.role.path, task.role.path / "tasks")
    if task is not None:
        beside = Path(task.origin.file).parent
        yield from (beside / kind, beside)
    yield from (playbook_dir / kind, playbook_dir)
