"""RDMA between nodes: which rails a node has, which GID each end uses, and from pair figures to measurements with their bars. Pure.

A rail is the n-th usable port of a node, in natural order of the devices: rail 3 of all nodes hangs on the same switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodectl.verify.group.hunt import Diagnosis
from nodectl.verify.group.isolate import FLOOR, Finding
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading
from nodectl.verify.judging.units import quantity

WRITE_BW, WRITE_LAT = "ib_write_bw", "ib_write_lat"
ROCE_2, ETHERNET, EFA = "RoCE v2", "Ethernet", "efa"
# Of the port's rate, a write of large messages reaches 95 to 96 % between healthy nodes; the lowest that anybody demands is this.
PORT_SHARE = 0.9
SHARE_SOURCE = "azurehpc-health-checks conf (A100: 180 of 200 Gb/s; H100: 380 of 400 Gb/s), oci-hpc multi_node_active_healthcheck.py (384 of 400), 2026-11"
# One way, 2 bytes, through a leaf and a spine switch: the limit that OCI's active health check holds nodes against.
LATENCY, LATENCY_GRACE = 5e-6, 9e-6
LATENCY_SOURCE = "oci-hpc multi_node_active_healthcheck.py (5 us; 9 us for GB200 and GB300), 2026-11"
SLOW_HOSTS = ("GB200", "GB300")


@dataclass(frozen=True)
class Rail:
    """One port of one node. ``gid_index`` -1: none is given. ``rate`` in B/s; ``hardware`` False where software plays the device (rxe, siw).

    ``problem`` says why it cannot be measured."""

    name: str
    device: str
    port: int
    gid_index: int = -1
    gid: str = ""
    rate: float = 0.0
    hardware: bool = True
    connection: str = "RC"
    problem: str = ""


def rails_of(values: Mapping[str, Any], pinned: Any = None) -> list[Rail]:
    """The rails of a node, from what probe_hca said. ``pinned`` is the site's own GID index, which replaces the rule."""
    listed = values.get("ports")
    ports = [port for port in listed if isinstance(port, Mapping)] if isinstance(listed, list) else []
    usable = [port for port in ports if port.get("usable") is True and port.get("state") == "ACTIVE"]
    return [_rail(f"rail{number}", port, pinned) for number, port in enumerate(usable)]


def _rail(name: str, port: Mapping[str, Any], pinned: Any) -> Rail:
    driver = str(port.get("driver") or "")
    index, gid, problem = gid_of(port, pinned)
    rate = port.get("rate")
    return Rail(
        name, str(port.get("device")), int(port.get("port") or 1), index, gid, float(rate) * 1e9 / 8 if isinstance(rate, (int, float)) else 0.0,
        bool(driver), "SRD" if driver == EFA else "RC", problem,
    )


def gid_of(port: Mapping[str, Any], pinned: Any = None) -> tuple[int, str, str]:
    """(index, GID, what is wrong). InfiniBand needs none; EFA has one. On Ethernet: the first RoCE v2 GID that is an address of the port's
    interface, an IPv4 one before IPv6: what a number finds differs between nodes, and changes when an address is added."""
    gids = {gid["index"]: gid for gid in port.get("gids") or [] if isinstance(gid, Mapping) and isinstance(gid.get("index"), int)}
    if pinned not in (None, ""):
        index = int(quantity(pinned, "count"))
        return index, str(gids.get(index, {}).get("gid", "")), ""
    if port.get("link_layer") != ETHERNET or port.get("driver") == EFA:
        return (0, "", "") if port.get("driver") == EFA else (-1, "", "")
    matching = [index for index in port.get("matching") or [] if index in gids]
    mapped = [index for index in matching if "." in str(gids[index].get("address"))]
    if not matching:
        netdev = port.get("netdev") or "its interface"
        return -1, "", f"{port.get('device')} has no RoCE v2 GID that is an address of {netdev}: its GIDs are {_shown(gids.values())}"
    index = min(mapped or matching)
    return index, str(gids[index].get("gid")), ""


def _shown(gids: Any) -> str:
    return ", ".join(f"{gid.get('index')}: {gid.get('gid')} ({gid.get('type')})" for gid in list(gids)[:4]) or "none"


@dataclass(frozen=True)
class Site:
    """What hosts.yaml says: least bandwidth (B/s) and largest latency (s), None where nothing."""

    floor: float | None = None
    latency: float | None = None


def site_of(variables: Mapping[str, Any]) -> Site:
    """Raises UnitError."""
    given = (variables.get("rdma_floor"), variables.get("rdma_latency"))
    floor, latency = (None if value in (None, "") else quantity(value, unit) for value, unit in zip(given, ("B/s", "s"), strict=True))
    return Site(floor, latency)


def floor_of(rails: Sequence[Rail], site: Site) -> float | None:
    """The absolute bar (B/s) of a host's pairs: its own, or its slowest port's rate."""
    bars = [PORT_SHARE * rail.rate for rail in rails if rail.hardware and rail.rate]
    return max([*([min(bars)] if bars else []), *([site.floor] if site.floor is not None else [])], default=None)


@dataclass(frozen=True)
class Measured:
    """What is the same for all rails of a run. ``latencies``: of each host and rail, the best pair (s)."""

    size: int
    queue_pairs: int
    version: str
    sku: str
    latencies: Mapping[tuple[str, str], float]
    errors: Mapping[tuple[str, str], str]


def rail_reading(host: str, rail: Rail, diagnosis: Diagnosis, site: Site, measured: Measured) -> Reading:
    """Bandwidth and latency of one rail of one node."""
    name = f"rdma.write_bw.{rail.name}"
    finding = diagnosis.rails.get(rail.name, {}).get(host)
    conditions = {"device": rail.device, "port": rail.port, "gid_index": rail.gid_index, "gid": rail.gid, "rate": rail.rate, "sku": measured.sku,
                  "bytes": measured.size, "queue_pairs": measured.queue_pairs}  # fmt: skip
    method = f"{WRITE_BW} {measured.version}".strip()
    value, error = (None, rail.problem) if rail.problem else _figure(finding, measured.errors.get((host, rail.name), ""))
    detail = finding.detail if finding else ""
    reading = Reading()
    reading.add(Measurement(name, value, "B/s", (host,), method, conditions, error=error, simulated=not rail.hardware, detail=detail))
    reading.expectations += _bandwidth_bars(name, host, rail, finding, site)
    latency = measured.latencies.get((host, rail.name))
    bars = _latency_bars(f"rdma.write_lat.{rail.name}", host, rail, site, measured.sku)
    # Software has no latency to speak of: without a bar of the site it would only be unknown.
    if latency is not None and bars:
        way = f"{WRITE_LAT} {measured.version}".strip()
        reading.add(Measurement(f"rdma.write_lat.{rail.name}", latency, "s", (host,), way, {**conditions, "bytes": 2}, simulated=not rail.hardware), *bars)
    return reading


def _figure(finding: Finding | None, error: str) -> tuple[float | None, str]:
    if finding is None:
        return None, error or "no pair with it could be measured: it has no partner with that rail, or its partners were lost"
    if finding.figure is not None:
        return finding.figure, ""
    # It gave no figure with anybody, while others do well: that is its own fault, and no lack of knowledge.
    return (0.0, "") if finding.blame in ("node", "group") else (None, error or finding.detail)


def _bandwidth_bars(name: str, host: str, rail: Rail, finding: Finding | None, site: Site) -> list[Expectation]:
    bars = []
    if rail.hardware and rail.rate:
        why = f"{PORT_SHARE:.0%} of the port's rate, {rail.rate * 8 / 1e9:g} Gb/s"
        bars.append(Expectation(name, "at_least", PORT_SHARE * rail.rate, "B/s", why, host, SHARE_SOURCE))
    if site.floor is not None:
        bars.append(Expectation(name, "at_least", site.floor, "B/s", "rdma_floor of the inventory", host, "hosts.yaml"))
    if finding and finding.expected is not None and finding.basis not in ("", FLOOR):
        # Of hardware whose rate is not known, being like the others proves nothing; software that plays a device has no rate to reach.
        bars.append(Expectation(name, "at_least", finding.expected, "B/s", finding.basis, host, "this fleet", alone=not rail.hardware))
    return bars


def _latency_bars(name: str, host: str, rail: Rail, site: Site, sku: str) -> list[Expectation]:
    if site.latency is not None:
        return [Expectation(name, "at_most", site.latency, "s", "rdma_latency of the inventory", host, "hosts.yaml")]
    if not rail.hardware or rail.connection != "RC":
        return []
    limit = LATENCY_GRACE if sku in SLOW_HOSTS else LATENCY
    return [Expectation(name, "at_most", limit, "s", "one way, 2 bytes, between nodes of one fabric", host, LATENCY_SOURCE)]
