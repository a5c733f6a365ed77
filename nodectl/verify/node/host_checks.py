"""Step host: kernel, processors, memory, limits of services, names, name servers, modules, mounts: what trips jobs up beside the hardware."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.verify.answer import Answer
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.judging.units import quantity
from nodectl.verify.members import NodeFacts
from nodectl.verify.node.check import Peers
from nodectl.verify.node.hardware import Hardware
from nodectl.verify.node.limits import judge_limit
from nodectl.verify.node.node_table import load_table
from nodectl.verify.node.table_reading import Context, read_rows
from nodectl.verify.session import Session
from nodectl.verify.suite_load import SuiteStep

KIND = "host"
_UNIT = "a transient unit of systemd"


def host(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """The node's system itself, never a recorded tree: only hardware can be stood in for."""
    variables = session.variables
    order = {
        "modules": _modules(variables, facts.hardware), "names": [str(name) for name in variables.get("expected_names") or []],
        "port": int(quantity(variables.get("rendezvous_port") or 0, "count")), "timeout": step.deadline / 4,
    }
    outcome = session.ask("probe_host", order, step.deadline, root=True)
    if outcome.failed:
        return unknown("host.kernel", (session.host,), "probe_host", outcome.msg)
    answer, words = _derived(outcome.values), facts.hardware.words()
    for word, holds in (
        ("modules_wanted", bool(order["modules"])), ("names_wanted", bool(order["names"])), ("port_wanted", bool(order["port"])),
        ("resolvers", bool(answer["resolvers"])), ("network_mounts", Answer("probe_host", answer).number("mounts_asked") > 0),
    ):
        words |= {word} if holds else set()
    reading, facts.hardware.traits[KIND] = read_rows(load_table(KIND), answer, Context(session.host, frozenset(words), variables=variables))
    _remember(facts.hardware, answer, variables.get("torch_env") or {})
    if answer["packages"] is None:
        reading.join([unknown("packages.same", (session.host,), "package database", str(answer.get("packages_error")))])
    return reading.join([_service_limits(session, step, answer)])


def _modules(variables: Mapping[str, Any], hardware: Hardware) -> list[str]:
    """What the inventory names, and what the devices on the bus need."""
    wanted = [str(name) for name in variables.get("expected_modules") or []]
    if not hardware.simulated:
        drivers = {str(device.get("driver")) for device in hardware.of("hca")}
        wanted += ["nvidia", "nvidia_uvm"] if hardware.of("gpu") else []
        wanted += ["mlx5_core", "mlx5_ib", "ib_uverbs"] if "mlx5_core" in drivers else []
    return list(dict.fromkeys(wanted))


def _derived(values: Mapping[str, Any]) -> dict[str, Any]:
    said = Answer("probe_host", values)
    silent = {str(one.get("address")): str(one.get("error")) for one in said.parts("resolvers") if one.get("error")}
    return {**values, "resolvers_silent": silent, "governor": ", ".join(said.texts("governor")) or None}


def _remember(hardware: Hardware, answer: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
    """For the comparison with the other nodes. What jobs get by ``environment`` (torch_env) counts before the node's nccl.conf."""
    packages, bridges = answer["packages"], answer.get("bridges")
    hardware.packages = {str(key): str(value) for key, value in packages.items()} if isinstance(packages, Mapping) else None
    hardware.bridges = {str(key): list(value) for key, value in bridges.items()} if isinstance(bridges, Mapping) else {}
    hardware.nccl_interface = str(environment.get("NCCL_SOCKET_IFNAME") or answer.get("nccl_interface") or "")


def _service_limits(session: Session, step: SuiteStep, answer: Mapping[str, Any]) -> Reading:
    """A service (Slurm's daemon, a container runtime) starts jobs with its own limits: limits.conf does not reach it."""
    outcome = session.ask("probe_limits", {"timeout": step.deadline / 2}, step.deadline, root=True)
    if outcome.failed:
        return unknown("limits.memlock.service", (session.host,), _UNIT, outcome.msg)
    unit = outcome.values.get("unit")
    found, method = (unit, _UNIT) if isinstance(unit, Mapping) else (answer.get("service_limits") or {}, "the service manager's defaults")
    if not found:
        return unknown("limits.memlock.service", (session.host,), _UNIT, str(outcome.values.get("unit_error") or "nothing was said"))
    reading, host_names = Reading(), (session.host,)
    wanted = session.variables.get("base_memlock") or "unlimited"
    why = "services start jobs with their own limits: base_memlock"
    judge_limit(reading, host_names, "limits.memlock.service", found.get("memlock"), wanted, "B", 1024.0, why, method)
    if session.variables.get("base_nofile") not in (None, ""):
        judge_limit(reading, host_names, "limits.nofile.service", found.get("nofile"), session.variables["base_nofile"], "count", 1.0, "base_nofile", method)
    return reading
