"""nodectl ping PATTERN -i HOSTS: who answers, as whom, with which Python."""

from __future__ import annotations

from typing import Any

import click

from nodectl.cli.ad_hoc import ask
from nodectl.cli.options import connection_options, inventory_option
from nodectl.report.human import printable
from nodectl.wire.event import Event


@click.command("ping")
@click.argument("pattern", default="all")
@inventory_option
@connection_options
def command(pattern: str, sources: tuple[str, ...], **given: Any) -> int:
    """Log in on the hosts of PATTERN, start the agent and let it answer. Proves connection, Python and sudo; changes nothing."""

    def seen(event: Event) -> None:
        if event.kind == "task.end":
            result = event.data.get("result") or {}
            answered = event.data.get("status") == "ok"
            click.echo(f"{event.host} | {'SUCCESS => pong' if answered else 'FAILED => ' + printable(str(result.get('msg', '')))}")
        elif event.kind in ("host.unreachable", "host.lost"):
            click.echo(f"{event.host} | {'UNREACHABLE' if event.kind == 'host.unreachable' else 'LOST'} => {printable(str(event.data.get('reason', '')))}")
            if event.data.get("hint"):
                click.echo(f"  help: {printable(str(event.data['hint']))}")

    summary, _ = ask(pattern, sources, "ping", {}, given, seen)
    return int(summary.exit_code)
