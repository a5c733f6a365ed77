"""Workloads and networks of a few lines, for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nodectl.advise.figure import Figure
from nodectl.advise.network import Network
from nodectl.advise.storage import Place
from nodectl.advise.workload import Workload
from nodectl.advise.workload_load import load_workload
from nodectl.diagnostics.model import Collector


def exact(name: str, value: float, unit: str) -> Figure:
    return Figure(name, value, unit, "a test says so", "measured")


def shipped(name: str, **changes: Any) -> Workload:
    work = load_workload(name, Collector())
    assert work is not None
    return replace(work, **changes)


def net(node: float = 10e9, gpu: float = 100e9, latency: float = 0.0) -> Network:
    return Network("test", exact("node", node, "B/s"), exact("gpu", gpu, "B/s"), exact("latency", latency, "s"), exact("gpu latency", 0.0, "s"))


def disk(name: str = "disk", read: float = 1e9, load: float = 1e9, write: float = 1e9, durable: bool = True, **more: Any) -> Place:
    return Place(name, exact("read", read, "B/s"), exact("load", load, "B/s"), exact("write", write, "B/s"), durable, **more)
