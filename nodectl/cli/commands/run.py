"""nodectl run PLAYBOOK -i HOSTS: what ansible-playbook does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from nodectl.cli.hide import hidden_argv
from nodectl.cli.listing import listing
from nodectl.cli.loading import inventory_secrets, load
from nodectl.cli.options import (
    connection_options,
    inventory_option,
    listing_options,
    read_options,
    rehearsal_options,
    run_dir_option,
    task_options,
)  # fmt: skip
from nodectl.cli.session import Session, make_run_folder
from nodectl.diagnostics.model import Collector
from nodectl.engine.run import run_playbook


@click.command("run")
@click.argument("playbook", type=click.Path(path_type=Path))
@inventory_option
@rehearsal_options
@task_options
@listing_options
@run_dir_option
@connection_options
def command(
    playbook: Path, sources: tuple[str, ...], list_tasks: bool, list_hosts: bool, syntax_check: bool, run_dir: Path | None, **given: Any
) -> int:
    """Run PLAYBOOK on the hosts of an inventory. Ansible's recap line per host comes last."""
    found = Collector()
    asked = read_options(given, found)
    loaded = load(sources, playbook, asked.options, found)
    found.stop_if_wrong()
    text = listing(loaded, asked.options, list_tasks, list_hosts, syntax_check)
    if text is not None:
        click.echo(text)
        return 0
    about = {"command": "run", "argv": hidden_argv(sys.argv[1:]), "playbook": str(playbook), "inventory": list(sources)}
    secrets = [*asked.secrets, *inventory_secrets(loaded.inventory)]
    with Session(make_run_folder(run_dir), asked.limits, asked.view, secrets, check=asked.options.check, diff=asked.options.diff, **about) as session:
        run_playbook(loaded.playbook, loaded.inventory, asked.options, session.connections, session.emit)
    return session.exit_code
