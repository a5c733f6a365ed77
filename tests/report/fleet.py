"""Runs of fleets that nobody has: the events of a verification of N nodes, made up, the same for the same arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from nodectl.wire.event import Event

START = 1_795_000_000.0
LINK = 48e9  # B/s, a 400 Gb/s rail
RATES = (
    "disk.scratch.seq_read", "disk.scratch.seq_write", "disk.scratch.rand_read", "phase.batch_read:/data", "phase.model_load:/data", "phase.checkpoint_write:/ckpt",
    "mount.seq_read:/data", "mount.seq_write:/ckpt",
)
FACTS = ("login.fresh", "gpu.count", "gpu.driver", "gpu.ecc", "gpu.nvlink", "hca.state", "hca.rate", "network.route", "network.mtu", "fabric.kind", "limits.memlock")


def names(count: int) -> list[str]:
    """Sixteen to a rack."""
    return [f"gpu-{number:04}.rack{number // 16 + 1}" for number in range(count)]


def fleet(count: int, checks: int = 30, bad: int = 2, seed: int = 1, raw: int = 300, rounds: int | None = None, **hosts: str) -> list[Event]:
    """The events. ``bad`` nodes are slow on network and disk; ``raw`` are characters of output per check; ``rounds`` of pairs, None for all."""
    rng = random.Random(seed)
    nodes = [hosts.get(name, name) for name in names(count)]
    slow = set(rng.sample(nodes, min(bad, count)))
    events = list(_events(nodes, slow, checks, raw, rounds, rng))
    return [Event(event.kind, START + 0.01 * place, event.host, event.data) for place, event in enumerate(events)]


def _events(nodes: list[str], slow: set[str], checks: int, raw: int, rounds: int | None, rng: random.Random) -> Iterator[Event]:
    yield _event("run.start", command="verify", run_id=f"fleet-{len(nodes)}", version="0.1.0", check=False, inventory=["hosts.yaml"], hosts=nodes)
    yield _event("suite", name="preflight", text="", floors=[])
    for node in nodes:
        for place in range(checks):
            yield _check(node, place, node in slow, raw, rng)
    yield from _pairs(nodes, slow, rounds, rng)
    yield from sweeps(nodes, rng)
    for node in nodes:
        bad = node in slow
        reasons = ["network.pairs: measured 12 GB/s (96 Gb/s), expected at least 24 GB/s (192 Gb/s): pairs without it are fine"] if bad else []
        yield _event("verdict", node, verdict="fail" if bad else "pass", reasons=reasons)
    good = [node for node in nodes if node not in slow]
    yield _event("handoff", path="run/handoff", hosts=good, excluded=[{"host": node} for node in slow], world_size=8 * len(good))
    yield _event("run.end", exit_code=3 if slow else 0, seconds=312.0)


def _event(kind: str, host: str = "", **data: Any) -> Event:
    return Event(kind, START, host, data)


def _check(node: str, place: int, bad: bool, raw: int, rng: random.Random) -> Event:
    if place == 0:
        return measured(node, "network.pairs", 12e9 if bad else LINK * rng.uniform(0.96, 1), 24e9, raw, "this fleet")
    if place <= len(RATES):
        value = 5e9 * rng.uniform(0.9, 1.1) * (0.2 if bad and place < 3 else 1)
        return measured(node, RATES[place - 1], value, 2e9, raw, "nodectl policy (nvme, 2026-08)")
    name = FACTS[place % len(FACTS)] + (f".{place}" if place > len(RATES) + len(FACTS) else "")
    return _event("check", node, step=name.split(".")[0], name=name, verdict="pass", value="570.86.15" if "driver" in name else True, unit="text" if "driver" in name else "bool",
                  floor=None, reason="measured yes, expected yes (as most of the fleet has it)", source="", simulated=False, raw="")


def measured(node: str, name: str, value: float, floor: float, raw: int, source: str) -> Event:
    verdict = "pass" if value >= floor else "fail"
    reason = f"measured {value / 1e9:.4g} GB/s ({value * 8 / 1e9:.4g} Gb/s), expected at least {floor / 1e9:.4g} GB/s ({floor * 8 / 1e9:.4g} Gb/s)"
    text = (f"{node} {name} {value}\n" * (raw // 20 + 1))[:raw]
    return _event("check", node, step=name.split(".")[0], name=name, verdict=verdict, value=value, unit="B/s", floor=floor, reason=reason, source=source, simulated=False, raw=text)


def _pairs(nodes: list[str], slow: set[str], rounds: int | None, rng: random.Random) -> Iterator[Event]:
    """Round robin by the circle method."""
    ring: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    for turn in range(min(len(ring) - 1, rounds if rounds is not None else len(ring))):
        half = len(ring) // 2
        for first, second in zip(ring[:half], reversed(ring[half:]), strict=True):
            if first and second:
                value = LINK * rng.uniform(0.93, 1) * (0.25 if first in slow or second in slow else 1)
                yield _event("pair", hosts=[first, second], rail="", tool="all_reduce", bytes=2**26, value=value, unit="B/s", round=turn + 1, error="")
        ring = [ring[0], ring[-1], *ring[1:-1]]


def sweeps(nodes: list[str], rng: random.Random) -> Iterator[Event]:
    for op, top in (("all_reduce", 370e9), ("all_gather", 360e9), ("alltoall", 48e9)):
        rows = []
        for power in range(3, 34):
            size = 2**power
            seconds = 25e-6 + size / top
            times = [seconds * rng.uniform(0.98, 1.02) for _ in range(min(len(nodes), 64))]
            for in_place in (False, True):
                rows.append({"bytes": size, "count": size // 4, "time": seconds, "algbw": size / seconds / 1.9, "busbw": size / seconds, "wrong": 0, "in_place": in_place, "ranks": times})
        yield _event("sweep", hosts=nodes, op=op, dtype="float32", redop="sum", backend="nccl", ranks=len(nodes), in_place=False, floor=top * 0.9, source="NVIDIA, 2026-03", rows=rows)
