"""What the tables of checks want alike over the fleet: traits, packages, bridges with an address that others have too. Pure."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.node.traits import Trait

# Of a group that has something in common this many are named, and of differing packages: a reason is a sentence, also with 1,000 nodes.
NAMED = 6


def agreement(traits: Mapping[str, Mapping[str, Trait]]) -> list[Reading]:
    """One reading per name of a check, over the hosts that have it. ``traits`` by host and name."""
    names = list(dict.fromkeys(name for mine in traits.values() for name in mine))
    return [_agree(name, {host: mine[name] for host, mine in traits.items() if name in mine}) for name in names]


def _agree(name: str, values: Mapping[str, Trait]) -> Reading:
    first = next(iter(values.values()))
    if first.zero == "omit" and not any(trait.value or trait.doubt for trait in values.values()):
        return Reading()
    if len(values) < 2:
        return _alone(name, *next(iter(values.items())))
    if first.share:
        return _near(name, values)
    reading = Reading()
    (wanted, most), *_ = Counter(trait.value for trait in values.values()).most_common(1)
    majority = most * 2 > len(values)
    shown, expected = (first.unit, wanted) if majority else ("text", "the same on all nodes")
    listed = groups({host: trait.value for host, trait in values.items()})
    for host, trait in values.items():
        if trait.doubt and majority and trait.value == wanted:
            reading.join([_doubted(name, host, trait, "as most of the fleet has")])
            continue
        detail = "; ".join(part for part in (trait.detail, listed, trait.why) if part)
        value = trait.value if majority or isinstance(trait.value, str) else f"{trait.value:g}"
        measurement = Measurement(name, value, shown, (host,), trait.method, detail=detail, simulated=trait.simulated)
        reading.add(measurement, Expectation(name, "equals", expected, shown, "as most of the fleet has it", host, "this fleet"))
    return reading


def _alone(name: str, host: str, trait: Trait) -> Reading:
    """A single node has nothing to differ from; whether that is enough is the row's to say."""
    if trait.doubt:
        return _doubted(name, host, trait, "on this node")
    if trait.lone == "omit":
        return Reading()
    if trait.lone == "unknown":
        shown = f"{trait.value:g}" if isinstance(trait.value, float) else trait.value
        return unknown(name, (host,), trait.method, f"found {shown}, and there is nothing to hold it against: {trait.why}")
    reading = Reading()
    measurement = Measurement(name, trait.value, trait.unit, (host,), trait.method, simulated=trait.simulated)
    reading.add(measurement, Expectation(name, "equals", trait.value, trait.unit, "none is there, and none is expected", host, "hosts.yaml"))
    return reading


def _doubted(name: str, host: str, trait: Trait, where: str) -> Reading:
    """All may lack the same, and then they agree."""
    shown = f"{trait.value:g}" if isinstance(trait.value, float) else trait.value
    reason = f"{shown} {where}, and nothing says how many there must be, while these count for nothing: {trait.doubt}; {trait.why}"
    return unknown(name, (host,), trait.method, reason)


def _near(name: str, values: Mapping[str, Trait]) -> Reading:
    """At least a share of the median: figures of equal nodes differ a little."""
    reading = Reading()
    middle = statistics.median(float(trait.value) for trait in values.values())
    for host, trait in values.items():
        why = f"{trait.share:.0%} of the fleet's median; {trait.why}"
        measurement = Measurement(name, trait.value, trait.unit, (host,), trait.method, detail=trait.detail, simulated=trait.simulated)
        reading.add(measurement, Expectation(name, "at_least", trait.share * middle, trait.unit, why, host, "this fleet"))
    return reading


def groups(values: Mapping[str, float | str]) -> str:
    """Who has what: "6.1.0-40: n1, n2; 6.1.0-37: n3"; the largest group first."""
    having: dict[float | str, list[str]] = defaultdict(list)
    for host, value in values.items():
        having[value].append(host)
    parts = sorted(having.items(), key=lambda item: -len(item[1]))
    return "; ".join(f"{value:g}: {_some(hosts)}" if isinstance(value, float) else f"{value or 'none'}: {_some(hosts)}" for value, hosts in parts)


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def packages(found: Mapping[str, Mapping[str, str]]) -> Reading:
    """Each package that a job depends on in the version that most nodes have; where no version has a majority, all of its owners differ."""
    reading = Reading()
    if len(found) < 2:
        return reading
    versions: dict[str, dict[str, str]] = {}
    for name in sorted({name for mine in found.values() for name in mine}):
        versions[name] = {host: mine.get(name, "missing") for host, mine in found.items()}
    usual = {name: _usual(mine) for name, mine in versions.items()}
    for host in found:
        odd = [name for name, mine in versions.items() if mine[host] != usual[name]]
        detail = "; ".join(f"{name} {versions[name][host]} here ({groups(versions[name])})" for name in odd[:NAMED])
        more = f"; and {len(odd) - NAMED} more" if len(odd) > NAMED else ""
        measurement = Measurement("packages.same", float(len(odd)), "count", (host,), "package database", {"packages": len(usual)}, detail=detail + more)
        why = "versions as most of the fleet has them; a library of another version is another program there"
        reading.add(measurement, Expectation("packages.same", "at_most", 0.0, "count", why, host, "this fleet"))
    return reading


def _usual(versions: Mapping[str, str]) -> str | None:
    (wanted, most), *_ = Counter(versions.values()).most_common(1)
    return wanted if most * 2 > len(versions) else None


def bridges(found: Mapping[str, Mapping[str, Sequence[str]]], pinned: Mapping[str, str]) -> Reading:
    """virbr0 has the same address everywhere: a program that picks its interface by itself may pick that. ``pinned`` is NCCL_SOCKET_IFNAME by host.

    gloo is not asked: the handoff's environment names its interface on each node.
    """
    reading = Reading()
    owners: dict[str, list[str]] = defaultdict(list)
    for host, mine in found.items():
        for address in {address for addresses in mine.values() for address in addresses}:
            owners[address].append(host)
    for host, mine in found.items():
        shared = {name: address for name, addresses in mine.items() for address in addresses if len(owners[address]) > 1}
        if not shared:
            continue
        away = all(_avoids(pinned.get(host, ""), name) for name in shared)
        listed = "; ".join(f"{name} has {address}, as on {_some([other for other in owners[address] if other != host])}" for name, address in shared.items())
        detail = f"{listed}; NCCL_SOCKET_IFNAME is {pinned.get(host) or 'not set'}: name the fabric's interface in /etc/nccl.conf (role nccl), as =eth0"
        measurement = Measurement("network.bridges", away, "bool", (host,), "sysfs, /etc/nccl.conf, torch_env", shared, listed, detail=detail)
        reading.must_be_true(measurement, "NCCL and gloo are led past bridges whose address is that of other nodes' bridges too")
    return reading


def _avoids(setting: str, interface: str) -> bool:
    """NCCL's rules: a list of prefixes, "=" before it means whole names, "^" means all but those. By itself it leaves out only docker* and lo."""
    if not setting:
        return interface.startswith("docker")
    excludes, exact = setting.startswith("^"), setting.lstrip("^").startswith("=")
    names = [name.strip() for name in setting.lstrip("^=").split(",") if name.strip()]
    hit = any(interface == name if exact else interface.startswith(name) for name in names)
    return hit if excludes else not hit
