"""nodectl explain CODE: what a code beside a mistake means."""

from __future__ import annotations

import difflib

import click

from nodectl.diagnostics.codes import CODES


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> int:
    """Say what the CODE of a mistake means and how to mend it. Without CODE: all of them."""
    if code is None:
        for name in sorted(CODES):
            click.echo(f"{name:<6} {CODES[name].title}")
        return 0
    wanted = code.strip().upper()
    if wanted not in CODES:
        near = difflib.get_close_matches(wanted, CODES, 1)
        raise click.UsageError(f"there is no code '{code}'" + (f"; did you mean '{near[0]}'?" if near else ": nodectl explain lists them all"))
    click.echo(CODES[wanted].page(wanted), nl=False)
    return 0
