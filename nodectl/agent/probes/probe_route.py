"""probe_route: which interface and address this node uses towards its peers."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from collections import Counter
from typing import Any, Dict, List

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Interface, source address and MTU of the route to each peer; warns of a hosts file that leads the node's own name to loopback.",
    params={
        "peers": Param("list", "addresses or names of the other nodes", default=[], elements="str"),
        "timeout": Param("float", "seconds for a name", default=5.0),
    },
    returns={
        "routes": "per peer: peer, address, interface, source, gateway, mtu, error",
        "interface": "the interface that most peers are reached by, \"\" when none",
        "source": "the address of this node on it", "mtu": "its MTU in bytes", "speed": "its speed in Mb/s as the driver says it, -1 unknown",
    },
    example="- probe_route:\n    peers: [10.0.0.2, 10.0.0.3]\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    routes = [_route(system, peer, args["timeout"]) for peer in args["peers"]]
    good = [route for route in routes if route["interface"]]
    values: Dict[str, Any] = {"routes": routes, "interface": "", "source": "", "mtu": 0, "speed": -1}
    if good:
        (interface, source), _ = Counter((r["interface"], r["source"]) for r in good).most_common(1)[0]
        values.update(interface=interface, source=source, mtu=_number(system, interface, "mtu", 0), speed=_number(system, interface, "speed", -1))
    return Outcome(values=values, warnings=_loopback_names(system) + [f"no route to {r['peer']}: {r['error']}" for r in routes if r["error"]])


def _route(system: System, peer: str, timeout: float) -> Dict[str, Any]:
    facts: Dict[str, Any] = {"peer": peer, "address": "", "interface": "", "source": "", "gateway": "", "mtu": 0, "error": ""}
    try:
        facts["address"] = _address(system, peer, timeout)
        done = system.run(["ip", "-j", "route", "get", facts["address"]], timeout=timeout)
        answer = json.loads(done.stdout)[0] if done.rc == 0 else {}
    except Failed as failed:
        system.stopper.check()
        return dict(facts, error=failed.msg)
    except (ValueError, IndexError):
        return dict(facts, error="ip route get gave no answer")
    if "dev" not in answer:
        return dict(facts, error=done.stderr.strip() or "no route")
    facts.update(interface=answer["dev"], source=answer.get("prefsrc", ""), gateway=answer.get("gateway", ""), mtu=_number(system, answer["dev"], "mtu", 0))
    if answer.get("type") == "local" or answer["dev"] == "lo":
        facts.update(error=f"{peer} is this node itself ({facts['address']})", interface="")
    return facts


def _address(system: System, peer: str, timeout: float) -> str:
    """The peer's address; a name is asked of the node's own resolver, bounded."""
    try:
        return str(ipaddress.ip_address(peer))
    except ValueError:
        done = system.run(["getent", "ahosts", peer], timeout=timeout)
    if done.rc != 0 or not done.stdout.split():
        raise Failed(f"the name {peer} does not resolve on this node")
    return done.stdout.split()[0]


def _number(system: System, interface: str, name: str, default: int) -> int:
    """A number of the interface's sysfs folder; some drivers answer EINVAL for the speed of a link that is down."""
    try:
        return int((system.read(os.path.join("/sys/class/net", interface, name)) or b"").decode().strip() or default)
    except (Failed, ValueError):
        return default


def _loopback_names(system: System) -> List[str]:
    """gloo and torchrun advertise what the own name resolves to: a 127.x line makes peers connect to themselves."""
    own = {socket.gethostname(), socket.gethostname().split(".")[0]}
    out = []
    for line in (system.read("/etc/hosts") or b"").decode("utf-8", "replace").splitlines():
        words = line.split("#")[0].split()
        hit = own & set(words[1:])
        if words and (words[0].startswith("127.") or words[0] == "::1") and hit:
            out.append(f"/etc/hosts leads this node's own name {sorted(hit)[0]} to {words[0]}: programs that advertise their name would be reached by nobody")
    return out
