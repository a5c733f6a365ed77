"""nodectl check [PLAYBOOK…] -i HOSTS: read everything, touch no node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodectl.cli.extra_vars import extra_vars
from nodectl.cli.loading import load
from nodectl.cli.mistakes import tell_no_mistakes
from nodectl.cli.options import extra_vars_option, format_option, inventory_option, limit_option, vault_options
from nodectl.cli.terms import read_terms
from nodectl.cli.vault_passwords import read_vault
from nodectl.diagnostics.model import Collector
from nodectl.engine.options import Options
from nodectl.shipped import shipped


@click.command("check")
@click.argument("playbooks", nargs=-1, type=click.Path(path_type=Path))
@inventory_option
@limit_option
@extra_vars_option
@vault_options
@format_option
def command(playbooks: tuple[Path, ...], sources: tuple[str, ...], limit: str | None, extra: tuple[str, ...], **given: Any) -> int:
    """Find the mistakes in PLAYBOOKS (default: the bootstrap that comes with nodectl) and in an inventory. No node is touched."""
    found = Collector()
    vault = read_vault(given, found)
    options = Options(limit=limit, extra_vars=extra_vars(extra, found, vault), roles_path=(shipped("roles"),), vault=vault)
    paths = playbooks or (shipped("playbooks") / "bootstrap.yml",)
    loads = [load(sources, path, options, found) for path in paths]
    read_terms(loads[0].inventory, sources, options.extra_vars, found)
    found.stop_if_wrong()
    for one in loads:  # only where nothing is wrong: names in what could not be read would be missed
        one.playbook.seen.warn([options.extra_vars, *(layer.values for layer in one.inventory.every_layer())], found)
    tell_no_mistakes(found.warnings, f"{', '.join(map(str, paths))}: no mistakes found")
    return 0
