"""A play's vars_files: rendered per host, since their names may hold facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodectl.diagnostics.model import Mistakes
from nodectl.engine.cursor import Cursor
from nodectl.engine.runtime import mistakes_text
from nodectl.lang.playbook import Play
from nodectl.lang.task import Task
from nodectl.lang.template_error import TemplateError, UndefinedName

if TYPE_CHECKING:
    from nodectl.engine.play import Batch


def load(batch: Batch, *, final: bool) -> None:
    """Fill ``scope.files``. Names that need facts wait for ``final``; what is then still missing fails the host."""
    play = batch.scope.play
    for host in list(batch.scope.live) if play.vars_files else []:
        try:
            batch.scope.files[host] = _of_host(batch, play, host, final)
        except (TemplateError, Mistakes, OSError) as error:
            text = mistakes_text(error) if isinstance(error, Mistakes) else str(error)
            task = Task("include_vars", {}, play.origin, name="Variables of the play")
            batch.fail_here(task, host, f"vars_files: {text}", Cursor([task]))


def _of_host(batch: Batch, play: Play, host: str, final: bool) -> dict[str, Any]:
    variables = batch.run.variables.of_play(batch.scope, host)
    merged: dict[str, Any] = {}
    for entry in play.vars_files:
        try:
            names = batch.run.templar.render(entry, variables)
        except UndefinedName:
            if final:
                raise
            continue
        merged.update(batch.run.loader.vars(_first(play, names if isinstance(names, list) else [names])))
    return merged


def _first(play: Play, names: Sequence[Any]) -> Path:
    """Of a list, the first file that is there."""
    looked = [path for name in names for path in places(play, str(name))]
    for path in looked:
        if path.is_file():
            return path
    raise FileNotFoundError(f"none of these files is there: {', '.join(map(str, looked))}")


def places(play: Play, name: str) -> list[Path]:
    return [play.basedir / name, play.basedir / "vars" / name]
