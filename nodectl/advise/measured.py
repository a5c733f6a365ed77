"""What a run measured, as networks and places of the model: of several nodes the slowest counts, and the fastest is the other end of the range. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodectl.advise.assumptions import assume
from nodectl.advise.figure import Figure
from nodectl.advise.network import Network, measured_latency, measured_rate, nvlink
from nodectl.advise.storage import Place
from nodectl.wire.event import Event

# A model is loaded, and a checkpoint written, through these phases of a mount; a scratch disk has fio's figures only.
_MOUNT = {"read": "phase.batch_read", "load": "phase.model_load", "write": "phase.checkpoint_write", "safe": "phase.checkpoint_durable"}
# The first also gives the latency, and the rate of what was not swept. Their bus bandwidths say the same of a node's adapters (network.py).
_SWEPT = ("all_reduce", "all_gather", "reduce_scatter")
_DISK = {"read": "disk.scratch.seq_read", "load": "disk.scratch.seq_read", "write": "disk.scratch.seq_write"}


@dataclass
class Measured:
    """``figures`` by name of the measurement: (value, conditions, host) of each node, of each time that it was measured; ``below`` are what the
    inventory asked of the network and did not get, in the words of the check; ``copies`` are file mounts of mode COPY
    with the mount that they lie on."""

    figures: dict[str, list[tuple[float, Mapping[str, Any], str]]] = field(default_factory=dict)
    sweeps: list[Mapping[str, Any]] = field(default_factory=list)
    out: set[str] = field(default_factory=set)
    below: set[str] = field(default_factory=set)
    copies: dict[str, str] = field(default_factory=dict)

    def of(self, name: str) -> list[tuple[float, Mapping[str, Any], str]]:
        return [one for one in self.figures.get(name, []) if one[2] not in self.out]

    def figure(self, name: str) -> Figure | None:
        """The slowest node's, with the fastest as the other end."""
        found = sorted(self.of(name), key=lambda one: one[0])
        if not found:
            return None
        slowest, fastest = found[0], found[-1]
        how = f"measured: {name} on {slowest[2]}" + (f", the slowest of {len(found)} nodes" if len(found) > 1 else "")
        return Figure(name, slowest[0], "B/s", how, "measured", (), slowest[0], fastest[0])


def read(events: Iterable[Event]) -> Measured:
    """Figures of nodes that failed are left out: no job will run there."""
    found = Measured()
    for event in events:
        if event.kind == "reading":
            for one in event.data.get("measurements") or []:
                _take(found, one)
            found.below.update(_asked(event.data.get("expectations") or []))
            found.copies.update(_copies(event.data.get("measurements") or []))
        elif event.kind == "sweep" and event.data.get("op") in _SWEPT and event.data.get("rows"):
            found.sweeps.append(event.data)
        elif event.kind == "verdict" and event.data.get("verdict") in ("fail", "unknown"):
            found.out.add(event.host)
    return found


def _asked(expectations: Iterable[Any]) -> Iterable[str]:
    """network_tier best where only TCP was found, as the check of that name says it: without the reasons, of which there is one per node."""
    for one in expectations:
        if isinstance(one, Mapping) and one.get("metric") == "network_tier" and str(one.get("why")).startswith("asked best, found tcp"):
            yield str(one["why"]).partition(":")[0]


def _copies(measurements: Iterable[Any]) -> Iterable[tuple[str, str]]:
    """(path, the mount below it) of file mounts that are copies on a disk."""
    for one in measurements:
        conditions = one.get("conditions") if isinstance(one, Mapping) else None
        if isinstance(conditions, Mapping) and conditions.get("mode") == "COPY" and one.get("value") is True:
            yield str(conditions.get("path")), str(conditions.get("target"))


def _take(found: Measured, one: Any) -> None:
    value = one.get("value") if isinstance(one, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0 or one.get("error") or one.get("unit") != "B/s":
        return
    conditions = one.get("conditions") if isinstance(one.get("conditions"), Mapping) else {}
    for host in one.get("hosts") or []:
        found.figures.setdefault(str(one.get("name")), []).append((float(value), conditions, str(host)))


def network(found: Measured, gpu: str) -> Network | None:
    """From the all-reduce over all nodes; None where none was measured. Latency from its smallest message."""
    inside = found.figure("node.all_reduce") or nvlink(gpu)
    sweep = _sweep(found.sweeps, "all_reduce")
    if sweep is not None:
        return replace(sweep_network(sweep, inside), operations=_operations(found))
    busbw = found.figure("network.all_reduce") or found.figure("network.pairs")
    if busbw is None:
        return None
    hosts = len(found.of(busbw.name)) if busbw.name == "network.all_reduce" else 2
    nodes, ranks = _size(found.of(busbw.name)[0][1], max(2, hosts))
    node = measured_rate("measured: what the adapters of a node carried", busbw, ranks, nodes)
    return Network("measured", node, inside, assume("tcp_latency" if node.value < 5e9 else "rdma_latency"))


def _size(conditions: Mapping[str, Any], hosts: int) -> tuple[int, int]:
    """(nodes, ranks) that took part, as far as the conditions tell."""
    nodes, ranks = conditions.get("nodes"), conditions.get("ranks")
    counted = nodes if isinstance(nodes, int) and nodes > 1 else hosts
    return counted, ranks if isinstance(ranks, int) and ranks >= counted else counted


def _operations(found: Measured) -> tuple[tuple[str, Figure], ...]:
    """Rates of what was swept beside the all-reduce."""
    swept = ((op, _sweep(found.sweeps, op)) for op in _SWEPT[1:])
    return tuple((op, _swept_rate(op, sweep)) for op, sweep in swept if sweep is not None)


def _sweep(sweeps: Sequence[Mapping[str, Any]], op: str) -> Mapping[str, Any] | None:
    """Of several (other types, fewer sizes) the one over most nodes, of these with the largest message, of these the fastest.

    A sweep inside one node says nothing about the network.
    """
    over = [one for one in sweeps if one.get("op") == op and len(one.get("hosts") or []) > 1 and _rows(one)]
    return max(over, key=lambda one: (len(one["hosts"]), float(_rows(one)[-1]["bytes"]), float(_rows(one)[-1]["busbw"])), default=None)


def _rows(sweep: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """By size. Out of place where that was measured, as frameworks gather and scatter."""
    known = [row for row in sweep.get("rows") or [] if isinstance(row, Mapping) and all(_positive(row.get(key)) for key in ("bytes", "busbw", "time"))]
    apart = [row for row in known if not row.get("in_place")]
    return sorted(apart or known, key=lambda row: float(row["bytes"]))


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def sweep_network(sweep: Mapping[str, Any], inside: Figure) -> Network:
    """The largest message gives the rate, the smallest the latency."""
    small, nodes = _rows(sweep)[0], len(sweep["hosts"])
    how = f"measured: all_reduce of {small['bytes']} bytes over {nodes} nodes"
    took = Figure("time of the smallest message", float(small["time"]), "s", how, "measured")
    return Network("measured", _swept_rate("all_reduce", sweep), inside, measured_latency(took, 2 * (int(sweep.get("ranks") or nodes) - 1)))


def _swept_rate(op: str, sweep: Mapping[str, Any]) -> Figure:
    rows, nodes = _rows(sweep), len(sweep["hosts"])
    value, best = float(rows[-1]["busbw"]), max(float(row["busbw"]) for row in rows)
    busbw = Figure(f"bus bandwidth of {op}", value, "B/s", f"measured: {op} of {rows[-1]['bytes']} bytes over {nodes} nodes", "measured", (), value, best)
    return measured_rate(f"measured: what the adapters of a node carried ({op})", busbw, int(sweep.get("ranks") or nodes), nodes)


def places(found: Measured) -> list[Place]:
    """Scratch disks and file mounts with all of their phases; a mount of which one is missing is left out."""
    names = sorted({name.partition(":")[2] for name in found.figures if name.startswith(_MOUNT["load"])})
    mounts = [_place(found, path, {key: f"{name}:{path}" for key, name in _MOUNT.items()}) for path in names]
    scratch = sorted({name.removeprefix(_DISK["write"]) for name in found.figures if name.startswith(_DISK["write"])})
    disks = [_place(found, suffix.removeprefix(":") or "scratch disk", {key: name + suffix for key, name in _DISK.items()}) for suffix in scratch]
    known = [place for place in [*mounts, *disks] if place is not None]
    return [*_copied(found, known), *known]


def _copied(found: Measured, known: Sequence[Place]) -> list[Place]:
    """A copy on a scratch disk is read as that disk is. It comes first: of two that are as fast, the one where the files already are."""
    below = {_path(found, place.name): place for place in known if not place.durable}
    copies = ((path, target) for path, target in sorted(found.copies.items()) if target in below)
    return [replace(below[target], name=f"{path} (a copy on {target})", capacity=None, reads_only=True) for path, target in copies]


def _path(found: Measured, name: str) -> str:
    """Where a scratch disk is mounted."""
    figures = found.of(_DISK["write"] if name == "scratch disk" else f"{_DISK['write']}:{name}")
    return str(figures[0][1].get("path", name)) if figures else name


def _place(found: Measured, name: str, keys: Mapping[str, str]) -> Place | None:
    figures = {key: found.figure(measurement) for key, measurement in keys.items()}
    read, load, write = figures["read"], figures["load"], figures["write"]
    if read is None or load is None or write is None:
        return None
    safe = figures.get("safe")
    room, cache = _least(found, keys["write"], "free_bytes", "free there"), _least(found, keys["write"], "cache_bytes", "cache of a node")
    return Place(name, read, load, write, safe is not None, safe, _files(found, keys["read"]), room, cache)


def _least(found: Measured, name: str, key: str, what: str) -> Figure | None:
    """Of several nodes the one with the least."""
    rates = [(float(conditions[key]), host) for _, conditions, host in found.of(name) if _positive(conditions.get(key))]
    if not rates:
        return None
    least, host = min(rates)
    return Figure(f"{what}, {name}", least, "B", f"measured: {key} of {name} on {host}", "measured")


def _files(found: Measured, name: str) -> Figure | None:
    """Samples a second, where each was a file of its own."""
    rates = [float(conditions["files_per_second"]) for _, conditions, _ in found.of(name) if _positive(conditions.get("files_per_second"))]
    if not rates:
        return None
    return Figure(f"files per second, {name}", min(rates), "1/s", f"measured: {name}, one small file after the other", "measured", (), min(rates), max(rates))
