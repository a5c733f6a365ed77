"""What hosts.yaml may say about verification, checked before any node is asked. Pure.

network_floor, expected_busbw, scratch_floor, file_mount_floor: rates (B/s, or a text such as "200 Mb/s") · expected_gpus, expected_hcas,
base_nofile: counts · base_memlock: KiB or unlimited · torch_env: mapping of environment variables · fabric_address: where peers reach the node ·
fabric_subnets, fabric_exclude: lists, as fabric_facts takes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nodectl.verify.units import UnitError, quantity

_RATES = ("network_floor", "expected_busbw", "scratch_floor", "file_mount_floor")
_COUNTS = ("expected_gpus", "expected_hcas", "base_nofile", "base_memlock")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
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
                if quantity(value, base) == 0 and names is _RATES:
                    found.append(f"{name}: a bar of 0 passes everything; leave it out where there is none")
            except UnitError as error:
                found.append(f"{name}: {error}")
    for name in ("torch_env", "file_mounts"):
        if not isinstance(variables.get(name) or {}, Mapping):
            found.append(f"{name}: expected a mapping, not {variables[name]!r}")
    for name in ("fabric_subnets", "fabric_exclude"):
        if not isinstance(variables.get(name) or [], list):
            found.append(f"{name}: expected a list, not {variables[name]!r}")
    return found + _environment(variables.get("torch_env"))


def _environment(given: Any) -> list[str]:
    """A variable that no environment can hold is told now, and not when the node has been measured for half an hour."""
    found = []
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if not _NAME.fullmatch(str(name)):
            found.append(f"torch_env: {str(name)!r} is not a name of an environment variable")
        elif isinstance(value, bool) or not isinstance(value, (str, int, float)):
            found.append(f"torch_env: {name} is {value!r}; expected text: write it in quotes")
        elif not str(value).isprintable():
            found.append(f"torch_env: {name} holds a line break or another control character")
    return found
