"""probe_traffic: bytes that left and reached this node so far, by RDMA port and by interface. Two readings show who carried what lies between."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from nodectl.agent import recorded
from nodectl.agent.contract import Args
from nodectl.agent.facts import rdma
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Spec

# port_xmit_data and port_rcv_data count words of four bytes, of all lanes together (InfiniBand specification, PortCounters; the kernel
# gives the 64-bit ones under this name where the device has them).
WORD = 4

SPEC = Spec(
    summary="Bytes sent and received so far by every RDMA port and every network interface.",
    params={"root": recorded.PARAM},
    returns={
        "ports": "per RDMA port: device, port, sent, received (B; null where the driver counts none), link_layer",
        "interfaces": "per interface but lo: name, sent, received (B; null where it cannot be read)",
        "simulated": "whether a recorded tree was read",
    },
    example="- probe_traffic: {}\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    tree = recorded.Tree(system, args["root"])
    ports = [_port(tree, device["name"], port) for device in rdma.devices(tree.root) for port in device["ports"]]
    names = [name for name in rdma.entries(tree.path("sys/class/net")) if name != "lo"]
    interfaces = [
        {"name": name, "sent": _bytes(tree, name, "tx_bytes"), "received": _bytes(tree, name, "rx_bytes")}
        for name in names if tree.text(f"sys/class/net/{name}/statistics/tx_bytes")
    ]
    return Outcome(values={"ports": ports, "interfaces": interfaces, "simulated": tree.simulated})


def _bytes(tree: recorded.Tree, name: str, counter: str) -> Optional[int]:
    return tree.number(f"sys/class/net/{name}/statistics/{counter}")


def _port(tree: recorded.Tree, device: str, port: Dict[str, Any]) -> Dict[str, Any]:
    folder = f"sys/class/infiniband/{device}/ports/{port['port']}"
    return {
        "device": device, "port": port["port"], "link_layer": port["link_layer"],
        "sent": _moved(tree, folder, "port_xmit_data", ["tx_bytes", "rdma_write_bytes"]),
        "received": _moved(tree, folder, "port_rcv_data", ["rx_bytes", "rdma_write_recv_bytes"]),
    }


def _moved(tree: recorded.Tree, folder: str, words: str, plain: List[str]) -> Optional[int]:
    """Words of the port's own counter; EFA has none and counts bytes among its hardware counters, RDMA writes apart from sends."""
    counted = tree.number(f"{folder}/counters/{words}")
    if counted is not None:
        return counted * WORD
    found = [number for name in plain if (number := tree.number(f"{folder}/hw_counters/{name}")) is not None]
    return sum(found) if found else None
