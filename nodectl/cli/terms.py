"""What the site says about judging: waivers of hosts.yaml, and floors of its own. Read before any node is touched."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodectl.diagnostics.model import Collector
from nodectl.inventory.model import Inventory
from nodectl.lang.unsafe import has_template
from nodectl.verify.judging.floor_load import Floor, FloorError, floors_of
from nodectl.verify.ledger import Terms
from nodectl.verify.settings import NAMES, mistakes
from nodectl.verify.waivers import waivers_of
from nodectl.wire.origin import Origin

# Beside hosts.yaml, where it needs no mention; `nodectl verify --adopt` writes it there.
SITE_FLOORS = "site_floors.toml"


def read_terms(inventory: Inventory, sources: Sequence[str], extra_vars: Mapping[str, Any], found: Collector) -> Terms:
    """Mistakes go to ``found``. The day is that of UTC, as in the names of runs."""
    today = datetime.datetime.now(datetime.UTC).date()
    variables = {host: {**inventory.variables(host), **extra_vars} for host in inventory.names()}
    waivers = waivers_of(variables, today, found)
    _settings(inventory, variables, extra_vars, found)
    return Terms(tuple(_floors(site_files(variables, sources), found)), tuple(waivers), today.isoformat())


def _settings(inventory: Inventory, variables: Mapping[str, Mapping[str, Any]], extra_vars: Mapping[str, Any], found: Collector) -> None:
    """What verification could not understand later is a mistake now; a value that holds a template is known only during the run.

    file_mounts are looked at where they are read (inventory.tiers).
    """
    told: set[tuple[str, Origin | None]] = set()
    for host, given in variables.items():
        literal = {name: value for name, value in given.items() if name in NAMES - {"file_mounts"} and not has_template(str(value))}
        for problem in mistakes(literal):
            name = next((one for one in NAMES if problem.startswith(f"{one}:")), "node_profile")
            said = [] if name in extra_vars else inventory.explain(host, name)
            at = said[-1].origin if said else None
            if (problem, at) not in told:
                told.add((problem, at))
                found.error("E315", problem, at, help="docs/verification.md has the list of these variables")


def site_files(variables: Mapping[str, Mapping[str, Any]], sources: Sequence[str]) -> list[Path]:
    """Files of the site's floors: those that `site_floors` names, relative to the inventory, else the one beside it where there is one."""
    folder = site_folder(sources)
    named: dict[Path, None] = {}
    for given in variables.values():
        value = given.get("site_floors")
        for one in value if isinstance(value, list) else [value] if value else []:
            named[folder / str(one)] = None
    beside = folder / SITE_FLOORS
    return list(named) or ([beside] if beside.exists() else [])


def site_folder(sources: Sequence[str]) -> Path:
    """Where the inventory lies; the current folder for one that is spelled out on the command line."""
    path = Path(sources[0])
    return path if path.is_dir() else path.parent if path.exists() else Path()


def _floors(files: Sequence[Path], found: Collector) -> list[Floor]:
    floors: list[Floor] = []
    for path in files:
        try:
            floors += floors_of(path.read_text("utf-8"), str(path), site=True)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            found.error("E408", f"floors of the site: {path} cannot be read: {why}", None, help="correct site_floors in hosts.yaml, or the file's permissions")
        except FloorError as error:
            for one in error.diagnostics:
                advice = one.help or "a floor names metric, unit, statistic, source, date and the bound it must not exceed"
                found.error(one.code, one.message, one.origin, label=one.label, help=advice)
    return floors
