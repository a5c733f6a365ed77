"""network_tier and disk_tier of hosts.yaml: what each came to on this node, with the reason, and whether the node is below it. Pure.

`best` is the fastest that this node has. A node without RDMA hardware has TCP at best, and one without NVMe whatever disk there is: that is said,
with what it costs, and passes, unless hosts.yaml or a profile expects the hardware. Hardware that is there and cannot be used fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodectl.advise.advice import REFERENCE, reference_slowdown
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading

_MBIT = 1e6 / 8
# Disks that answer as NVMe and lie in the network: how Amazon's volume, Google's persistent disk and Azure's remote disk call themselves.
_REMOTE = ("Amazon Elastic Block Store", "nvme_card-pd", "MSFT NVMe Accelerator")


def network_tier(
    host: str, variables: Mapping[str, Any], kind: str, found: Mapping[str, Sequence[Mapping[str, Any]]], needed: float, simulated: bool,
) -> Reading:
    """``found``: hcas and interfaces as fabric_facts gives them. ``needed``: how many RDMA devices the node is known to have, else 0."""
    asked = str(variables.get("network_tier", "best"))
    usable = [one for one in found["hcas"] if one.get("usable") is True]
    rate = tcp_rate(found["interfaces"])
    tcp = "tcp" + (f" at {rate / _MBIT / 1e3:g} Gb/s" if rate else "")
    if asked != "best":
        return _tier("network_tier", host, variables, asked, f"asked {asked}: {tcp}", simulated)
    if usable:
        return _tier("network_tier", host, variables, "best", f"best: {kind}, {_devices(usable)}", simulated)
    why = f"asked best, found {tcp}: " + (f"{kind.upper()} hardware is here and cannot be used" if kind != "tcp" else _missing(needed)) + _slower(rate)
    return _tier("network_tier", host, variables, "standard" if needed or kind != "tcp" else "best", why, simulated)


def _missing(needed: float) -> str:
    if needed:
        return f"{needed:g} RDMA devices are expected and none is here"
    return "no RDMA hardware is here, so that is the best there is"


def _slower(rate: float) -> str:
    """What TCP costs a job that everybody can picture; "" where the rate is not known."""
    return f"; step estimate {reference_slowdown(rate):.2g} times slower than over {REFERENCE[1]} (workload {REFERENCE[0]})" if rate else ""


def tcp_rate(links: Sequence[Mapping[str, Any]]) -> float:
    """B/s of the fastest wire that is up; 0 where no driver tells one. A link without a device (veth) has no wire, whatever speed it names."""
    wires = [link for link in links if link.get("driver") and link.get("state") == "up" and link.get("type") == "ether"]
    return max((_number(link.get("speed_mbps")) for link in wires), default=0.0) * _MBIT


def _number(value: Any) -> float:
    """0 for what tells none."""
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e9 else 0.0


def _devices(usable: Sequence[Mapping[str, Any]]) -> str:
    """ "8 x mlx5 at 400 Gb/s"; several kinds behind each other."""
    kinds = Counter((str(one.get("driver") or "").removesuffix("_core") or "RDMA device", _number(one.get("rate_gbps"))) for one in usable)
    return ", ".join(f"{count} x {driver}" + (f" at {rate:g} Gb/s" if rate else "") for (driver, rate), count in sorted(kinds.items()))


def local_nvme(controllers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Names of the controllers whose disks are in this node."""
    return tuple(str(one.get("name")) for one in controllers if not str(one.get("model") or "").startswith(_REMOTE))


@dataclass(frozen=True)
class Scratch:
    """Where a node's scratch disk lies. ``what`` names it, ``disks`` are the kernel's names of what is below it; ``system`` are those below /.

    ``local`` are the NVMe controllers whose disks are in the node. ``mounted``: it is a filesystem of its own.
    """

    path: str
    what: str
    disks: tuple[str, ...]
    local: tuple[str, ...]
    mounted: bool = True
    system: tuple[str, ...] = ()

    @property
    def simulated(self) -> bool:
        """A loop device stands in for a disk."""
        return bool(self.disks) and all(name.startswith("loop") for name in self.disks)

    @property
    def on_nvme(self) -> bool:
        return bool(self.disks) and all(_controller(name) in self.local for name in self.disks)

    @property
    def unused(self) -> list[str]:
        """Local NVMe that is neither below it nor the system's."""
        return sorted(set(self.local) - {_controller(name) for name in (*self.disks, *self.system)})


def disk_tier(host: str, variables: Mapping[str, Any], name: str, found: Scratch) -> Reading:
    """``name``: disk_tier, with the path of a second scratch disk behind a colon."""
    reached, why = _disk(str(variables.get("disk_tier", "best")), found)
    return _tier(name, host, variables, reached, why, found.simulated)


def _disk(asked: str, found: Scratch) -> tuple[str, str]:
    """(the tier that was reached, why)."""
    many = f"{len(found.disks)} x " if len(found.disks) > 1 else ""
    lies = f"{found.path} on {many}{found.what}" + (f" ({', '.join(found.disks)})" if found.disks else "")
    if asked != "best":
        return asked, f"asked {asked}: {lies}"
    if found.on_nvme:
        return "best", f"best: {found.path} on {len(found.disks)} x local NVMe{', striped' if many else ''}"
    if found.simulated:
        return "best", f"asked best, found {lies}, which stands in for a disk"
    if found.unused:
        return "standard", f"asked best, found {lies}: {len(found.unused)} local NVMe disks are not used ({', '.join(found.unused)})"
    if not found.mounted:
        return "standard", f"asked best, found {lies}, where no scratch disk is mounted"
    return "best", f"asked best, found {lies}: no other local NVMe is here, so that is the best there is"


def _controller(disk: str) -> str:
    """nvme0 of nvme0n1 and nvme0n1p1; the name itself of another disk."""
    found = re.match(r"nvme\d+", disk)
    return found.group() if found else disk


def _tier(name: str, host: str, variables: Mapping[str, Any], reached: str, why: str, simulated: bool) -> Reading:
    reading, tier = Reading(), name.partition(":")[0]
    asked, source = str(variables.get(tier, "best")), f"{tier} of hosts.yaml" if tier in variables else f"{tier} is best where hosts.yaml says nothing"
    reading.add(Measurement(name, reached, "text", (host,), "sysfs", simulated=simulated), Expectation(name, "equals", asked, "text", why, host, source))
    return reading
