"""What is assumed where nothing was measured and the workload says nothing: each with its range, its reason and where it is from. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nodectl.advise.figure import Figure


def _assumed(name: str, value: float, low: float, high: float, unit: str, why: str) -> tuple[str, Figure]:
    return name, Figure(name, value, unit, why, "assumed", (), low, high)


ASSUMED: Mapping[str, Figure] = MappingProxyType(dict((
    _assumed("tcp_efficiency", 0.9, 0.8, 0.94, "1", "NCCL over sockets; 0.94 is the payload of a frame of 1500 bytes; below 0.8 a thread is the bound"),
    _assumed("rdma_efficiency", 0.9, 0.8, 0.97, "1", "large messages over InfiniBand or RoCE: healthy ports carry 360 to 390 of 400 Gb/s"),
    _assumed("nvlink_efficiency", 0.8, 0.75, 0.9, "1", "collectives without NVLS reach 80 to 82 % of NVLink's one-way rate (stas00/ml-engineering, network)"),
    _assumed("tcp_latency", 30e-6, 15e-6, 100e-6, "s", "one hop through two kernels, before anything was measured"),
    _assumed("rdma_latency", 5e-6, 2e-6, 10e-6, "s", "one hop of NCCL over RDMA, proxy threads included"),
    _assumed("nvlink_latency", 2e-6, 1e-6, 5e-6, "s", "one hop of a ring inside a node"),
    _assumed("compute_efficiency", 0.4, 0.3, 0.55, "1", "share of the dense bf16 peak that well-made training reaches; say seconds_per_step to narrow it"),
    _assumed("overlap", 0.5, 0.0, 1.0, "1", "share of the compute that communication runs beside: profile one step to narrow it"),
    _assumed("read_ahead", 1.0, 0.5, 1.0, "1", "share of a step in which loader workers read the next batch"),
    _assumed("state_bytes_per_parameter", 13.0, 6.0, 16.0, "B", "mlcommons/storage: 912 GB for 70B, 5.29 TB for 405B; 6 with bf16 weights and moments"),
    _assumed("snapshot", 5.0, 1.0, 30.0, "s", "a save in the background first copies the state to memory: the step waits for that"),
)))
# One-way NVLink rate of a GPU (B/s) and dense bf16 peak (FLOP/s): NVIDIA data sheets; rates as in stas00/ml-engineering, network.
GPUS: Mapping[str, tuple[float, float]] = MappingProxyType({
    "A100": (300e9, 312e12), "H100": (450e9, 989e12), "H200": (450e9, 989e12), "B200": (900e9, 2250e12), "GB200": (900e9, 2500e12),
})


def assume(name: str) -> Figure:
    return ASSUMED[name]
