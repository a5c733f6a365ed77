"""What the run found out about a node's hardware and settings, for schedulers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Machine:
    """Counts are 0 and texts empty where the node did not say; ``memory`` in bytes. ``error``: why nothing here is known.

    ``nccl_files`` are (path, text) of the files that NCCL takes settings from on this node, in its own order.
    """

    hostname: str = ""
    cpus: int = 0
    sockets: int = 0
    cores_per_socket: int = 0
    threads_per_core: int = 0
    memory: int = 0
    gpu_files: tuple[str, ...] = ()
    gpu_model: str = ""
    sku: str = ""
    nccl_files: tuple[tuple[str, str], ...] = ()
    error: str = ""

    @property
    def gpu_type(self) -> str:
        """The SKU, or else the driver's name of the model, in the letters that a gres type and a label take."""
        return re.sub(r"[^a-z0-9]+", "-", (self.sku or self.gpu_model).lower()).strip("-") or "gpu"


UNKNOWN_MACHINE = Machine(error="this run did not ask it for its processors and memory")


def machine_of(data: Any) -> Machine:
    """From the ``machine`` of a node event. Whatever is not of its type is as good as not said."""
    if not isinstance(data, Mapping) or not data:
        return UNKNOWN_MACHINE
    if data.get("error"):
        return Machine(error=str(data["error"]))
    files = data.get("nccl_conf")
    nccl = [(file.get("path"), file.get("text")) for file in files if isinstance(file, Mapping)] if isinstance(files, (list, tuple)) else []
    names = data.get("gpu_files")
    return Machine(
        _text(data, "hostname"), _count(data, "cpus"), _count(data, "sockets"), _count(data, "cores_per_socket"), _count(data, "threads_per_core"),
        _count(data, "memory"), tuple(name for name in names if isinstance(name, str)) if isinstance(names, (list, tuple)) else (),
        _text(data, "gpu_model"), _text(data, "sku"), tuple((path, text) for path, text in nccl if isinstance(path, str) and isinstance(text, str)),
    )


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) and value.isprintable() else ""


def _count(data: Mapping[str, Any], key: str) -> int:
    value = data.get(key)
    return value if type(value) is int and value > 0 else 0
