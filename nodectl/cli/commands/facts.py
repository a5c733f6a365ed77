"""nodectl facts PATTERN -i HOSTS: what the setup module finds, as JSON."""

from __future__ import annotations

import json
from typing import Any

import click

from nodectl.cli.ad_hoc import ask
from nodectl.cli.options import connection_options, inventory_option
from nodectl.report.human import TaskLog, View
from nodectl.wire.event import Event


@click.command("facts")
@click.argument("pattern", default="all")
@inventory_option
@connection_options
def command(pattern: str, sources: tuple[str, ...], **given: Any) -> int:
    """Read the facts of the hosts of PATTERN and print one JSON object, host by host. A host that cannot be read is named on standard error."""
    log = TaskLog(View())

    def seen(event: Event) -> None:
        if event.kind in ("host.unreachable", "host.lost") or event.data.get("status") == "failed":
            for line in log.lines(event):
                click.echo(line.plain, err=True)

    summary, result = ask(pattern, sources, "setup", {}, given, seen)
    facts = {host: result.variables(host)["ansible_facts"] for host, status in result.status.items() if status == "ok"}
    click.echo(json.dumps(facts, indent=2, ensure_ascii=False, sort_keys=True))
    return int(summary.exit_code)
