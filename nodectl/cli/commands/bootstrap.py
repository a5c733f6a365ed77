"""nodectl bootstrap HOSTS: provision, verify, hand off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodectl.cli.options import connection_options, listing_options, rehearsal_options, run_dir_option, task_options
from nodectl.cli.playing import read
from nodectl.cli.proving import nodes_of, prove, read_suite, tell_targets
from nodectl.cli.terms import read_terms
from nodectl.diagnostics.model import Collector
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
def command(hosts: tuple[str, ...], playbook: Path | None, suite: str, run_dir: Path | None, **given: Any) -> int:
    """Provision the nodes of HOSTS (an inventory), prove that they are ready for training, and hand off those that are.

    With --check nothing is changed, and nothing is verified or handed off. A node that fails or is not there does not stop the others.
    """
    found = Collector()
    playing = read("bootstrap", playbook or shipped("playbooks") / "bootstrap.yml", hosts, given, found)
    terms = read_terms(playing.loaded.inventory, hosts, playing.asked.options.extra_vars, found)
    wanted = read_suite(suite, found)
    found.stop_if_wrong()
    assert wanted is not None
    text = playing.listed(given)
    if text is not None:
        click.echo(text)
        return 0
    playing = playing.answered()
    with playing.session(run_dir) as session:
        result = playing.play(session)
        if not playing.asked.options.check:
            tell_targets(session, result, playing.asked.options)
            prove(session, nodes_of(result, playing.asked.options), wanted, terms)
    return session.exit_code
