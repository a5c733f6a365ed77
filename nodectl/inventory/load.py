"""Where an inventory comes from: files, folders, or a list of names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from nodectl.diagnostics.model import Collector
from nodectl.inventory import ini_source, program_source, yaml_source
from nodectl.inventory.build import Builder
from nodectl.inventory.model import COMMAND_LINE, Inventory, Layer, VarsFolder
from nodectl.inventory.program_source import Run, is_program, refused
from nodectl.inventory.tiers import check_variable
from nodectl.lang.document import Map
from nodectl.lang.fields import Checker
from nodectl.lang.vault import NO_PASSWORDS, Vault
from nodectl.wire.origin import Origin

YAML_ENDINGS = (".yaml", ".yml", ".json")
# As Ansible skips them in an inventory folder.
_SKIPPED_ENDINGS = ("~", ".orig", ".bak", ".cfg", ".retry", ".pyc", ".pyo", ".swp", ".rpm", ".md", ".txt")
_VARS_FOLDERS = ("group_vars", "host_vars")


def load_inventory(sources: Sequence[str], found: Collector, vault: Vault = NO_PASSWORDS, run: Run = refused) -> Inventory:
    """All sources as one inventory, later ones over earlier ones. Mistakes are in ``found``; what could be read is returned.

    ``run`` runs an inventory program and gives what it prints; reading files is all that this room does itself.
    """
    inventory = Inventory()
    builder = Builder(inventory, found, vault)
    for source in sources:
        if "," in source and not os.path.exists(source):
            _names(source, builder)
            inventory.sources.append(source)
        else:
            inventory.sources.append(str(Path(source).absolute()))
            _path(Path(source), builder, run)
    builder.finish()
    for folder in _beside(sources):
        inventory.folders.append(_vars_folder(folder, found, vault))
    return inventory


def add_playbook_folder(inventory: Inventory, folder: Path, found: Collector, vault: Vault = NO_PASSWORDS) -> None:
    """Adds group_vars/ and host_vars/ beside a playbook: they win over those beside the inventory, for the plays of that playbook."""
    where = folder.resolve()
    if where not in inventory.playbooks:
        known = next((one for one in inventory.folders if one.path == where), None)
        inventory.playbooks[where] = known or _vars_folder(folder, found, vault)


def _vars_folder(folder: Path, found: Collector, vault: Vault) -> VarsFolder:
    checker = Checker(found, vault)
    return VarsFolder(folder.resolve(), _vars_files(folder / "group_vars", checker), _vars_files(folder / "host_vars", checker))


def _names(source: str, builder: Builder) -> None:
    group = builder.group("all", Origin(COMMAND_LINE, 1, 1))
    column = 1
    for name in source.split(","):
        if name.strip():
            builder.hosts(name.strip(), group, Origin(COMMAND_LINE, 1, column, len(name)))
        column += len(name) + 1


def _path(path: Path, builder: Builder, run: Run) -> None:
    if os.path.isdir(path):
        files = sorted(entry for entry in path.iterdir() if entry.name not in _VARS_FOLDERS and not entry.name.startswith("."))
        for entry in files:
            if not entry.name.endswith(_SKIPPED_ENDINGS):
                _path(entry, builder, run)
    elif not os.path.exists(path):
        builder.found.error("E109", f"inventory {path} does not exist", None, help="give a file, a folder, or names with a comma: 'n1,n2,'")
    elif path.suffix == ".toml":
        builder.found.error("E301", f"{path} is TOML", Origin(str(path), 1, 1), help="nodectl reads YAML and INI, and runs programs that print JSON")
    elif is_program(path):
        program_source.read(path, builder, run)
    elif path.suffix in YAML_ENDINGS or _looks_like_yaml(path):
        yaml_source.read(path, builder)
    else:
        ini_source.read(path, builder)


def _looks_like_yaml(path: Path) -> bool:
    """Judged by the first line that says something: `---` or `name:` alone is YAML."""
    with path.open("rb") as file:
        for line in file.read(65536).decode("utf-8", "replace").splitlines():
            bare = line.split(" #")[0].strip()
            if bare and bare[0] not in "#;":
                return bare == "---" or (bare.endswith(":") and not bare.startswith("["))
    return False


def _beside(sources: Sequence[str]) -> list[Path]:
    folders: list[Path] = []
    for source in sources:
        path = Path(source)
        folder = path if os.path.isdir(path) else path.parent
        if os.path.exists(path) and folder not in folders:
            folders.append(folder)
    return folders


def _vars_files(folder: Path, checker: Checker) -> dict[str, Layer]:
    """Variables by group or host name: `NAME`, `NAME.yml`, or a folder NAME/ whose files are laid over each other."""
    result: dict[str, Layer] = {}
    if not folder.is_dir():
        return result
    places: dict[str, Path] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name.endswith(_SKIPPED_ENDINGS):
            continue
        name = entry.name.removesuffix(entry.suffix) if entry.suffix in YAML_ENDINGS else entry.name
        if name in places:
            message = f"{places[name]} and {entry} both hold the variables of '{name}'"
            advice = "Ansible reads one of them and passes over the other: put all into one"
            checker.error("E312", message, Origin(str(entry), 1, 1), label="the second place", help=advice)
            continue
        places[name] = entry
        layer = result[name] = Layer(f"{folder.name}/{entry.name}", {}, {})
        for file in _files(entry):
            _vars_file(file, layer, checker)
    return result


def _files(entry: Path) -> list[Path]:
    """As Ansible reads a folder of variables: files in the order of their names, folders at their place among them."""
    if not entry.is_dir():
        return [entry]
    files: list[Path] = []
    for inside in sorted(entry.iterdir()):
        if inside.name.startswith(".") or inside.name.endswith("~"):
            continue
        if inside.is_dir():
            files += _files(inside) if not inside.suffix else []
        elif inside.suffix in (*YAML_ENDINGS, ""):
            files.append(inside)
    return files


def _vars_file(path: Path, into: Layer, checker: Checker) -> None:
    value = checker.read_variables(path)
    if value is None:
        return
    if not isinstance(value, Map):
        checker.error("E301", f"{path} does not hold variables", Origin(str(path), 1, 1), label="expected name: value pairs")
        return
    for name, item in value.items():
        checker.templates(item, value.value_at[name])
        check_variable(str(name), item, value.value_at[name], checker.found)
        into.values[str(name)], into.origins[str(name)] = item, value.key_at[name]
