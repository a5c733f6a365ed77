"""Everything that is read before a node is touched, with all its mistakes found in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodectl.diagnostics.model import Collector, Mistakes
from nodectl.engine.catalogue import known
from nodectl.inventory.load import load_inventory
from nodectl.inventory.model import Inventory
from nodectl.inventory.patterns import check_hosts, select
from nodectl.lang.load import load_playbook
from nodectl.lang.playbook import Playbook
from nodectl.shipped import shipped
from nodectl.wire.secret import Secret

# Values of these never leave the process: not in `inventory --list`, not in a journal.
SECRET_VARIABLES = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password", "ansible_become_password", "ansible_become_pass", "ansible_sudo_pass")


@dataclass(frozen=True)
class Loaded:
    inventory: Inventory
    playbook: Playbook


def load(sources: Sequence[str], playbook: Path, limit: str | None, found: Collector) -> Loaded:
    """Inventory and playbook; what is wrong with either, and between them, goes into ``found``."""
    inventory = load_inventory(sources, found)
    loaded = load_playbook(playbook, roles_path(playbook), known, found)
    if inventory.hosts:  # an inventory that could not be read would make every pattern look wrong
        check_hosts(loaded, inventory, found)
        select_into(inventory, "all", limit, found)
    elif not found.errors:
        found.error("E311", f"{', '.join(sources)}: there are no hosts in it", None, help="name hosts under all.hosts or a group's hosts")
    return Loaded(inventory, loaded)


def roles_path(playbook: Path) -> list[Path]:
    """Where roles are looked for: the user's beside his playbook first, so that he can replace one of ours."""
    return [playbook.parent / "roles", shipped("roles")]


def select_into(inventory: Inventory, pattern: str, limit: str | None, found: Collector) -> list[str]:
    """``select`` whose mistakes are collected; an empty list then."""
    try:
        return select(inventory, pattern, limit)
    except Mistakes as mistakes:
        for d in mistakes.diagnostics:
            found.error(d.code, d.message, d.origin, label=d.label, help=d.help)
        return []


def inventory_secrets(inventory: Inventory) -> list[Secret]:
    """Passwords that stand in the inventory in clear text, for the redactor."""
    values = (inventory.variables(host).get(name) for host in inventory.names() for name in SECRET_VARIABLES)
    return [Secret(value) for value in values if isinstance(value, str) and "{{" not in value]
