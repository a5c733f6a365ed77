"""What NCCL says of itself with NCCL_DEBUG=INFO. Pure.

The log of one node holds the lines of all its ranks, mixed, and only its end when it is long: whatever is not said is unknown, never assumed.
Lines as of NCCL 2.4 to 2.28; wording changed between versions, so each fact is looked for in every form that was seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_VERSION = re.compile(r"NCCL version (\d+\.\d+(?:\.\d+)?)")
# "AWS" is the vendor in front of the name that aws-ofi-nccl gives itself.
_USING = re.compile(r"NCCL INFO Using network (?:AWS )?(\S+)")
_ASSIGNED = re.compile(r"NCCL INFO Assigned NET plugin (?:AWS )?(\S+) to comm")
# Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/3(2)/GDRDMA/Shared · Ring 00 : 15 -> 16 [send] via NET/AWS Libfabric/0
_LINK = re.compile(r"(?:Channel|Ring) \d+(?:/\d+)? : \S+ -> \S+ \[(?:send|receive)\] via NET/(?:AWS )?([^/\n]+)/(\d+)(?:\(\d+\))?((?:/\w+)*)")
_DEVICES = re.compile(r"NET/IB\w* ?: Using (.*)")
_DEVICE = re.compile(r"\[\d+\] ?([A-Za-z][\w.\-]*):(\d+)")
# GPU Direct RDMA Enabled for HCA 0 'mlx5_0'
_DIRECT = re.compile(r"GPU Direct RDMA (Enabled|Disabled) for HCA \d+ '([^']+)'")
_NONE = re.compile(r"NET/(IB\w*|OFI|Socket) ?: No (?:usable )?(?:device|interface|eligible providers)s? (?:were )?found")
_WARN = re.compile(r"NCCL WARN (.*)")
# More warnings than this say nothing new; the log itself is kept.
_MOST_WARNINGS = 5


@dataclass(frozen=True)
class NcclLog:
    """``networks`` are NCCL's own names ("IB", "Socket", "Libfabric", "IBext_v8"); ``hcas`` the devices it opened ("mlx5_0"); ``links``
    connections to other nodes by network, ``direct`` how many of them hand GPU memory to the adapter (GDRDMA); ``gdr`` what it says of each
    HCA; ``absent`` are networks of which it found no device."""

    version: str = ""
    networks: frozenset[str] = frozenset()
    hcas: frozenset[str] = frozenset()
    links: Mapping[str, int] = field(default_factory=dict)
    direct: int = 0
    gdr: Mapping[str, bool] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    @property
    def used(self) -> str:
        """The networks that were chosen or carried connections; several joined by a comma, "" when it is not said."""
        return ",".join(sorted({family(name) for name in (*self.links, *self.networks)}))

    @property
    def staged(self) -> int:
        """Connections to other nodes that copy through host memory first."""
        return sum(self.links.values()) - self.direct


def nccl_log(text: str) -> NcclLog:
    """All that is said in ``text``."""
    links = [(found.group(1).strip(), "GDRDMA" in found.group(3)) for found in _LINK.finditer(text)]
    version = _VERSION.search(text)
    return NcclLog(
        version.group(1) if version else "",
        frozenset(_USING.findall(text)) | frozenset(_ASSIGNED.findall(text)),
        frozenset(name for line in _DEVICES.findall(text) for name, _port in _DEVICE.findall(line.partition("; OOB")[0])),
        Counter(name for name, _direct in links),
        sum(direct for _name, direct in links),
        _gdr(_DIRECT.findall(text)),
        frozenset(family(name) for name in _NONE.findall(text)),
        tuple(dict.fromkeys(_WARN.findall(text)))[:_MOST_WARNINGS],
    )


def _gdr(found: Iterable[tuple[str, str]]) -> dict[str, bool]:
    """One rank that says Disabled counts: its traffic goes through host memory."""
    said: dict[str, bool] = {}
    for word, name in found:
        said[name] = said.get(name, True) and word == "Enabled"
    return said


def family(network: str) -> str:
    """NVIDIA's external plugin (IBext, IBext_v8 …) moves bytes over the same HCAs as the one inside; OFI is what Libfabric's lines begin with."""
    return "IB" if network.startswith("IB") else "Libfabric" if network in ("OFI", "Libfabric") else network


def network_used(log: str) -> str:
    """The network of all communicators of one node ("IB", "Socket", "Libfabric"), several joined by a comma, "" when it is not said."""
    return nccl_log(log).used
