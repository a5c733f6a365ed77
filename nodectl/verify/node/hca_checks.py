"""Step hca: the RDMA ports that a job would use: rate, firmware, GIDs, error counters, and links that came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.verify.answer import Answer
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.members import NodeFacts
from nodectl.verify.node.check import Peers
from nodectl.verify.node.errors_checks import link_errors, port_name, used
from nodectl.verify.node.kernel_log import kernel_events
from nodectl.verify.node.node_table import load_table
from nodectl.verify.node.pci_checks import hardware_root, name
from nodectl.verify.node.profiles import load_profiles, profile_for
from nodectl.verify.node.table_reading import Context, read_rows
from nodectl.verify.session import Session
from nodectl.verify.suite_load import SuiteStep

KIND = "hca"
# The window in which Azure's check counts lost links.
WINDOW = 24 * 3600.0
_GBIT = 1e9 / 8


def hca(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """With network_tier standard nothing goes over RDMA, so nothing is expected of it; only what links count from here on is of use (step errors)."""
    root, host = hardware_root(session.variables), session.host
    order = {"subnets": list(session.variables.get("fabric_subnets") or []), "exclude": list(session.variables.get("fabric_exclude") or []), "root": root}
    outcome = session.ask("probe_hca", order, step.deadline)
    if outcome.failed:
        return unknown("hca.usable", (host,), "sysfs infiniband", outcome.msg)
    said, hardware = Answer("probe_hca", outcome.values), facts.hardware
    hardware.link_errors = link_errors(said)
    if str(session.variables.get("network_tier", "best")) != "best":
        return Reading()
    ports = said.parts("ports")
    usable = [port for port in ports if port.get("usable") is True]
    hardware.rdma_ports, hardware.simulated, hardware.used_ports = len(usable), said.truth("simulated"), used(usable)
    reading, answer, words = Reading(), _derived(usable, ports, _pinned(session.variables)), hardware.words()
    answer["lost"] = _lost(ports, order["exclude"], hardware.of("hca"))
    if any(port.get("link_layer") == "Ethernet" and port.get("driver") != "efa" for port in usable):
        words.add("roce")
    if _pinned(session.variables) is not None:
        words.add("gid_pinned")
    if usable:
        events, now, error = kernel_events(session, root, step.deadline)
        if events is None:
            reading.join([unknown("hca.flaps", (host,), "the kernel's log of this boot", error)])
        else:
            words.add("kernel_log")
            answer["flaps"] = flaps(events, now, usable)
    profile = profile_for(load_profiles(), str(session.variables.get("node_profile") or ""), ())
    context = Context(host, frozenset(words), profile, session.variables, hardware.simulated)
    found, hardware.traits[KIND] = read_rows(load_table(KIND), answer, context)
    return reading.join([found])


def _pinned(variables: Mapping[str, Any]) -> int | None:
    """NCCL_IB_GID_INDEX where the inventory sets one; below zero is NCCL's own choice."""
    given = str((variables.get("torch_env") or {}).get("NCCL_IB_GID_INDEX", "")).strip()
    return int(given) if given.isdigit() else None


def _derived(usable: Sequence[Mapping[str, Any]], ports: Sequence[Mapping[str, Any]], pinned: int | None) -> dict[str, Any]:
    return {
        "usable": len(usable), "ports": [_port(port, pinned) for port in usable],
        "firmware": ", ".join(sorted({f"{port.get('fw_ver')} ({port.get('board_id') or port.get('driver')})" for port in usable})),
        "mtus": ", ".join(sorted({str(port["mtu"]) for port in usable if port.get("mtu")}, key=int)) or None,
        "unusable": [f"{port.get('device')}: {port.get('reason')}" for port in ports if not port.get("usable")],
    }


def _lost(ports: Sequence[Mapping[str, Any]], exclude: Sequence[str], cards: Sequence[Mapping[str, Any]]) -> list[str]:
    """What would be rails if it worked: ports that are down or without a subnet manager, cards without a driver. Where InfiniBand works, Ethernet
    ports are the front end; an Ethernet port that is up and has no address of the fabric may be one anywhere."""
    infiniband = any(port.get("usable") and port.get("link_layer") == "InfiniBand" for port in ports)

    def rail(port: Mapping[str, Any]) -> bool:
        if port.get("link_layer") == "InfiniBand":
            return True
        return not infiniband and (port.get("state"), port.get("phys_state")) != ("ACTIVE", "LinkUp")

    down = [f"{port.get('device')}: {port.get('reason')}" for port in ports if not port.get("usable") and port.get("device") not in exclude and rail(port)]
    return down + [f"{name(card)} has no driver" for card in cards if card.get("driver") == ""]


def _port(port: Mapping[str, Any], pinned: int | None) -> dict[str, Any]:
    """A port with its name; GIDs mean something on RoCE only."""
    roce = port.get("link_layer") == "Ethernet" and port.get("driver") != "efa"
    rate = Answer("probe_hca", port).number("rate")
    matching = port.get("matching") or []
    return {
        **port, "label": port_name(port), "rate": rate * _GBIT if rate else None,
        "gid_matches": bool(matching) if roce else None, "pinned_gid_matches": pinned in matching if roce and pinned is not None else None,
    }


def flaps(events: Sequence[Mapping[str, Any]], now: float, usable: Sequence[Mapping[str, Any]]) -> list[str]:
    """One entry per lost link of the port that lost it most often within the window; a line without a time counts."""
    names = {str(port.get(key)) for port in usable for key in ("netdev", "device") if port.get(key)}
    recent = [
        str(event["interface"]) for event in events
        if event.get("kind") == "link_down" and event.get("interface") in names and (event.get("at") is None or now - float(event["at"]) <= WINDOW)
    ]
    worst = Counter(recent).most_common(1)
    return [f"{worst[0][0]}, lost link {number}" for number in range(1, worst[0][1] + 1)] if worst else []
