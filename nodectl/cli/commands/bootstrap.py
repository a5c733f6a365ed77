"""nodectl bootstrap HOSTS: provision, verify, hand off."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from nodectl.cli.hide import hidden_argv
from nodectl.cli.listing import listing
from nodectl.cli.loading import inventory_secrets, load
from nodectl.cli.options import connection_options, listing_options, read_options, rehearsal_options, run_dir_option, task_options
from nodectl.cli.proving import nodes_of, prove, read_suite
from nodectl.cli.session import Session, make_run_folder
from nodectl.diagnostics.model import Collector
from nodectl.engine.run import run_playbook
from nodectl.shipped import shipped


@click.command("bootstrap")
@click.argument("hosts", nargs=-1, required=True)
@click.option("--playbook", type=click.Path(path_type=Path), metavar="PATH", help="Provision with this playbook instead of the one that comes with nodectl.")
@click.option("--suite", default="preflight", show_default=True, metavar="NAME", help="What has to be proven: the name of a suite, or a file.")
@rehearsal_options
@task_options
@listing_options
@run_dir_option
@connection_options
def command(
    hosts: tuple[str, ...], playbook: Path | None, suite: str, list_tasks: bool, list_hosts: bool, syntax_check: bool, run_dir: Path | None, **given: Any
) -> int:
    """Provision the nodes of HOSTS (an inventory), prove that they are ready for training, and hand off those that are.

    With --check nothing is changed, and nothing is verified or handed off. A node that fails or is not there does not stop the others.
    """
    found = Collector()
    asked = read_options(given, found)
    path = playbook or shipped("playbooks") / "bootstrap.yml"
    loaded = load(hosts, path, asked.options, found)
    wanted = read_suite(suite, found)
    found.stop_if_wrong()
    assert wanted is not None
    text = listing(loaded, asked.options, list_tasks, list_hosts, syntax_check)
    if text is not None:
        click.echo(text)
        return 0
    about = {"command": "bootstrap", "argv": hidden_argv(sys.argv[1:]), "playbook": str(path), "inventory": list(hosts)}
    secrets = [*asked.secrets, *inventory_secrets(loaded.inventory)]
    with Session(make_run_folder(run_dir), asked.limits, asked.view, secrets, check=asked.options.check, diff=asked.options.diff, **about) as session:
        result = run_playbook(loaded.playbook, loaded.inventory, asked.options, session.connections, session.emit)
        if not asked.options.check:
            prove(session, nodes_of(result, asked.options), wanted)
    return session.exit_code
