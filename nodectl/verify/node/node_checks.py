"""Checks of one node: what its probes say, as measurements with what this node's own settings demand. One function per kind of step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.group.gang import workload_source
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.judging.units import quantity
from nodectl.verify.members import Clock, NodeFacts
from nodectl.verify.node import storage_checks
from nodectl.verify.node.check import Check, Peers
from nodectl.verify.node.errors_checks import errors
from nodectl.verify.node.gpu_checks import gpu
from nodectl.verify.node.hca_checks import hca
from nodectl.verify.node.host_checks import host as host_step
from nodectl.verify.node.limits import judge_limit
from nodectl.verify.node.nvme_checks import nvme
from nodectl.verify.node.path_mtu import path_mtu
from nodectl.verify.node.pci_checks import hardware_root, pci
from nodectl.verify.node.profiles import load_profiles, profile_for
from nodectl.verify.node.tier_checks import network_tier
from nodectl.verify.parse.workload import records
from nodectl.verify.session import Gone, Session
from nodectl.verify.suite_load import SuiteStep
from nodectl.wire.outcome import Outcome

# Where the role `torch` makes its environment when the inventory names no interpreter and the node's python3 has no torch.
ROLE_VENV = "/opt/nodectl/torch/bin/python"
# What fabric_facts may call a fabric; another word is not a network that floors and NCCL know.
FABRICS = frozenset(["ib", "roce", "efa", "tcp"])
# One slow answer says little about a clock; the quickest of three on a warm channel is good to a few milliseconds.
CLOCK_TRIES = 3


def login(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """Limits as a login made now sees them: an old session keeps the old ones."""
    host = (session.host,)
    try:
        outcome = session.ask_fresh("probe_limits", {}, step.deadline)
    except Gone as gone:
        if gone.kind == "unreachable" and gone.why in _LOCKED_OUT:
            reading = Reading()
            reading.must_be_true(Measurement("login.fresh", False, "bool", host, "ssh", detail=gone.reason), "a person must be able to log in")
            return reading
        raise
    if outcome.failed:
        return unknown("limits.memlock", host, "fresh login", outcome.msg)
    reading = Reading()
    reading.must_be_true(Measurement("login.fresh", True, "bool", host, "ssh"), "a person must be able to log in")
    limits = Answer("probe_limits", outcome.values).part("login").values
    wanted = session.variables.get("base_memlock") or "unlimited"
    judge_limit(reading, host, "limits.memlock", limits.get("memlock"), wanted, "B", 1024.0, "ibv_reg_mr pins memory: base_memlock")
    if session.variables.get("base_nofile") not in (None, ""):
        judge_limit(reading, host, "limits.nofile", limits.get("nofile"), session.variables["base_nofile"], "count", 1.0, "base_nofile")
    return reading


# The node answers and says no: that is a finding. Anything else (timeout, refused, …) means that it may be gone.
_LOCKED_OUT = frozenset(["auth", "host_key", "python"])


def fabric(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """Kind and state of the fabric, and what network_tier came to."""
    host = (session.host,)
    root = hardware_root(session.variables)
    subnets, exclude = (list(session.variables.get(name) or []) for name in ("fabric_subnets", "fabric_exclude"))
    simulated = root != "/"
    outcome = session.ask("fabric_facts", {"subnets": subnets, "exclude": exclude, "sysfs_root": root}, step.deadline)
    if outcome.failed:
        return unknown("fabric.kind", host, "fabric_facts", outcome.msg)
    found = Answer("fabric_facts", outcome.facts).part("nodectl_fabric")
    kind, hcas, gpus, links = found.text("kind"), found.parts("hcas"), found.parts("gpus"), found.parts("interfaces")
    if kind not in FABRICS:
        raise Garbled(f"fabric_facts calls the fabric {kind!r}; expected one of {', '.join(sorted(FABRICS))}")
    tier = str(session.variables.get("network_tier", "best"))
    facts.fabric = kind if tier == "best" else "tcp"
    reading = Reading()
    why = f"network_tier {tier}"
    if tier == "best" and facts.fabric == "tcp":
        why += ", and only TCP was found: " + "; ".join(found.texts("not_found")[:2])
    measured = Measurement("fabric.kind", facts.fabric, "text", host, "fabric_facts", simulated=simulated)
    reading.add(measured, Expectation("fabric.kind", "equals", facts.fabric, "text", why, host[0]))
    usable = [one for one in hcas if one.get("usable") is True]
    wanted, source = _hcas_wanted(session)
    if tier == "best" and (facts.fabric != "tcp" or wanted is not None):
        unusable = "; ".join([*(f"{one.get('name')}: {one.get('reason')}" for one in hcas if one.get("usable") is not True), *found.texts("not_found")[:2]])
        measurement = Measurement("fabric.hcas", float(len(usable)), "count", host, "fabric_facts", simulated=simulated, detail=unusable)
        least = 1.0 if wanted is None else wanted
        reading.add(measurement, Expectation("fabric.hcas", "at_least", least, "count", "devices that are up and usable", host[0], source))
    reading.join([network_tier(host[0], session.variables, kind, {"hcas": hcas, "interfaces": links}, wanted or 0.0, simulated)])
    facts.listed_gpus = len(gpus)
    facts.links = {str(link.get("name", "")): link for link in links}
    return reading


def _hcas_wanted(session: Session) -> tuple[float | None, str]:
    """How many RDMA devices hosts.yaml or the profile that it names expects; (None, "") where neither says."""
    given = session.variables.get("expected_hcas")
    if given not in (None, ""):
        return quantity(given, "count"), "hosts.yaml"
    entry = profile_for(load_profiles(), str(session.variables.get("node_profile") or ""), ()).entry("hcas", bare_metal=True)
    return (float(entry.value), entry.source) if entry is not None else (None, "")


def route(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """The interface and address that lead to the peers: what groups bind to, instead of what a host name resolves to."""
    host = (session.host,)
    if not peers.addresses:
        return Reading()
    outcome = session.ask("probe_route", {"peers": list(peers.addresses)}, step.deadline)
    if outcome.failed:
        return unknown("network.route", host, "ip route get", outcome.msg)
    found = Answer("probe_route", outcome.values)
    facts.interface, facts.address = found.text("interface"), found.address("source")
    # An interface has an MTU; only "no route" has none.
    facts.mtu = int(found.number("mtu", 1 if facts.interface else 0))
    # A link without a device below it (veth, lab) says nothing about a wire's speed.
    facts.virtual = not facts.links.get(facts.interface, {}).get("driver")
    reading = Reading()
    way = Measurement("network.route", bool(facts.interface and facts.address), "bool", host, "ip route get", detail="; ".join(outcome.warnings))
    reading.must_be_true(way, f"peers are reached over {facts.interface or 'an interface of this node'}")
    return reading.join([path_mtu(session, step.deadline, facts, found.parts("routes"))] if facts.mtu else [])


def clock(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """This clock against the controller's, by the quickest of a few answers; judged over the fleet (fleet_checks.clocks)."""
    facts.clock = None  # of an earlier time, where the step is repeated
    for _ in range(CLOCK_TRIES):
        began = time.time()
        outcome = session.ask("probe_clock", {}, step.deadline)
        took = time.time() - began
        if outcome.failed:
            return unknown("clock.offset", (session.host,), "probe_clock", outcome.msg)
        if facts.clock is None or took / 2 < facts.clock.uncertainty:
            facts.clock = Clock(Answer("probe_clock", outcome.values).number("time_ns") / 1e9 - began - took / 2, took / 2)
    return Reading()


def torch(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """The interpreter that has torch, and the GPUs that it sees."""
    host = (session.host,)
    given = str(session.variables.get("torch_python") or "")
    tried = []
    for python in [given] if given else ["python3", ROLE_VENV]:
        outcome = session.ask("workload", {"python": python, "source": workload_source("torch_facts"), "timeout": step.deadline}, step.deadline)
        found = next((record for record in records(str(outcome.values.get("stdout", ""))) if record.get("kind") == "torch"), None)
        if found is not None:
            return _torch_found(session, facts, python, found)
        tried.append(f"{python}: {_why_no_torch(outcome)}")
    if any("did not end" in text for text in tried):
        return unknown("torch.import", host, "import torch", "; ".join(tried))
    reading = Reading()
    detail = "; ".join(tried) + "; set torch_python in the inventory, or let the role `torch` make an environment"
    reading.must_be_true(Measurement("torch.import", False, "bool", host, "import torch", detail=detail), "a training job needs it")
    return reading


def _torch_found(session: Session, facts: NodeFacts, python: str, found: Mapping[str, Any]) -> Reading:
    said = Answer(f"torch_facts under {python}", found)
    version, count, names = said.text("torch"), int(said.number("gpus")), tuple(said.texts("names"))
    facts.torch_python, facts.torch, facts.gpus, facts.gpu_names = python, version, count, names
    reading = Reading()
    conditions = {key: found.get(key) for key in ("torch", "python", "cuda", "nccl")}
    reading.must_be_true(Measurement("torch.import", True, "bool", (session.host,), f"{python} -c 'import torch'", conditions), f"torch {facts.torch}")
    expected = session.variables.get("expected_gpus")
    least, why = float(facts.listed_gpus), "GPUs that the driver lists"
    if expected not in (None, ""):
        least, why = quantity(expected, "count"), "expected_gpus of the inventory"
    if least:
        detail = f"torch {facts.torch} sees {facts.gpus}: a GPU fell off the bus, or this torch was built without CUDA"
        measurement = Measurement("torch.gpus_seen", float(facts.gpus), "count", (session.host,), "torch.cuda.device_count", detail=detail)
        reading.add(measurement, Expectation("torch.gpus_seen", "at_least", least, "count", why, session.host))
    return reading


def _why_no_torch(outcome: Outcome) -> str:
    if outcome.failed:
        return outcome.msg
    if outcome.values.get("timed_out"):
        return "importing torch did not end within the deadline"
    return (str(outcome.values.get("stderr", "")).strip().splitlines() or ["it said nothing"])[-1][:200]


CHECKS: Mapping[str, Check] = {
    "login": login, "pci": pci, "host": host_step, "hca": hca, "gpu": gpu, "nvme": nvme, "errors": errors, "fabric": fabric, "route": route,
    "clock": clock, "torch": torch,
    **storage_checks.CHECKS,
}
