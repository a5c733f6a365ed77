"""Everything that is read before a node is touched, with all its mistakes found in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from nodectl.diagnostics.model import Collector, Mistakes
from nodectl.engine import targets
from nodectl.engine.catalogue import known
from nodectl.engine.given_variables import check_given
from nodectl.engine.options import Options
from nodectl.engine.outside import output
from nodectl.engine.preflight import preflight
from nodectl.engine.runtime import Runtime
from nodectl.inventory.load import add_playbook_folder, load_inventory
from nodectl.inventory.model import Inventory
from nodectl.inventory.patterns import check_hosts, select
from nodectl.inventory.secret_names import secret_texts
from nodectl.lang.load import load_playbook
from nodectl.lang.playbook import Playbook
from nodectl.lang.template import Templar
from nodectl.shipped import shipped
from nodectl.transport.channel import BecomeTarget, Target
from nodectl.verify import settings
from nodectl.wire.event import Event
from nodectl.wire.secret import Secret


@dataclass(frozen=True)
class Loaded:
    inventory: Inventory
    playbook: Playbook


class NoConnections:
    """Stands where connections are wanted while nothing but reading goes on."""

    def channel(self, target: Target, become: BecomeTarget | None = None) -> NoReturn:
        raise AssertionError(f"reading must not touch {target.host}")

    def fresh(self, target: Target, become: object = None) -> NoReturn:
        raise AssertionError(f"reading must not touch {target.host}")

    def raw(self, target: Target, become: BecomeTarget | None, command: str, executable: str, seconds: float) -> NoReturn:
        raise AssertionError(f"reading must not touch {target.host}")

    def reset(self, host: str) -> None:
        """There is nothing to close."""

    def close(self) -> None:
        """There is nothing to close."""


def load(sources: Sequence[str], playbook: Path, options: Options, found: Collector) -> Loaded:
    """Inventory and playbook; what is wrong with either, and between them, goes into ``found``."""
    inventory = load_inventory(sources, found, options.vault, output)
    loaded = load_playbook(playbook, roles_path(playbook), known, found, options.vault)
    for folder in dict.fromkeys([playbook.parent, *(play.basedir for play in loaded.plays)]):
        add_playbook_folder(inventory, folder, found, options.vault)
    if inventory.hosts:  # an inventory that could not be read would make every pattern look wrong
        check_hosts(loaded, inventory, found)
    check_targets(inventory, sources, "all", options.limit, found)
    if not loaded.plays and not found.errors:
        found.error("E201", f"{playbook}: there is no play in it", None, help="a playbook is a list of plays: - hosts: all")
    check_given(loaded, inventory, targets.NAMES | settings.NAMES, found)
    if not found.errors:  # a playbook that was read in part would seem to lack tags and tasks
        _preflight(inventory, loaded, options, found)
    return Loaded(inventory, loaded)


def _preflight(inventory: Inventory, playbook: Playbook, options: Options, found: Collector) -> None:
    """What the engine refuses before its first connection: here it is still a mistake among the others."""
    try:
        preflight(Runtime(playbook.path, inventory, options, NoConnections(), _ignore, Templar()), playbook)
    except Mistakes as mistakes:
        _collect(mistakes, found)


def _ignore(_: Event) -> None:
    """Nobody watches while files are read."""


def _collect(mistakes: Mistakes, found: Collector) -> None:
    for d in mistakes.diagnostics:
        add = found.error if d.severity == "error" else found.warning
        add(d.code, d.message, d.origin, label=d.label, help=d.help)


def roles_path(playbook: Path) -> list[Path]:
    """Where roles are looked for: the user's beside his playbook first, so that he can replace one of ours."""
    return [playbook.parent / "roles", shipped("roles")]


def check_targets(inventory: Inventory, sources: Sequence[str], pattern: str, limit: str | None, found: Collector) -> None:
    """A run on no host would do nothing and be taken for a success: no hosts in the inventory, or none left of it."""
    if not inventory.hosts:
        if not found.errors:
            found.error("E311", f"{', '.join(sources)}: there are no hosts in it", None, help="name hosts under all.hosts or a group's hosts")
        return
    try:
        left = select(inventory, pattern, limit)
    except Mistakes as mistakes:
        _collect(mistakes, found)
        return
    if not left:
        words = f"'{pattern}' with --limit '{limit}'" if limit else f"'{pattern}'"
        found.error("E304", f"{words} leaves no host", None, help="nodectl inventory --graph shows what there is")


def inventory_secrets(inventory: Inventory) -> list[Secret]:
    """Secrets that stand in the inventory in clear text, for the redactor."""
    texts = (text for host in inventory.names() for text in secret_texts(inventory.variables(host)))
    return [Secret(text) for text in dict.fromkeys(texts)]
