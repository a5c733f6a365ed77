"""Variables of the inventory against what the roles of a playbook declare: a wrong value or a slip of the pen shows before any node is touched."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from nodectl.diagnostics.model import Collector, Mistakes
from nodectl.engine.preflight import roles_of
from nodectl.inventory.model import Inventory, Layer
from nodectl.inventory.patterns import select
from nodectl.lang.argument_specs import check_value, options_of
from nodectl.lang.document import Map, Seq
from nodectl.lang.playbook import Play, Playbook
from nodectl.lang.role import Role
from nodectl.lang.unsafe import has_template
from nodectl.wire.origin import Origin

# Of difflib's ratio: network_teir is 0.92 like network_tier, two names that differ in a word stay below.
NEAR = 0.86
# A shorter name is near to many.
SHORTEST = 6


def check_given(playbook: Playbook, inventory: Inventory, names: Collection[str], found: Collector) -> None:
    """``names`` are variables that something else than a role reads (connections, verification)."""
    known = set(names)
    for play in playbook.plays:
        roles = roles_of(play)
        known |= {*play.vars, *(name for role in roles for name in (*options_of(role), *role.defaults, *role.vars))}
        _values({name: role for role in roles for name in options_of(role)}, _layers(play, inventory), found)
    told: set[Origin] = set()  # the hosts of one range share what is written
    for layer in inventory.every_layer():
        for name, at in [(name, at) for name, at in layer.origins.items() if at not in told and name not in known]:
            told.add(at)
            _near(name, at, known, found)


def _layers(play: Play, inventory: Inventory) -> Collection[Layer]:
    """What was written about the hosts of the play, each once: another group may mean something else by the same name."""
    try:
        hosts = [] if has_template(play.hosts) else select(inventory, play.hosts)
    except Mistakes:
        return []
    return {id(layer.values): layer for host in hosts for layer in inventory.layers(host, play.basedir)}.values()


def _values(declared: Mapping[str, Role], layers: Iterable[Layer], found: Collector) -> None:
    told: set[Origin] = set()
    for layer in layers:
        for name, at in layer.origins.items():
            if name in declared and at not in told:
                told.add(at)
                _value(declared[name], name, layer, found)


def _value(role: Role, name: str, layer: Layer, found: Collector) -> None:
    for problem in check_value(role, name, layer.values[name]):
        at = _place(layer.values[name], problem.param.removeprefix(name), layer.origins[name])
        found.error("E216", f"role '{role.name}': {problem.message}", at, label=f"see {role.name}/meta/argument_specs.yml")


def _near(name: str, at: Origin, known: Collection[str], found: Collector) -> None:
    near = get_close_matches(name, known, n=1, cutoff=NEAR) if len(name) >= SHORTEST else []
    if near:
        found.warning("E314", f"nothing here reads '{name}'", at, label="is this name right?", help=f"did you mean '{near[0]}'?")


def _place(value: Any, path: str, otherwise: Origin) -> Origin:
    """Where the part of ``value`` stands that a problem names: "[0].serail" in a list of mappings."""
    for step in _steps(path):
        if isinstance(value, Map) and step in value:
            value, otherwise = value[step], value.key_at[step]
        elif isinstance(value, Seq) and step.isdecimal() and int(step) < len(value):
            value, otherwise = value[int(step)], value.item_at[int(step)]
        else:
            break
    return otherwise


def _steps(path: str) -> Iterator[str]:
    yield from (step for step in path.replace("[", ".").replace("]", "").split(".") if step)
