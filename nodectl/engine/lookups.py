"""`lookup(…)` and the with_ loops that read files or the environment of the controller."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodectl.engine.actions.contract import ActionFailed
from nodectl.engine.actions.files import find_source, search_folders
from nodectl.engine.loops import KINDS
from nodectl.lang.task import Task

Render = Callable[[str], str]
_Read = Callable[["FileLookup", Any, Mapping[str, Any], Render], list[Any]]


class FileLookup:
    """Looks where the task would look: in its role, beside its file, beside the playbook. Implements ``lang.template.Lookup``."""

    def __init__(self, task: Task | None, playbook_dir: Path) -> None:
        self._task = task
        self._playbook_dir = playbook_dir

    def __call__(self, name: str, terms: Sequence[Any], options: Mapping[str, Any], variables: Mapping[str, Any], render: Render) -> list[Any]:
        """Raises LookupError or ValueError."""
        if name == "first_found":
            return self._first_found(terms, options)
        if name in KINDS and name != "loop":
            return KINDS[name](list(terms) if len(terms) != 1 else terms[0])
        if name not in _READ:
            raise ValueError(f"lookup '{name}' is not known; known are {', '.join(sorted({*_READ, *KINDS, 'first_found', 'vars'} - {'loop'}))}")
        return [found for term in terms for found in _READ[name](self, term, options, render)]

    def file(self, term: Any, options: Mapping[str, Any], render: Render) -> list[Any]:
        text = self._text(str(term), "files")
        text = text.rstrip() if options.get("rstrip", True) else text
        return [text.lstrip() if options.get("lstrip", False) else text]

    def template(self, term: Any, options: Mapping[str, Any], render: Render) -> list[Any]:
        return [render(self._text(str(term), "templates"))]

    def env(self, term: Any, options: Mapping[str, Any], render: Render) -> list[Any]:
        return [os.environ.get(str(term), options.get("default", ""))]

    def fileglob(self, term: Any, options: Mapping[str, Any], render: Render) -> list[Any]:
        """Files, not folders, of the first place that has the pattern's folder."""
        pattern = Path(str(term))
        for folder in search_folders(self._task, self._playbook_dir, "files"):
            place = (folder / pattern).parent
            if place.is_dir():
                return sorted(str(path) for path in place.glob(pattern.name) if path.is_file())
        return []

    def _text(self, name: str, kind: str) -> str:
        try:
            return find_source(name, self._task, self._playbook_dir, kind).read_text("utf-8")
        except ActionFailed as error:
            raise LookupError(error.msg) from None
        except (OSError, UnicodeDecodeError) as error:
            raise LookupError(f"{name}: {error}") from None

    def _first_found(self, terms: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
        skip = bool(options.get("skip", False))
        names: list[str] = [str(name) for name in options.get("files", ())]
        paths = [str(path) for path in options.get("paths", ())]
        for term in terms:
            if isinstance(term, Mapping):
                names += [str(name) for name in term.get("files", ())]
                paths += [str(path) for path in term.get("paths", ())]
                skip = skip or bool(term.get("skip", False))
            else:
                names += [str(one) for one in (term if isinstance(term, list) else [term])]
        wanted = [str(Path(path) / name) for path in paths for name in names] or names
        for name in wanted:
            for kind in ("files", "templates", "vars", "tasks"):
                try:
                    return [str(find_source(name, self._task, self._playbook_dir, kind))]
                except ActionFailed:
                    continue
        if skip:
            return []
        raise LookupError(f"first_found: none of {', '.join(wanted)} is there")


_READ: Mapping[str, _Read] = {
    "file": FileLookup.file,
    "template": FileLookup.template,
    "env": FileLookup.env,
    "fileglob": FileLookup.fileglob,
}
