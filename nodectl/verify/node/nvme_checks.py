"""Step nvme: how many NVMe disks there are, and their own health logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.verify.answer import Answer
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.members import NodeFacts
from nodectl.verify.node.check import Peers
from nodectl.verify.node.node_table import load_table
from nodectl.verify.node.pci_checks import hardware_root
from nodectl.verify.node.profiles import load_profiles, profile_for
from nodectl.verify.node.table_reading import Context, read_rows
from nodectl.verify.node.tier_checks import local_nvme
from nodectl.verify.session import Session
from nodectl.verify.suite_load import SuiteStep

KIND = "nvme"


def nvme(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """Asked as root: health logs are not for everybody. A disk that does not answer is named with its deadline."""
    root, host, hardware = hardware_root(session.variables), session.host, facts.hardware
    outcome = session.ask("probe_nvme", {"root": root, "timeout": step.deadline / 3}, step.deadline, root=True)
    if outcome.failed:
        return unknown("nvme.count", (host,), "sysfs nvme", outcome.msg)
    said = Answer("probe_nvme", outcome.values)
    controllers = [_labelled(entry) for entry in said.parts("controllers")]
    hardware.local_nvme = None if said.truth("simulated") else local_nvme(controllers)  # what is mounted lies on real disks
    silent = [f"{entry['label']}: {entry['error']}" for entry in controllers if entry.get("error")]
    answering = [entry for entry in controllers if not entry.get("error")]
    reading, words = Reading(), hardware.words() | ({"nvme"} if answering else set())
    if silent:
        reading.join([unknown("nvme.health", (host,), "nvme smart-log", "; ".join(silent[:8]))])
    profile = profile_for(load_profiles(), str(session.variables.get("node_profile") or ""), ())
    context = Context(host, frozenset(words), profile, session.variables, said.truth("simulated"))
    answer = {"count": len(controllers), "controllers": answering, "firmware": _firmware(controllers)}
    found, hardware.traits[KIND] = read_rows(load_table(KIND), answer, context)
    return reading.join([found])


def _labelled(entry: Mapping[str, Any]) -> dict[str, Any]:
    spare, threshold = entry.get("spare"), entry.get("spare_threshold")
    # Both 0: a disk without spare blocks of its own to speak of (emulated ones); one that is worn out has a threshold.
    told = isinstance(spare, (int, float)) and isinstance(threshold, (int, float))
    left = spare - threshold if told and (spare or threshold) else None  # type: ignore[operator]
    return {**entry, "label": f"{entry.get('name')} ({entry.get('model')} {entry.get('serial')})".replace(" )", ")"), "spare_left": left}


def _firmware(controllers: Sequence[Mapping[str, Any]]) -> str:
    """Model and firmware of each kind of disk, once."""
    return ", ".join(sorted({f"{entry.get('model')} {entry.get('firmware')}" for entry in controllers}))
