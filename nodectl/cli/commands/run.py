"""nodectl run PLAYBOOK -i HOSTS: what ansible-playbook does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodectl.cli.options import connection_options, inventory_option, listing_options, rehearsal_options, run_dir_option, task_options
from nodectl.cli.playing import read
from nodectl.diagnostics.model import Collector


@click.command("run")
@click.argument("playbook", type=click.Path(path_type=Path))
@inventory_option
@rehearsal_options
@task_options
@listing_options
@run_dir_option
@connection_options
def command(playbook: Path, sources: tuple[str, ...], run_dir: Path | None, **given: Any) -> int:
    """Run PLAYBOOK on the hosts of an inventory. Ansible's recap line per host comes last."""
    found = Collector()
    playing = read("run", playbook, sources, given, found)
    found.stop_if_wrong()
    text = playing.listed(given)
    if text is not None:
        click.echo(text)
        return 0
    playing = playing.answered()
    with playing.session(run_dir) as session:
        playing.play(session)
    return session.exit_code
