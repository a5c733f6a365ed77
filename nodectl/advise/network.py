"""How long a collective takes on a network, by what has to cross which link. Pure.

A group of n ranks on k nodes with g ranks on each. What the node's adapters carry, and what each GPU's NVLink carries, per operation of
S bytes (S as nccl-tests counts it; a hierarchical ring or tree, so that each byte enters a node once):

    all_gather, reduce_scatter   adapters S (k-1)/k    NVLink S (n-1)/n
    all_reduce                   adapters 2 S (k-1)/k  NVLink 2 S (n-1)/n
    alltoall                     adapters g S (n-g)/n  NVLink S (g-1)/n
    sendrecv                     adapters S            NVLink S where both are on one node

Both links work at the same time: the slower one counts, and the latency of each hop comes on top.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nodectl.advise.assumptions import GPUS, assume
from nodectl.advise.figure import Figure, derive, over, times
from nodectl.advise.layout import Group


@dataclass(frozen=True)
class Network:
    """``node`` is what all adapters of a node carry one way, ``gpu`` what a GPU's NVLink does (B/s, as reached); latencies in s per hop.

    ``operations`` are rates of a node for operations that were measured on their own: a library may do one of them by a detour.
    """

    name: str
    node: Figure
    gpu: Figure
    latency: Figure
    gpu_latency: Figure = field(default_factory=lambda: assume("nvlink_latency"))
    operations: tuple[tuple[str, Figure], ...] = ()

    def rate(self, op: str) -> Figure:
        return dict(self.operations).get(op, self.node)


@dataclass(frozen=True)
class Transfer:
    """``size`` bytes of ``op`` in ``group``, ``count`` times a step. ``why`` says what is sent."""

    op: str
    group: Group
    size: Figure
    count: int
    why: str


def nominal(name: str, rate: float, fabric: str, gpu: str) -> Network:
    """A network by its data sheet. ``rate`` in B/s for all adapters of a node; ``fabric`` is tcp or rdma."""
    raw = Figure("line rate of a node's adapters", rate, "B/s", f"data sheet: {name}", "assumed")
    node = times(f"node's adapters ({name})", raw, assume(f"{fabric}_efficiency"))
    return Network(name, node, nvlink(gpu), assume(f"{fabric}_latency"))


def nvlink(gpu: str) -> Figure:
    raw = Figure("one-way NVLink rate of a GPU", GPUS[gpu][0], "B/s", f"data sheet: {gpu}", "assumed")
    return times(f"NVLink of a GPU ({gpu})", raw, assume("nvlink_efficiency"))


def shares(op: str, group: Group) -> tuple[float, float, int, int]:
    """(bytes through a node's adapters, bytes through a GPU's NVLink: each for one byte of S; hops between nodes, hops inside)."""
    n, k, g = group.ranks, group.nodes, group.inside
    if op == "alltoall":
        return g * (n - g) / n, (g - 1) / n, k - 1, g - 1
    if op == "sendrecv":
        return (1.0, 0.0, 1, 0) if k > 1 else (0.0, 1.0, 0, 1)
    twice = 2 if op == "all_reduce" else 1
    return twice * (k - 1) / k, twice * (n - 1) / n if g > 1 else 0.0, twice * (k - 1), twice * (g - 1)


def seconds(transfer: Transfer, network: Network) -> Figure:
    """Time of all operations of ``transfer`` in a step. 0 for a group of one."""
    group = transfer.group
    if group.ranks < 2:
        return Figure(f"{transfer.op} for {transfer.why}", 0.0, "s", "nobody to talk to", "workload")
    outside, inside, hops, short = shares(transfer.op, group)
    outside *= group.beside
    how = (
        f"{transfer.count} * (max({outside:.4g} * S / node's adapters, {inside:.4g} * S / NVLink) + {hops} hops * latency + {short} * NVLink's), "
        f"S = {transfer.size.name}; "
        f"{group.ranks} ranks on {group.nodes} nodes, {group.beside} groups beside each other"
    )

    def work(size: float, latency: float, gpu_latency: float, node: float, gpu: float) -> float:
        return transfer.count * (max(outside * size / node, inside * size / gpu) + hops * latency + short * gpu_latency)

    rising, falling = [transfer.size, network.latency, network.gpu_latency], [network.rate(transfer.op), network.gpu]
    return derive(f"{transfer.op} for {transfer.why}", "s", how, work, rising, falling)


def measured_rate(name: str, busbw: Figure, ranks: int, nodes: int) -> Figure:
    """What the adapters of a node carried, from nccl-tests' bus bandwidth of an all-reduce, all-gather or reduce-scatter: busbw * g (k-1) / (n-1)."""
    inside = ranks // nodes
    share = Figure("share of the bus bandwidth", inside * (nodes - 1) / (ranks - 1), "1", f"{inside} * ({nodes} - 1) / ({ranks} - 1)", "workload")
    return times(name, busbw, share)


def measured_latency(shortest: Figure, hops: int) -> Figure:
    """Seconds of one hop, from the time of the smallest message: 2 (n-1) hops of a ring."""
    return over("latency of a hop", shortest, Figure("hops of the ring", float(hops), "count", "2 * (ranks - 1)", "workload"))
