"""Which variables of hosts.yaml a verdict depends on: they go into the journal, and from there into evidence.json. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.verify.judging.reading import plain

# By how their names begin, so that a new variable of verification is not forgotten. Nothing of these is a password by its nature; what is one all the
# same is masked where events are written.
_BEGIN = (
    "expected_", "fabric_", "network_", "scratch_", "disk_tier", "file_mount", "base_memlock", "base_nofile", "nvme_scratch_",
    "torch_", "rdma_", "rendezvous_port", "hardware_root", "verify_", "site_floors", "node_profile",
)


def inputs(variables: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON knows them, by name."""
    return {name: plain(value) for name, value in sorted(variables.items()) if name.startswith(_BEGIN)}
