"""nodectl inventory -i HOSTS: the inventory as it was understood."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import Any

import click

from nodectl.cli.options import format_option, inventory_option, limit_option, vault_options
from nodectl.cli.vault_passwords import read_vault
from nodectl.diagnostics.model import Collector
from nodectl.engine.outside import output
from nodectl.inventory.load import load_inventory
from nodectl.inventory.model import Inventory
from nodectl.inventory.patterns import select
from nodectl.inventory.secret_names import masked


@click.command("inventory")
@inventory_option
@click.option("--list", "whole", is_flag=True, help="Groups, hosts and variables as JSON (the default).")
@click.option("--host", metavar="NAME", help="The variables of one host as JSON.")
@click.option("--explain", metavar="VAR", help="With --host: every place that gives it this variable, and the one that holds.")
@click.option("--graph", is_flag=True, help="Groups and hosts as a tree.")
@limit_option
@vault_options
@format_option
def command(sources: tuple[str, ...], whole: bool, host: str | None, explain: str | None, graph: bool, limit: str | None, **given: Any) -> int:
    """Show an inventory as nodectl understands it. Secrets are masked, told by their names; templates are shown as written."""
    if sum([whole, bool(host), graph]) > 1:
        raise click.UsageError("--list, --host and --graph exclude each other: give one")
    if explain and not host:
        raise click.UsageError("--explain wants a --host: another host may have another value")
    found = Collector()
    inventory = load_inventory(sources, found, read_vault(given, found), output)
    found.stop_if_wrong()
    if host and explain:
        click.echo(explained(inventory, select(inventory, host)[0], explain))
    elif host:
        click.echo(_json(shown_variables(inventory, select(inventory, host)[0])))
    elif graph:
        click.echo("\n".join(tree(inventory, "all", 0)))
    else:
        click.echo(_json(listing(inventory, select(inventory, "all", limit))))
    return 0


def shown_variables(inventory: Inventory, host: str) -> dict[str, Any]:
    return masked(inventory.variables(host))


def explained(inventory: Inventory, host: str, name: str) -> str:
    """The places that say something, the one that holds first. Raises ClickException where none does."""
    said = inventory.explain(host, name)[::-1]
    if not said:
        near = get_close_matches(name, inventory.variables(host), n=1)
        raise click.ClickException(f"{host} has no variable '{name}' in the inventory" + (f"; did you mean '{near[0]}'?" if near else ""))
    lines = [f"{name} of {host}: {_value(name, said[0].value)}"]
    for number, one in enumerate(said):
        before = "" if number == 0 else f", would be {_value(name, one.value)}"
        lines.append(f"  {'holds' if number == 0 else 'overridden'}: {one.what} ({one.origin or 'no place'}){before}")
    return "\n".join(lines)


def _value(name: str, value: Any) -> str:
    return json.dumps(masked({name: value})[name], ensure_ascii=False, default=str)


def listing(inventory: Inventory, hosts: list[str]) -> dict[str, Any]:
    """The shape of `ansible-inventory --list`: groups with hosts and children, and all host variables under _meta."""
    groups = {
        name: {key: value for key, value in (("hosts", [h for h in group.hosts if h in hosts]), ("children", list(group.children))) if value}
        for name, group in inventory.groups.items()
    }
    return {"_meta": {"hostvars": {host: shown_variables(inventory, host) for host in hosts}}, **groups}


def tree(inventory: Inventory, group: str, depth: int) -> list[str]:
    """As `ansible-inventory --graph` draws it."""
    lines = [f"{_indent(depth)}@{group}:"]
    for child in inventory.groups[group].children:
        lines += tree(inventory, child, depth + 1)
    lines += [f"{_indent(depth + 1)}{host}" for host in inventory.groups[group].hosts]
    return lines


def _indent(depth: int) -> str:
    return "  |" * (depth - 1) + "  |--" if depth else ""


def _json(value: Any) -> str:
    return json.dumps(value, indent=4, ensure_ascii=False, default=str)
