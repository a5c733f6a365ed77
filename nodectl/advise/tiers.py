"""Networks and storage to compare with, by their data sheets and by the published study. Pure data."""

from __future__ import annotations

from nodectl.advise.figure import Figure
from nodectl.advise.network import Network, nominal
from nodectl.advise.storage import Place

_STUDY = "Network and Storage Benchmarks for LLM Training on the Cloud (Maknee, 2025-09-11), table of tiers"


def networks(gpu: str) -> list[Network]:
    return [
        nominal("10 GbE", 1.25e9, "tcp", gpu), nominal("100 GbE", 12.5e9, "tcp", gpu), nominal("8 x 400 Gb/s InfiniBand", 400e9, "rdma", gpu),
    ]


def _rate(name: str, value: float) -> Figure:
    return Figure(name, value, "B/s", _STUDY, "assumed")


def _place(name: str, read: float, write: float, durable: bool) -> Place:
    return Place(name, _rate(f"read rate of {name}", read), _rate(f"load rate of {name}", read), _rate(f"write rate of {name}", write), durable)


def places() -> list[Place]:
    return [
        _place("local NVMe", 10e9, 10e9, False), _place("shared filesystem", 6.4e9, 1.6e9, True), _place("object store, MOUNT", 0.3e9, 0.1e9, True),
        _place("object store, MOUNT_CACHED", 0.3e9, 0.3e9, True),
    ]
