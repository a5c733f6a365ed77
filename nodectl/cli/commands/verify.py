"""nodectl verify HOSTS: prove again, provision nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nodectl.cli.ad_hoc import one_task
from nodectl.cli.adopting import adopt
from nodectl.cli.hide import hidden_argv
from nodectl.cli.loading import check_targets, inventory_secrets
from nodectl.cli.options import connection_options, read_options, run_dir_option
from nodectl.cli.proving import nodes_of, prove, read_suite, tell_targets
from nodectl.cli.replaying import evidence_in, replayed
from nodectl.cli.session import Session, make_run_folder
from nodectl.cli.terms import read_terms
from nodectl.diagnostics.model import Collector
from nodectl.engine.outside import output
from nodectl.engine.run import run_playbook
from nodectl.inventory.load import load_inventory


@click.command("verify")
@click.argument("hosts", nargs=-1)
@click.option("--suite", default="preflight", show_default=True, metavar="NAME", help="What has to be proven: the name of a suite, or a file.")
@click.option("--replay", type=click.Path(path_type=Path), metavar="RUN", help="Judge a run's folder, or an evidence.json, again; no node is asked.")
@click.option("--adopt", "adopting", is_flag=True, help="Make what healthy nodes reach the site's own floors (site_floors.toml beside HOSTS).")
@run_dir_option
@connection_options
@click.pass_context
def command(
    context: click.Context, /, hosts: tuple[str, ...], suite: str, replay: Path | None, adopting: bool, run_dir: Path | None, **given: Any
) -> int:
    """Verify the nodes of HOSTS (an inventory) as they are, and hand off those that pass."""
    if replay is not None:
        _alone(context)
        return replayed(replay, adopting)
    if not hosts:
        raise click.MissingParameter(ctx=context, param=next(one for one in context.command.params if one.name == "hosts"))
    found = Collector()
    asked = read_options(given, found)
    inventory = load_inventory(hosts, found, asked.options.vault, output)
    check_targets(inventory, hosts, "all", asked.limit, found)
    terms = read_terms(inventory, hosts, asked.options.extra_vars, found)
    wanted = read_suite(suite, found)
    found.stop_if_wrong()
    assert wanted is not None
    about = {"command": "verify", "argv": hidden_argv(sys.argv[1:]), "playbook": "", "inventory": list(hosts), "check": False, "diff": False}
    with Session(make_run_folder(run_dir), asked.limits, asked.view, [*asked.secrets, *inventory_secrets(inventory)], **about) as session:
        # Facts are part of a node's variables: addresses, interfaces and GPUs are read anew, not believed.
        result = run_playbook(one_task("setup", {}, "all", "Facts"), inventory, asked.options, session.connections, session.emit)
        tell_targets(session, result, asked.options)
        prove(session, nodes_of(result, asked.options), wanted, terms)
    if adopting:
        adopt(evidence_in(session.folder))
    return session.exit_code


def _alone(context: click.Context) -> None:
    """What --replay cannot obey is refused: whoever names hosts or a suite beside it expects nodes to be asked."""
    named = [one.name for one in context.command.params if one.name and context.get_parameter_source(one.name) is ParameterSource.COMMANDLINE]
    others = [name for name in named if name not in ("replay", "adopting", "format")]
    if others:
        raise click.UsageError(f"--replay asks no node: it goes with nothing else, not with {', '.join(others)}", context)
