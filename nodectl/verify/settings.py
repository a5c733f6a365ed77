"""What hosts.yaml may say about verification, checked before any node is asked. Pure.

network_floor, expected_busbw, scratch_floor, file_mount_floor: rates (B/s, or a text such as "200 Mb/s") · expected_gpus, expected_hcas,
base_nofile: counts · base_memlock: KiB or unlimited · torch_env: mapping of environment variables · fabric_address: where peers reach the node ·
fabric_subnets, fabric_exclude: lists, as fabric_facts takes them · node_profile: a name of nodectl/verify/node/profiles · expected_*: pins of the
tables in nodectl/verify/node/checks · expected_modules, expected_names: lists · rendezvous_port: a port that must be free · hardware_root: a recorded
tree that stands in for the hardware (rehearsals).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nodectl.verify.judging.units import UnitError, quantity
from nodectl.verify.node.profiles import ProfileError, load_profiles, profile_for

_RATES = ("network_floor", "rdma_floor", "expected_busbw", "scratch_floor", "file_mount_floor", "expected_hca_rate")
_COUNTS = (
    "expected_gpus", "expected_hcas", "expected_nvlinks", "expected_nvme", "expected_hugepages", "expected_nvme_media_errors", "rendezvous_port", "base_nofile",
    "base_memlock",
)
_OTHERS = {
    "rdma_latency": "s", "rdma_gid_index": "count", "expected_gpu_temperature": "degC", "expected_nvme_used": "percent", "expected_max_read_request": "B",
}
_LISTS = ("fabric_subnets", "fabric_exclude", "expected_modules", "expected_names")
# Every variable that verification and handoff read: what looks like one of them and is none is most often a slip of the pen.
NAMES = frozenset([
    *_RATES, *_COUNTS, *_OTHERS, *_LISTS, "torch_env", "torch_python", "file_mounts", "network_tier", "disk_tier", "node_profile", "fabric_address",
    "verify_waivers", "site_floors", "hardware_root",
])  # fmt: skip
# B/s. No network and no disk of a training pool is as slow as one MB/s: such a number was meant in another unit.
SLIP = 1e6
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENDLESS = ("unlimited", "infinity", "-1")


def mistakes(variables: Mapping[str, Any]) -> list[str]:
    """One sentence for each variable that cannot be understood."""
    bases = {**dict.fromkeys(_RATES, "B/s"), **dict.fromkeys(_COUNTS, "count"), **_OTHERS}
    found = [problem for name, base in bases.items() if (problem := _quantity(name, variables.get(name), base))]
    for name in ("torch_env", "file_mounts"):
        if not isinstance(variables.get(name) or {}, Mapping):
            found.append(f"{name}: expected a mapping, not {variables[name]!r}")
    for name in _LISTS:
        if not isinstance(variables.get(name) or [], list):
            found.append(f"{name}: expected a list, not {variables[name]!r}")
    return found + _environment(variables.get("torch_env")) + _profile(variables.get("node_profile"))


def _quantity(name: str, value: Any, base: str) -> str:
    """ "" where the variable is not given or can be understood."""
    if value in (None, "") or (name == "base_memlock" and str(value) in _ENDLESS):
        return ""
    try:
        number = quantity(value, base)
        if number == 0 and name in _RATES:
            return f"{name}: a bar of 0 passes everything; leave it out where there is none"
        if number < SLIP and name in _RATES and not (isinstance(value, str) and value.strip()[-1:].isalpha()):
            return f"{name}: {value} without a unit is {number:g} B/s, which everything passes; write the unit, for example '{value} GB/s'"
    except UnitError as error:
        return f"{name}: {error}"
    return ""


def _profile(wanted: Any) -> list[str]:
    """A profile that nobody knows would expect nothing."""
    try:
        profile_for(load_profiles(), str(wanted or ""), ())
    except ProfileError as error:
        return [str(error)]
    return []


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
