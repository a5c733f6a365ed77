"""nodectl plan PLAYBOOK -i HOSTS: run --check --diff under a name that says what it is for."""

from __future__ import annotations

from typing import Any

import click

from nodectl.cli.commands import run


@click.pass_context
def _plan(context: click.Context, /, **given: Any) -> Any:
    """Show what PLAYBOOK would change on the hosts of an inventory, and change nothing: run --check --diff."""
    return context.invoke(run.command, **{**given, "check": True, "diff": True})


command = click.Command(
    "plan",
    callback=_plan,
    params=[option for option in run.command.params if option.name not in ("check", "diff", "list_tasks", "list_hosts", "syntax_check")],
    help=_plan.__doc__,
)
