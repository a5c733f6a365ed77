"""include_vars: read variables from a file or a folder on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.files import find_source
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Read variables from a YAML or JSON file, or from all such files of a folder, on the controller",
    params={
        "file": Param("path", "The file; looked for in vars/ of the role, then of the playbook."),
        "dir": Param("path", "A folder; its files are read in the order of their names, later ones win."),
        "name": Param("str", "Put everything under this one name."),
        "extensions": Param("list", "Endings of the files of a folder that are read.", default=("yaml", "yml", "json"), elements="str"),
        "ignore_unknown_extensions": Param("bool", "Pass over other files of a folder.", default=False),
    },
    free_form="file",
    mutually_exclusive=(("file", "dir"),),
    required_one_of=(("file", "dir"),),
    returns={"ansible_facts": "the variables", "ansible_included_var_files": "the files read"},
    example="- include_vars: \"{{ ansible_distribution | lower }}.yml\"\n",
)


def run(context: Context, args: Args) -> Outcome:
    files = _files_of(_folder(context, args["dir"]), args) if args["dir"] else [find_source(args["file"], context.task, context.playbook_dir, "vars")]
    found: dict[str, Any] = {}
    for file in files:
        found.update(context.load_vars(file))
    return Outcome(facts={args["name"]: found} if args["name"] else found, values={"ansible_included_var_files": list(map(str, files))})


def _folder(context: Context, name: str) -> Path:
    """As Ansible finds folders: in the role's vars/, outside a role beside the task's file; files are looked for in more places."""
    role = context.task.role
    if role is None:
        return Path(context.task.origin.file).absolute().parent / name
    return role.path / name if name.split("/")[0] == "vars" else role.path / "vars" / name


def _files_of(folder: Path, args: Args) -> list[Path]:
    if not folder.is_dir():
        raise ActionFailed(f"{folder} is not a folder: use file for one file")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    known = [path for path in files if path.suffix.removeprefix(".") in args["extensions"]]
    if len(known) < len(files) and not args["ignore_unknown_extensions"]:
        odd = next(path for path in files if path not in known)
        raise ActionFailed(f"{odd} does not end in one of {', '.join(args['extensions'])}: set ignore_unknown_extensions to pass over it")
    return known
