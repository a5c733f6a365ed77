"""What the hardware steps found out about a node, for the steps after them and for the comparison over the fleet. No logic beyond names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodectl.verify.node.profiles import NO_PROFILE, Profile
from nodectl.verify.node.traits import Trait


@dataclass
class Hardware:
    """Empty until the steps ran. ``traits`` by kind of step and name of check; ``packages`` and ``bridges`` (name to addresses) are of step host.

    ``link_errors`` are counters by port and by interface before any group used them, ``used_ports`` the ports that a job would use.
    ``local_nvme`` are controllers whose disks are in the node (nvme0); None: nobody looked.
    ``container`` and ``guest`` say what the node is ("" = neither); ``devices`` are those of probe_pci.
    """

    container: str = ""
    guest: str = ""
    devices: list[Mapping[str, Any]] = field(default_factory=list)
    rdma_ports: int = 0
    link_errors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    used_ports: tuple[str, ...] = ()
    numa_nodes: int = 0
    local_nvme: tuple[str, ...] | None = None
    profile: Profile = NO_PROFILE
    simulated: bool = False
    traits: dict[str, dict[str, Trait]] = field(default_factory=dict)
    packages: Mapping[str, str] | None = None
    bridges: Mapping[str, list[str]] = field(default_factory=dict)
    nccl_interface: str = ""

    def of(self, *kinds: str) -> list[Mapping[str, Any]]:
        """Devices on the PCI bus. A container sees those of the machine, which are not its own."""
        return [] if self.container else [device for device in self.devices if device.get("kind") in kinds]

    def words(self) -> set[str]:
        """What rows of the table may ask for with ``when``."""
        gpus, cards = self.of("gpu"), self.of("hca")
        true = {
            "own_kernel": not self.container, "bare_metal": not self.container and not self.guest, "numa": self.numa_nodes > 1,
            "devices": bool(self.of("gpu", "nvswitch", "hca", "nvme")), "gpus_on_bus": bool(gpus), "rdma_cards": bool(cards), "rdma": self.rdma_ports > 0,
        }
        return {word for word, holds in true.items() if holds}
