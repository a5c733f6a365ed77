"""From what was found out about nodes to their places in groups, and to what the handoff needs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodectl.transport.channel import Target
from nodectl.verify.group.gang import Member
from nodectl.verify.group.network_checks import Fleet
from nodectl.verify.judging.floor_load import Floor
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.units import quantity
from nodectl.verify.node.hardware import Hardware
from nodectl.verify.session import Session

# Of a figure that a site expects, this much must be reached: AICR takes the same share of its recipes' figures.
TOLERANCE = 0.9
# Longest first: "H100 NVL" is another machine than "H100".
_SKUS = (
    ("H100 NVL", "H100-NVL"), ("H100", "H100-SXM"), ("H200", "H200-SXM"), ("GB300", "GB300"), ("GB200", "GB200"), ("B300", "B300"), ("B200", "B200"),
    ("A100-SXM", "A100-SXM"), ("A100-PCI", "A100-PCIe"), ("MI300X", "MI300X"),
)


@dataclass(frozen=True)
class Clock:
    """A node's clock minus the controller's, in seconds, give or take ``uncertainty``."""

    offset: float
    uncertainty: float


@dataclass
class NodeFacts:
    """What the node checks found; empty until they ran.

    ``gpus`` are those that torch sees, ``listed_gpus`` those that the driver lists; ``links`` are interfaces by name, as fabric_facts gives them.
    ``scratch`` is the kind of disk (nvme, loop, disk, md) by mount point, of scratch disks that can be written, ``room`` their free bytes;
    ``usable_mounts`` are file mounts.
    """

    fabric: str = ""
    address: str = ""
    interface: str = ""
    mtu: int = 0
    virtual: bool = False
    torch: str = ""
    torch_python: str = ""
    gpus: int = 0
    gpu_names: tuple[str, ...] = ()
    listed_gpus: int = 0
    links: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    clock: Clock | None = None
    scratch: dict[str, str] = field(default_factory=dict)
    room: dict[str, float] = field(default_factory=dict)
    usable_mounts: set[str] = field(default_factory=set)
    machine: Mapping[str, Any] = field(default_factory=dict)
    hardware: Hardware = field(default_factory=Hardware)


def sku_of(names: Sequence[str]) -> str:
    """The floors' name of a GPU, from what the driver calls it; "" for one that no floor knows."""
    if not names:
        return ""
    return next((sku for part, sku in _SKUS if part in names[0].replace("A100 SXM", "A100-SXM")), names[0])


def backend_of(facts: Sequence[NodeFacts]) -> str:
    """NCCL only where every node has GPUs: a group speaks one language."""
    return "nccl" if facts and all(one.gpus for one in facts) else "gloo"


def members_of(nodes: Sequence[tuple[Session, NodeFacts]]) -> list[Member]:
    backend = backend_of([facts for _, facts in nodes])
    return [
        Member(
            session, facts.address or session.target.address, facts.interface or "lo", facts.gpus if backend == "nccl" else 1,
            facts.torch_python or "python3", backend, _torch_env(session.variables),
        )
        for session, facts in nodes
    ]


def _torch_env(variables: Mapping[str, Any]) -> dict[str, str]:
    """``torch_env`` of the inventory: what this site's jobs need beside what was discovered."""
    return {str(key): str(value) for key, value in (variables.get("torch_env") or {}).items()}


def fleet_of(nodes: Sequence[tuple[Session, NodeFacts]], floors: Sequence[Floor]) -> Fleet:
    """What is the same for all ``nodes``. gloo runs over TCP whatever the fabric is."""
    facts = [one for _, one in nodes]
    gloo = backend_of(facts) == "gloo"
    kinds = {one.fabric for one in facts if one.fabric}
    site = {session.host: bar for session, _ in nodes if (bar := site_bar(session.host, session.variables)) is not None}
    fabric = "tcp" if gloo or len(kinds) != 1 else kinds.pop()
    return Fleet(fabric, "" if gloo else sku_of(facts[0].gpu_names), 0 if gloo else facts[0].gpus, gloo or any(one.virtual for one in facts), floors, site)


def site_bar(host: str, variables: Mapping[str, Any]) -> Expectation | None:
    """The higher of ``network_floor`` and 90 % of ``expected_busbw`` (numbers in B/s, or texts such as "200 Mb/s"). Raises UnitError."""
    bars = []
    if variables.get("network_floor") not in (None, ""):
        bars.append((quantity(variables["network_floor"], "B/s"), "network_floor of the inventory"))
    if variables.get("expected_busbw") not in (None, ""):
        bars.append((TOLERANCE * quantity(variables["expected_busbw"], "B/s"), f"{TOLERANCE:.0%} of expected_busbw of the inventory"))
    if not bars:
        return None
    value, why = max(bars)
    return Expectation("network.pairs", "at_least", value, "B/s", why, host, "hosts.yaml")


def node_data(target: Target, member: Member, facts: NodeFacts) -> dict[str, Any]:
    """The `node` event: all that a launcher needs, nothing secret (the key's path, never the key)."""
    env = {"GLOO_SOCKET_IFNAME": member.interface, **member.env}
    if member.backend == "nccl":
        env["NCCL_SOCKET_IFNAME"] = f"={member.interface}"
    return {
        "address": target.address, "fabric_address": member.address, "interface": member.interface, "gpus": facts.gpus, "nproc": member.nproc,
        "torch_python": member.python, "user": target.user, "port": target.port, "key_file": _absolute(target.key_file), "connection": target.connection,
        "ssh_options": {key: _absolute_all(key, value) for key, value in target.options.items()}, "env": env, "backend": member.backend,
        "torch": facts.torch, "fabric": facts.fabric, "machine": dict(facts.machine),
    }


# Options that name files: one per line, several words, or one. The handoff is used from another folder than the run was.
_LINES, _WORDS, _ONE = frozenset(["identityfile"]), frozenset(["userknownhostsfile", "globalknownhostsfile"]), frozenset(["configfile", "certificatefile"])


def _absolute_all(key: str, value: str) -> str:
    key = key.lower()
    if key in _LINES:
        return "\n".join(map(_absolute, value.splitlines()))
    if key in _WORDS:
        return shlex.join(map(_absolute, shlex.split(value)))
    return _absolute(value) if key in _ONE else value


def _absolute(path: str) -> str:
    if not path or path.startswith("%") or path.lower() == "none" or path == "/dev/null":
        return path
    return str(Path(path).expanduser().absolute())
