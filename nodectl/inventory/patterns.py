"""Host patterns: which hosts a play, a --limit or a command line means."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from fnmatch import translate

from nodectl.diagnostics.model import Collector, Diagnostic, Mistakes
from nodectl.inventory.model import LOCALHOST, Inventory
from nodectl.inventory.ranges import BadRange, expand, has_range
from nodectl.lang.playbook import Playbook, grows
from nodectl.lang.unsafe import has_template

_INDEX = re.compile(r"^(.+)\[(?:(-?\d+)|(\d+)([:-])(\d*))\]$")
# A colon parts patterns except inside brackets (`n[1:3]`) and inside an IPv6 address.
_COLON = re.compile(r":(?![^\[]*\])")
_IPV6 = re.compile(r"^[!&]?\[?[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}\]?$")


def split(pattern: str) -> list[str]:
    """The parts of a pattern: at commas if there are any, else at colons outside brackets."""
    if "," in pattern:
        parts = pattern.split(",")
    elif _IPV6.match(pattern):
        parts = [pattern]
    else:
        parts = _COLON.split(pattern)
    return [part.strip() for part in parts if part.strip()]


def select(inventory: Inventory, pattern: str, limit: str | None = None) -> list[str]:
    """The hosts of ``pattern`` that are also in ``limit``, in inventory order.

    Raises Mistakes when a part of either names nothing (with close names). A group that is empty, or a limit that
    leaves nothing of this pattern, gives an empty list.
    """
    chosen = _resolve(inventory, pattern)
    if not limit:
        return chosen
    allowed = set(_resolve(inventory, limit))
    return [host for host in chosen if host in allowed]


def check_hosts(playbook: Playbook, inventory: Inventory, found: Collector) -> None:
    """A diagnostic for each play whose `hosts:` names what the inventory does not have. Templates, and what earlier plays may add, are left to the run."""
    for number, play in enumerate(playbook.plays):
        if not play.hosts or has_template(play.hosts) or grows(playbook.plays[:number]):
            continue
        try:
            select(inventory, play.hosts)
        except Mistakes as mistakes:
            for one in mistakes.diagnostics:
                found.error(one.code, one.message, play.hosts_origin, label=one.label, help=one.help)


def _resolve(inventory: Inventory, pattern: str) -> list[str]:
    parts = split(pattern)
    plain = [part for part in parts if part[0] not in "&!"] or ["all"]
    wrong: list[Diagnostic] = []

    def hosts_of(part: str) -> list[str]:
        hosts = _part(inventory, part)
        if hosts is None:
            wrong.append(_nothing(inventory, part))
        return hosts or []

    chosen = [host for part in plain for host in hosts_of(part)]
    for part in parts:
        if part[0] == "&":
            both = set(hosts_of(part[1:]))
            chosen = [host for host in chosen if host in both]
        elif part[0] == "!":
            without = set(hosts_of(part[1:]))
            chosen = [host for host in chosen if host not in without]
    if wrong or not parts:
        raise Mistakes(wrong or [Diagnostic("E305", "an empty host pattern", help="write a group, a host, or `all`")])
    return _in_order(inventory, chosen)


def _in_order(inventory: Inventory, chosen: list[str]) -> list[str]:
    wanted = set(chosen)
    implicit = [LOCALHOST] if LOCALHOST in wanted and LOCALHOST not in inventory.hosts else []
    return [host for host in inventory.hosts if host in wanted] + implicit


def _part(inventory: Inventory, part: str) -> list[str] | None:
    """The hosts of one part without `&` and `!`; None when nothing of that name exists."""
    if part.startswith("~"):
        return _matching(inventory, _regex(part[1:]))
    if part in inventory.groups or part in inventory.hosts:
        return _named(inventory, part)
    if part == LOCALHOST:
        return [LOCALHOST]
    index = _INDEX.match(part)
    if index:
        hosts = _part(inventory, index.group(1))
        if hosts is not None or index.group(2) is not None:
            return _indexed(hosts, index)
    if has_range(part) and ":" in part:
        return _ranged(inventory, part)
    if any(mark in part for mark in "*?["):
        return _matching(inventory, re.compile(translate(part)).match)
    return None


def _named(inventory: Inventory, name: str) -> list[str]:
    members = inventory.group_members(name) if name in inventory.groups else []
    return members + ([name] if name in inventory.hosts and name not in members else [])


def _regex(text: str) -> Callable[[str], object]:
    try:
        return re.compile(text).match
    except re.error as error:
        raise Mistakes([Diagnostic("E305", f"'~{text}' is not a regular expression: {error}", help="after ~ stands a regular expression of Python")]) from None


def _matching(inventory: Inventory, matches: Callable[[str], object]) -> list[str] | None:
    groups = [name for name in inventory.groups if matches(name)]
    hosts = [name for name in inventory.hosts if matches(name)]
    if not groups and not hosts:
        return None
    return hosts + [host for group in groups for host in inventory.group_members(group)]


def _indexed(hosts: list[str] | None, index: re.Match[str]) -> list[str] | None:
    """`group[0]`, `group[-1]`, `group[1:3]` (both ends taken, as Ansible does), `group[2:]`."""
    _, single, start, _, end = index.groups()
    if hosts is None:
        return None
    if single is not None:
        place = int(single)
        return [hosts[place]] if -len(hosts) <= place < len(hosts) else None
    return hosts[int(start) : int(end) + 1 if end else None] or None


def _ranged(inventory: Inventory, part: str) -> list[str] | None:
    """`node[01:03]` as an inventory would expand it; each name must exist."""
    try:
        names = expand(part)
    except BadRange as wrong:
        raise Mistakes([Diagnostic("E303", f"host pattern '{part}': {wrong}", help="write for example gpu-[01:16]")]) from None
    missing = [name for name in names if name not in inventory.hosts and name not in inventory.groups]
    if missing and len(missing) < len(names):
        there = f"{len(names) - len(missing)} of {len(names)} names exist"
        raise Mistakes([Diagnostic("E304", f"host pattern '{part}': no host '{missing[0]}'", label=there, help=f"{there}: correct the range")])
    return None if missing else [host for name in names for host in _named(inventory, name)]


def _nothing(inventory: Inventory, part: str) -> Diagnostic:
    names = [*inventory.groups, *inventory.hosts]
    near = get_close_matches(part, names, n=3)
    groups = [name for name in inventory.groups if name not in ("all", "ungrouped")]
    shown = ", ".join(groups[:8]) + (", …" if len(groups) > 8 else "")
    advice = f"did you mean {' or '.join(map(repr, near))}?" if near else f"groups of this inventory: {shown or 'none'}; it has {len(inventory.hosts)} hosts"
    return Diagnostic("E304", f"no group or host '{part}' in the inventory", label="not in the inventory", help=advice)
