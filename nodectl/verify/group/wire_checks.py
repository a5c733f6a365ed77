"""Which wires really carried a group's bytes? NCCL falls back to sockets, or to copies through host memory, without an error. Pure.

Two witnesses that do not know of each other: NCCL's own log, and the counters of adapters and interfaces before and after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodectl.verify.answer import Answer
from nodectl.verify.group.gang import GangResult, Member
from nodectl.verify.group.network_checks import NETWORKS, Fleet
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading
from nodectl.verify.judging.units import human
from nodectl.verify.parse.nccl_log import NcclLog, nccl_log

# Of the bytes that a ring has to send. A tree's leaves, and switches that reduce on their way (SHARP), need half of a ring's.
LEAST_MOVED = 0.4
LOG = "NCCL_DEBUG=INFO"


@dataclass(frozen=True)
class Wires:
    """What a node has: usable HCAs, and whether its kernel lets adapters read GPU memory. ``error``: why neither is known."""

    hcas: frozenset[str] = frozenset()
    gpudirect: bool = False
    error: str = ""


@dataclass(frozen=True)
class Traffic:
    """Bytes sent so far, by HCA and by interface. None: this device counts nothing."""

    hcas: Mapping[str, int | None] = field(default_factory=dict)
    interfaces: Mapping[str, int | None] = field(default_factory=dict)


def traffic_of(values: Mapping[str, Any]) -> Traffic:
    """What probe_traffic said. Raises Garbled."""
    said = Answer("probe_traffic", values)
    hcas: dict[str, int | None] = {}
    for port in said.parts("ports"):
        name, sent = Answer("probe_traffic, ports", port).text("device"), _count(port.get("sent"))
        before = hcas.get(name, 0)
        hcas[name] = None if sent is None or before is None else before + sent
    interfaces = {Answer("probe_traffic, interfaces", one).text("name"): _count(one.get("sent")) for one in said.parts("interfaces")}
    return Traffic(hcas, interfaces)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def between(before: Traffic, after: Traffic) -> Traffic:
    """What was sent between two readings; None where either is missing, or the counter ran backwards (the device was reset)."""
    return Traffic(_delta(before.hcas, after.hcas), _delta(before.interfaces, after.interfaces))


def _delta(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name, late in after.items():
        early = before.get(name)
        found[name] = None if early is None or late is None or late < early else late - early
    return found


# -- NCCL's log


def log_reading(members: Sequence[Member], result: GangResult, fleet: Fleet, wires: Mapping[str, Wires]) -> Reading:
    """Set of HCAs and GPUDirect of each node, as its ranks say them. Nothing where the fabric is TCP or gloo ran."""
    wanted = NETWORKS.get(fleet.fabric)
    reading = Reading()
    if members[0].backend != "nccl" or wanted is None:
        return reading
    for member in members:
        log, mine = nccl_log(result.logs.get(member.host, "")), wires.get(member.host, Wires(error="the node was not asked"))
        reading.join([_hcas(member, log, mine, wanted)])
        if len(members) > 1:
            reading.join([_direct(member, log, mine)])
    return reading


def _hcas(member: Member, log: NcclLog, wires: Wires, wanted: str) -> Reading:
    """The devices that NCCL opened are those of the fabric: none missing, none of storage or management. A site that names them itself is believed."""
    reading = Reading()
    if wanted != "IB" or "NCCL_IB_HCA" in member.env:
        return reading
    missing, extra = sorted(wires.hcas - log.hcas), sorted(log.hcas - wires.hcas)
    parts = ([f"{', '.join(missing)} is not used"] if missing else []) + ([f"{', '.join(extra)} is no device of the fabric"] if extra else [])
    error = wires.error or ("" if log.hcas or "IB" in log.absent else "NCCL's log does not name its HCAs")
    measured = Measurement("network.hcas_used", ",".join(sorted(log.hcas)), "text", (member.host,), _method(log), error=error, detail="; ".join(parts))
    reading.add(measured, Expectation("network.hcas_used", "equals", ",".join(sorted(wires.hcas)), "text", "the usable HCAs of this node", member.host))
    return reading


def _direct(member: Member, log: NcclLog, wires: Wires) -> Reading:
    """Every connection to another node hands GPU memory to the adapter. Only asked where the kernel can: whether it should is another check."""
    reading = Reading()
    if not wires.gpudirect and not wires.error:
        return reading
    off = sorted(name for name, on in log.gdr.items() if not on)
    said = f"; GPU Direct RDMA is disabled for {', '.join(off)}" if off else ""
    error = wires.error or ("" if log.links else "NCCL's log shows no connection to another node")
    detail = f"{log.staged} of {sum(log.links.values())} connections copy through host memory{said}"
    measured = Measurement("network.gpudirect", log.staged == 0, "bool", (member.host,), _method(log), _links(log), error=error, detail=detail)
    reading.must_be_true(measured, "nvidia_peermem or DMA-BUF is there, so adapters can read GPU memory")
    return reading


def _method(log: NcclLog) -> str:
    return f"{LOG}, NCCL {log.version}" if log.version else LOG


def _links(log: NcclLog) -> dict[str, Any]:
    return {"connections": dict(log.links), "direct": log.direct}


# -- counters


def traffic_reading(members: Sequence[Member], result: GangResult, fleet: Fleet, sent: Mapping[str, Traffic]) -> Reading:
    """The share of what each node had to send that its fabric really carried: HCAs where NCCL uses them, else the interface that was chosen."""
    reading = Reading()
    if len(members) < 2:
        return reading
    moved = _moved(members, result)
    for member in members:
        expected = moved.get(member.host, 0)
        by_hca = member.backend == "nccl" and fleet.fabric in NETWORKS
        counted = _carried(sent.get(member.host), by_hca, member.interface)
        where = "the node's HCAs" if by_hca else member.interface
        error = "" if counted is not None else f"{where} count no bytes" if member.host in sent else "the counters could not be read"
        if not error and expected <= 0:
            error = "the ranks did not say how much they had to send"
        value = counted / expected if counted is not None and expected > 0 else None
        about = {"expected_bytes": expected, "bytes": counted}
        detail = f"{where} sent {human(counted or 0, 'B')} of {human(expected, 'B')}: the rest went another way"
        measured = Measurement(
            "network.traffic", value, "count", (member.host,), "probe_traffic before and after", about, _shown(sent, member.host), error=error,
            simulated=fleet.simulated, detail=detail,
        )  # fmt: skip
        why = f"of what a ring sends; {where} must have carried it"
        reading.add(measured, Expectation("network.traffic", "at_least", LEAST_MOVED, "count", why, member.host))
    return reading


def _moved(members: Sequence[Member], result: GangResult) -> dict[str, int]:
    found: dict[str, int] = {}
    first = 0
    for member in members:
        if first in result.output.moved:
            found[member.host] = result.output.moved[first]
        first += member.nproc
    return found


def _carried(sent: Traffic | None, by_hca: bool, interface: str) -> int | None:
    """Bytes of the fabric's devices together; None where none of them counts."""
    if sent is None:
        return None
    if not by_hca:
        return sent.interfaces.get(interface)
    counts = [count for count in sent.hcas.values() if count is not None]
    return sum(counts) if counts else None


def _shown(sent: Mapping[str, Traffic], host: str) -> str:
    if host not in sent:
        return ""
    parts = [*sent[host].hcas.items(), *sent[host].interfaces.items()]
    return ", ".join(f"{name} {human(count, 'B') if count is not None else 'counts nothing'}" for name, count in parts)
