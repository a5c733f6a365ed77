"""Gather facts about the node."""

from __future__ import annotations

import fnmatch
import functools
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Tuple

from nodectl.agent.contract import Args, Failed
from nodectl.agent.facts import hardware, local, netlink, network, platform, storage
from nodectl.agent.facts.bounded import bounded
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Gather facts about the node: system, hardware, network, virtualisation",
    params={
        "gather_subset": Param("list", default=["all"], help="all, min, hardware, network, virtual or single names; ! leaves one out"),
        "gather_timeout": Param("int", default=10, help="seconds for each collector; what takes longer is left out with a warning"),
        "filter": Param("list", default=[], help="only facts whose name fits one of these patterns"),
        "fact_path": Param("path", default="/etc/ansible/facts.d", help="folder of *.fact files"),
    },
    returns={"ansible_facts": "the facts"},
    example="- setup: {gather_subset: [min, network]}\n",
)


class _Collector(NamedTuple):
    group: str
    collect: Callable[[System], Dict[str, Any]]


COLLECTORS: Mapping[str, _Collector] = {
    "kernel": _Collector("min", lambda system: platform.kernel()),
    "hostname": _Collector("min", lambda system: platform.names()),
    "distribution": _Collector("min", lambda system: platform.distribution()),
    "pkg_mgr": _Collector("min", lambda system: platform.managers()),
    "user": _Collector("min", lambda system: platform.user(system.environment)),
    "date_time": _Collector("min", lambda system: platform.date_time()),
    "selinux": _Collector("min", lambda system: platform.guards()),
    "processor": _Collector("hardware", lambda system: hardware.processors()),
    "memory": _Collector("hardware", lambda system: hardware.memory()),
    "board": _Collector("hardware", lambda system: hardware.board()),
    "devices": _Collector("hardware", lambda system: {"ansible_devices": storage.devices()}),
    "mounts": _Collector("hardware", lambda system: {"ansible_mounts": storage.mounts(system.mounts(), storage.links())}),
    "interfaces": _Collector("network", lambda system: network.collect(netlink.addresses())),
    "virtualization": _Collector("virtual", lambda system: hardware.virtualization()),
}
# Ansible's names for what we gather in one piece.
_ALIASES: Mapping[str, str] = {
    "service_mgr": "pkg_mgr", "env": "user", "python": "kernel", "platform": "kernel", "system": "kernel", "cmdline": "kernel", "fips": "kernel",
    "apparmor": "selinux", "default_ipv4": "interfaces", "all_ipv4_addresses": "interfaces", "dns": "interfaces", "fqdn": "hostname", "nodename": "hostname",
    "os_family": "distribution", "processor_cores": "processor", "memtotal_mb": "memory", "dmi": "board",
}
_GROUPS = ("min", "hardware", "network", "virtual")
_LOCAL = "local"


def act(system: System, args: Args, check: bool) -> Outcome:
    wanted = chosen(args["gather_subset"])
    facts: Dict[str, Any] = {}
    warnings: List[str] = []
    for name, collector in COLLECTORS.items():
        if name in wanted:
            nothing: Dict[str, Any] = {}
            found, problem = bounded(name, functools.partial(collector.collect, system), nothing, args["gather_timeout"])
            facts.update(found)
            warnings += [problem] if problem else []
            system.stopper.check()
    if _LOCAL in wanted:
        facts["ansible_local"], problems = local.collect(system, args["fact_path"])
        warnings += problems
    facts["gather_subset"] = list(args["gather_subset"])
    facts["module_setup"] = True
    return Outcome(facts=_filtered(facts, args["filter"]), warnings=warnings)


def chosen(subset: List[Any]) -> FrozenSet[str]:
    """The collectors that Ansible's list means. Raises Failed for a word that means none.

    Only exclusions: from all. The minimum is always there but with !min. What is asked for by name outweighs !all and !min.
    """
    every = frozenset(COLLECTORS) | {_LOCAL}
    words = [str(word) for word in subset]
    asked = [word for word in words if not word.startswith("!")]
    added = _union(asked) if asked else every
    named = _union([word for word in asked if word not in ("all", "min")])
    single = _union([word for word in asked if word not in ("all", *_GROUPS)])
    gone = [word[1:] for word in words if word.startswith("!")]
    whole = _union([word for word in gone if word in _GROUPS]) | (every - _members("min") if "all" in gone else frozenset())
    one_by_one = _union([word for word in gone if word not in ("all", *_GROUPS)])
    return (added | _members("min")) - (whole - named) - (one_by_one - single)


def _union(words: List[str]) -> FrozenSet[str]:
    return frozenset().union(*(_members(word) for word in words))


def _members(word: str) -> FrozenSet[str]:
    if word == "all":
        return frozenset(COLLECTORS) | {_LOCAL}
    if word in _GROUPS:
        return frozenset(name for name, collector in COLLECTORS.items() if collector.group == word) | (frozenset([_LOCAL]) if word == "min" else frozenset())
    if word in COLLECTORS or word == _LOCAL:
        return frozenset([word])
    if word in _ALIASES:
        return frozenset([_ALIASES[word]])
    raise Failed(f"Bad subset '{word}' given; there are: all, {', '.join(_GROUPS)}, {', '.join(sorted({*COLLECTORS, *_ALIASES, _LOCAL}))}")


def _filtered(facts: Dict[str, Any], patterns: List[Any]) -> Dict[str, Any]:
    if not patterns or "*" in patterns:
        return facts
    names: Tuple[str, ...] = tuple(str(pattern) for pattern in patterns)
    return {key: value for key, value in facts.items() if any(_fits(key, name) for name in names)}


def _fits(key: str, pattern: str) -> bool:
    return fnmatch.fnmatch(key, pattern) or fnmatch.fnmatch(key, f"ansible_{pattern}")
