"""Stands in for sitecustomize on a host that is to look as if it had a GPU and NCCL: gloo does the work on the processor.

Only the host's own Python loads it. The log has the lines that NCCL 2.21 writes with NCCL_DEBUG=INFO; which network they name is the value.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import Any

VALUE = "/var/lib/nodectl-lab/torch-nccl/value"
# A name that no floor knows: a stand-in must never be judged as the GPU that it is not.
NAME = "NVIDIA Stand-in"
LOGS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "IB": (
        "NCCL version 2.21.5+cuda12.4",
        "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.77.1.11<0>",
        "NCCL INFO Using network IB",
        "NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
    ),
    "Socket": (
        "NCCL version 2.21.5+cuda12.4",
        "NCCL INFO Failed to open libibverbs.so[.1]",
        "NCCL INFO NET/IB : No device found.",
        "NCCL INFO NET/Socket : Using [0]eth0:10.77.1.11<0>",
        "NCCL INFO Using network Socket",
        "NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
    ),
})


class _Event:
    """A mark in time; everything on the processor is done when it is recorded."""

    def __init__(self, **_options: Any) -> None:
        self.at = 0.0

    def record(self) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, later: _Event) -> float:
        return (later.at - self.at) * 1e3


def _gpu(torch: Any) -> None:
    cpu = torch.device("cpu")
    torch.device = lambda kind, *_rest: cpu
    cuda = torch.cuda
    cuda.is_available, cuda.device_count, cuda.get_device_name = (lambda: True), (lambda: 1), (lambda _index=0: NAME)
    cuda.set_device = cuda.synchronize = lambda *_device: None
    cuda.mem_get_info = lambda *_device: (1 << 30, 1 << 31)
    cuda.Event = _Event
    cuda.nccl.version = lambda: (2, 21, 5)
    torch.version.cuda = "12.4"
    # What keeps a GPU busy for milliseconds would keep a processor busy for minutes.
    torch.mm = lambda left, _right: left


def _nccl(dist: Any) -> None:
    start = dist.init_process_group

    def logged(backend: str, **options: Any) -> Any:
        if backend == "nccl":
            with open(VALUE, encoding="ascii") as file:
                lines = LOGS[file.read().strip()]
            host, process = os.uname().nodename, os.getpid()
            sys.stderr.write("".join(f"{host}:{process}:{process} [0] {line}\n" for line in lines))
            sys.stderr.flush()
        return start("gloo" if backend == "nccl" else backend, **options)

    dist.init_process_group = logged
    dist.is_nccl_available = lambda: True


class _Hook(importlib.abc.MetaPathFinder):
    """Waits for torch and torch.distributed, and changes each when it is loaded."""

    def __init__(self) -> None:
        self.changes: dict[str, Callable[[Any], None]] = {"torch": _gpu, "torch.distributed": _nccl}
        self.asking = False

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if self.asking or fullname not in self.changes:
            return None
        self.asking = True
        spec = importlib.util.find_spec(fullname)
        self.asking = False
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def loaded(module: ModuleType) -> None:
            load(module)
            self.changes[fullname](module)

        spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _Hook())
