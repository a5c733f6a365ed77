"""Stands in for sitecustomize on a host whose torch is to spoil data: one element of each large buffer, sent or received.

Only the host's own Python loads it. Buffers of a few elements carry what ranks agree on, not data: they stay as they are.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

VALUE = "/var/lib/nodectl-lab/torch-corrupts/value"
SMALLEST = 256
# Positions of what goes out and of what comes in among the arguments of each operation.
OPERATIONS = {
    "all_reduce": (0, 0), "reduce": (0, 0), "broadcast": (0, 0), "all_gather_into_tensor": (1, 0), "reduce_scatter_tensor": (1, 0),
    "all_to_all_single": (1, 0),
}


def _spoil(tensor: Any) -> None:
    if tensor.numel() >= SMALLEST:
        flat = tensor.view(-1)
        flat[tensor.numel() // 2] += 1


def _wrapped(operation: Callable[..., Any], outgoing: int, incoming: int, sent: bool) -> Callable[..., Any]:
    def spoiling(*args: Any, **kwargs: Any) -> Any:
        if sent:
            _spoil(args[outgoing])
        done = operation(*args, **kwargs)
        if not sent:
            _spoil(args[incoming])
        return done

    return spoiling


class _Hook(importlib.abc.MetaPathFinder):
    """Waits for torch.distributed, wraps its operations when it is loaded."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "torch.distributed":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def loaded(module: ModuleType) -> None:
            load(module)
            with open(VALUE, encoding="ascii") as file:
                sent = file.read().strip() == "sent"
            for known, (outgoing, incoming) in OPERATIONS.items():
                setattr(module, known, _wrapped(getattr(module, known), outgoing, incoming, sent))

        spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _Hook())
