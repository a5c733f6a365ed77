"""Checks of storage on one node: what lies under the scratch disk and the file mounts, and how fast it is, as measurements with their demands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.check import Check, Peers
from nodectl.verify.judge import Expectation
from nodectl.verify.measurement import Measurement
from nodectl.verify.members import NodeFacts
from nodectl.verify.reading import Reading, unknown
from nodectl.verify.session import CLEANUP, Session
from nodectl.verify.suite_load import SuiteStep
from nodectl.verify.units import quantity
from nodectl.wire.outcome import Outcome


def mounts(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """The scratch disk is a disk and may be written by who logs in; each file mount is mounted and answers."""
    reading = Reading()
    if scratch_wanted(session.variables):
        reading.join([_scratch_mount(session, step, facts)])
    for path, wanted in (session.variables.get("file_mounts") or {}).items():
        reading.join([_object_mount(session, step, facts, str(path), wanted)])
    return reading


def scratch_wanted(variables: Mapping[str, Any]) -> bool:
    """As the role nvme_scratch decides it."""
    return bool(variables.get("scratch_devices")) or str(variables.get("disk_tier", "best")) == "best"


def scratch_path(variables: Mapping[str, Any]) -> str:
    return str(variables.get("nvme_scratch_mount") or "/scratch").rstrip("/") or "/"


def _scratch_mount(session: Session, step: SuiteStep, facts: NodeFacts) -> Reading:
    host, path = (session.host,), scratch_path(session.variables)
    outcome = session.ask("probe_storage_target", {"path": path}, step.deadline)
    if outcome.failed:
        return unknown("scratch.mounted", host, "probe_storage_target", outcome.msg)
    found = Answer("probe_storage_target", outcome.values)
    target, fstype, facts.scratch_kind = found.text("target"), found.text("fstype"), found.text("kind")
    facts.scratch_mounted = not (found.truth("is_tmpfs") or found.truth("is_overlay")) and target == path
    lies_on = f"{path} lies on {found.values.get('source')} ({fstype}, mounted on {target})"
    reading = Reading()
    reading.must_be_true(
        Measurement("scratch.mounted", facts.scratch_mounted, "bool", host, "/proc/self/mountinfo", {"path": path}, detail=lies_on),
        f"{path} is a filesystem of its own on a disk",
    )
    if facts.scratch_mounted:
        wanted = str(session.variables.get("nvme_scratch_fstype") or "xfs")
        kind = Measurement("scratch.fstype", fstype, "text", host, "/proc/self/mountinfo", {"path": path})
        reading.add(kind, Expectation("scratch.fstype", "equals", wanted, "text", "nvme_scratch_fstype", host[0]))
    return reading


def _object_mount(session: Session, step: SuiteStep, facts: NodeFacts, path: str, wanted: Any) -> Reading:
    name, host = f"mount:{path}", (session.host,)
    cached = isinstance(wanted, Mapping) and str(wanted.get("mode", "MOUNT")) == "MOUNT_CACHED"
    # As the account that logs in: that is who trains. Only a cached mount is made to be written.
    outcome = session.ask("probe_object_mount", {"path": path, "write": cached, "timeout": step.deadline / 3}, step.deadline)
    if outcome.failed:
        return unknown(name, host, "probe_object_mount", outcome.msg)
    reading = Reading()
    usable, reason = Answer("probe_object_mount", outcome.values).truth("usable"), str(outcome.values.get("reason", ""))
    if usable:
        facts.usable_mounts.add(path)
    reading.must_be_true(
        Measurement(name, usable, "bool", host, "list, write, read back", {"path": path}, detail=reason),
        "mounted, answers, " + ("written and read back" if cached else "can be listed"),
    )
    return reading


def scratch(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """Sequential write and read of a file on the scratch disk, past the page cache where the filesystem lets us, as the account that trains."""
    if not scratch_wanted(session.variables):
        return Reading()
    if not facts.scratch_mounted:
        return unknown("disk.scratch.seq_write", (session.host,), "fio", f"{scratch_path(session.variables)} is no disk's mount, so nothing is measured there")
    size = int(step.option("gpu_size") if facts.gpus else step.option("size"))
    device = facts.scratch_kind if facts.scratch_kind in ("nvme", "loop") else "other"
    reading = Reading()
    for rw in ("write", "read"):
        order = {"path": scratch_path(session.variables), "rw": rw, "size": str(size), "runtime": step.option("runtime"), "timeout": step.deadline / 2}
        reading.join([_figure(session, f"disk.scratch.seq_{rw}", session.ask("probe_fio", order, step.deadline / 2, cleanup=CLEANUP), device, "scratch_floor")])
    return reading


def _figure(session: Session, name: str, outcome: Outcome, device: str, site: str) -> Reading:
    """A bandwidth with the conditions it was measured under; ``site`` is the inventory's variable for a bar of its own."""
    if outcome.failed:
        return unknown(name, (session.host,), "fio", outcome.msg)
    found = outcome.values
    conditions = {**_mapping(found.get("conditions")), "device": device, "direct": found.get("direct")}
    buffered = "" if found.get("direct") else f"direct I/O is not available here ({found.get('direct_reason')}), measured through the page cache"
    value, raw = Answer("probe_fio", found).number("bytes_per_second"), "; ".join([*([buffered] if buffered else []), *_list(found.get("notes"))])
    reading = Reading()
    reading.add(Measurement(name, value, "B/s", (session.host,), str(found.get("method")), conditions, raw, simulated=device == "loop"))
    return _with_site_bar(reading, session, name, site)


def _with_site_bar(reading: Reading, session: Session, name: str, site: str) -> Reading:
    wanted = session.variables.get(site)
    if wanted in (None, ""):
        return reading
    reading.expectations.append(Expectation(name, "at_least", quantity(wanted, "B/s"), "B/s", f"{site} of the inventory", session.host, "hosts.yaml"))
    return reading


def _mapping(value: Any) -> Mapping[str, Any]:
    """What only describes a figure: without it the figure stands, and no floor fits that asks for it."""
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


PHASES = ("batch_read", "model_load", "checkpoint_write")


def phases(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """What a training run does with each file mount: reads batches, loads a model, writes a checkpoint."""
    reading = Reading()
    mounted = [str(path) for path in session.variables.get("file_mounts") or {}]
    sizes = {key: str(int(step.option(key))) for key in ("batch_size", "model_size", "checkpoint_size")}
    for path in mounted:
        if path not in facts.usable_mounts:
            # The bare folder below a mount that is not there would answer, with the system disk's figures.
            reading.join([unknown(f"phase:{path}", (session.host,), "probe_phases", f"not measured: {path} was not found mounted and usable")])
            continue
        share = step.deadline / len(mounted)
        order = {"path": path, "batches": int(step.option("batches")), "timeout": share, **sizes}
        reading.join([_phases_of(session, path, session.ask("probe_phases", order, share, cleanup=CLEANUP), facts)])
    return reading


def _phases_of(session: Session, path: str, outcome: Outcome, facts: NodeFacts) -> Reading:
    reading = Reading()
    for phase in PHASES:
        name = f"phase.{phase}:{path}"
        if outcome.failed:
            reading.join([unknown(name, (session.host,), "probe_phases", outcome.msg)])
            continue
        try:
            found = Answer("probe_phases", outcome.values).part(phase)
            value, method = found.number("bytes_per_second"), str(outcome.values.get("method"))
        except Garbled as garbled:
            reading.join([unknown(name, (session.host,), "probe_phases", str(garbled))])
            continue
        conditions = {**_mapping(outcome.values.get("conditions")), "cache": found.values.get("cache"), "device": "mount"}
        # A host whose scratch disk is a loop device is one to rehearse on, and so is its store.
        reading.add(Measurement(name, value, "B/s", (session.host,), method, conditions, simulated=facts.scratch_kind == "loop"))
        _with_site_bar(reading, session, name, "file_mount_floor")
    return reading


CHECKS: Mapping[str, Check] = {"mounts": mounts, "scratch": scratch, "phases": phases}
