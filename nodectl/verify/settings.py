"""What hosts.yaml may say about verification, checked before any node is asked. Pure.

network_floor, expected_busbw, scratch_floor, file_mount_floor: rates (B/s, or a text such as "200 Mb/s") · expected_gpus, expected_hcas,
base_nofile: counts · base_memlock: KiB or unlimited · torch_env: mapping of environment variables · fabric_address: where peers reach the node ·
fabric_subnets, fabric_exclude: lists, as fabric_facts takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.verify.units import UnitError, quantity

_RATES = ("network_floor", "expected_busbw", "scratch_floor", "file_mount_floor")
_COUNTS = ("expected_gpus", "expected_hcas", "base_nofile", "base_memlock")
_ENDLESS = ("unlimited", "infinity", "-1")


def mistakes(variables: Mapping[str, Any]) -> list[str]:
    """One sentence for each variable that cannot be understood."""
    found = []
    for names, base in ((_RATES, "B/s"), (_COUNTS, "count")):
        for name in names:
            value = variables.get(name)
            if value in (None, "") or (name == "base_memlock" and str(value) in _ENDLESS):
                continue
            try:
                quantity(value, base)
            except UnitError as error:
                found.append(f"{name}: {error}")
    for name in ("torch_env", "file_mounts"):
        if not isinstance(variables.get(name) or {}, Mapping):
            found.append(f"{name}: expected a mapping, not {variables[name]!r}")
    return found
