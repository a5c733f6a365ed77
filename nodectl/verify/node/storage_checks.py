"""Checks of storage on one node: what lies under the scratch disks and the file mounts, and how fast it is, as measurements with their demands.

A figure counts only with proof that the storage gave it: the device's own counters, a file above the memory, direct I/O, or the object
store's count. Without proof it is shown, and unknown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.judging.units import quantity
from nodectl.verify.members import NodeFacts
from nodectl.verify.node.check import Check, Peers
from nodectl.verify.node.tier_checks import Scratch, disk_tier
from nodectl.verify.session import CLEANUP, GRACE, Session
from nodectl.verify.suite_load import SuiteStep
from nodectl.wire.outcome import Outcome

PHASES = ("batch_read", "model_load", "checkpoint_write")
# fio's name of each kind of access and ours.
WAYS: Mapping[str, str] = {"write": "seq_write", "read": "seq_read", "randread": "rand_read", "randwrite": "rand_write", "fsync": "fsync"}
# Below one of these errors of the kernel the disk cannot be used, whatever its speed is.
_BROKEN = ("Input/output error", "Read-only file system", "No space left on device", "Structure needs cleaning", "Stale file handle", "Disk quota exceeded")

# The mark of roles/object_cache (files/object-mount): the copy is whole.
COPIED = ".nodectl-copied"
# object_flush looks once more after its time is up, for 30 s at the most, and pauses before.
LOOK = 35.0
# What the agent says of a step that never came back.
_HANGS = ("did not end within", "hangs in the kernel")


def mounts(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """Scratch disks are disks and may be written by who logs in; each file mount is mounted and answers."""
    reading = Reading()
    if scratch_wanted(session.variables):
        for path in _scratch_paths(session, step):
            reading.join([_scratch_mount(session, step, facts, path)])
    for path, wanted in (session.variables.get("file_mounts") or {}).items():
        reading.join([_object_mount(session, step, facts, str(path), wanted)])
    return reading


def scratch_wanted(variables: Mapping[str, Any]) -> bool:
    """As the role nvme_scratch decides it."""
    return bool(variables.get("scratch_devices")) or str(variables.get("disk_tier", "best")) == "best"


def scratch_path(variables: Mapping[str, Any]) -> str:
    return str(variables.get("nvme_scratch_mount") or "/scratch").rstrip("/") or "/"


def _scratch_paths(session: Session, step: SuiteStep) -> list[str]:
    """The scratch disk, and those with a number behind it that fstab names: disks that could not be striped."""
    first = scratch_path(session.variables)
    devices = session.variables.get("scratch_devices")
    if not isinstance(devices, (list, tuple)) or len(devices) < 2:
        return [first]
    outcome = session.ask("probe_mounts", {"timeout": step.deadline / 3}, step.deadline)
    found = [] if outcome.failed else [str(entry.get("path")) for entry in Answer("probe_mounts", outcome.values).parts("mounts")]
    return [first, *sorted(path for path in found if re.fullmatch(re.escape(first) + r"[0-9]+", path))]


def _at(name: str, session: Session, path: str) -> str:
    """A check's name; what is measured at another place than the first scratch disk says so behind a colon."""
    return name if path == scratch_path(session.variables) else f"{name}:{path}"


def _scratch_mount(session: Session, step: SuiteStep, facts: NodeFacts, path: str) -> Reading:
    host, name = (session.host,), _at("scratch.mounted", session, path)
    outcome = session.ask("probe_storage_target", {"path": path, "write": True, "timeout": step.deadline / 3}, step.deadline)
    if outcome.failed:
        return _failed(session, name, "probe_storage_target", outcome.msg)
    found = Answer("probe_storage_target", outcome.values)
    target, fstype, kind, disks = found.text("target"), found.text("fstype"), found.text("kind"), found.texts("disks")
    free = found.number("free_bytes")
    if kind and not disks:
        raise Garbled(f"probe_storage_target calls what lies under {path} {kind} and names no disk: nothing can be concluded from it")
    mounted = not (found.truth("is_tmpfs") or found.truth("is_overlay")) and target == path
    lies_on = f"{path} lies on {found.values.get('source')} ({fstype}, mounted on {target})"
    reading, table, conditions = Reading(), "/proc/self/mountinfo", {"path": path}
    reading.must_be_true(Measurement(name, mounted, "bool", host, table, conditions, detail=lies_on), f"{path} is a filesystem of its own on a disk")
    if facts.hardware.local_nvme is not None:
        lies = Scratch(path, kind or str(found.values.get("source")), tuple(disks), facts.hardware.local_nvme, mounted)
        reading.join([_reached(session, step, lies)])
    if not mounted:
        return reading
    wanted, name = str(session.variables.get("nvme_scratch_fstype") or "xfs"), _at("scratch.fstype", session, path)
    measurement = Measurement(name, fstype, "text", host, table, conditions)
    reading.add(measurement, Expectation(name, "equals", wanted, "text", "nvme_scratch_fstype", host[0]))
    writable, why = found.truth("writable"), f"{path}: {found.values.get('write_reason')}"
    name = _at("scratch.writable", session, path)
    reading.must_be_true(Measurement(name, writable, "bool", host, "write and fsync a small file", conditions, detail=why), "jobs write there")
    if writable:
        facts.scratch[path], facts.room[path] = kind, free
    return reading


def _reached(session: Session, step: SuiteStep, lies: Scratch) -> Reading:
    """What disk_tier came to. Which NVMe is the system's is asked only where it matters: a scratch disk that is none, beside NVMe."""
    if lies.unused and not lies.on_nvme and not lies.simulated:
        root = session.ask("probe_storage_target", {"path": "/", "timeout": step.deadline / 3}, step.deadline)
        if root.failed:
            return unknown(_at("disk_tier", session, lies.path), (session.host,), "probe_storage_target", root.msg)
        lies = replace(lies, system=tuple(Answer("probe_storage_target", root.values).texts("disks")))
    return disk_tier(session.host, session.variables, _at("disk_tier", session, lies.path), lies)


def _mounted(variables: Mapping[str, Any]) -> list[str]:
    """File mounts that an object store lies behind; a COPY lies on a disk of the node, and is as fast as that."""
    return [str(path) for path, wanted in (variables.get("file_mounts") or {}).items() if not _is_copy(wanted)]


def _is_copy(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and wanted.get("mode") == "COPY"


def _copy(session: Session, step: SuiteStep, path: str) -> Reading:
    """The role leaves a mark when all is there."""
    name, host = f"mount:{path}", (session.host,)
    outcome = session.ask("probe_storage_target", {"path": f"{path}/{COPIED}", "timeout": step.deadline / 3}, step.deadline)
    if outcome.failed:
        return _failed(session, name, "probe_storage_target", outcome.msg)
    found, reading = Answer("probe_storage_target", outcome.values), Reading()
    whole, target = found.truth("exists"), found.text("target")
    conditions = {"path": path, "mode": "COPY", "target": target, "free_bytes": found.number("free_bytes")}
    detail = f"{path} (on {target}) has no {COPIED}: the copy is not there, or not whole; systemctl status 'nodectl-cache-*' says why"
    reading.must_be_true(Measurement(name, whole, "bool", host, "the mark of a whole copy", conditions, detail=detail), "copied in full")
    return reading


def _object_mount(session: Session, step: SuiteStep, facts: NodeFacts, path: str, wanted: Any) -> Reading:
    if _is_copy(wanted):
        return _copy(session, step, path)
    name, host = f"mount:{path}", (session.host,)
    cached = isinstance(wanted, Mapping) and str(wanted.get("mode", "MOUNT")) == "MOUNT_CACHED"
    # As the account that logs in: that is who trains. Only a cached mount is made to be written.
    outcome = session.ask("probe_object_mount", {"path": path, "write": cached, "timeout": step.deadline / 3}, step.deadline)
    if outcome.failed:
        return unknown(name, host, "probe_object_mount", outcome.msg)
    reading = Reading()
    usable, reason = Answer("probe_object_mount", outcome.values).truth("usable"), str(outcome.values.get("reason", ""))
    store, silent = _store_says(session, step, path)
    if usable and silent:
        # A listing that the daemon remembers is all that is left of the store, for some minutes.
        usable, reason = False, f"{path} still shows the names it remembers"
    if usable:
        facts.usable_mounts.add(path)
    elif store:
        reason += f"; {store}"
    reading.must_be_true(
        Measurement(name, usable, "bool", host, "list, write, read back", {"path": path}, detail=reason),
        "mounted, answers, " + ("written and read back" if cached else "can be listed"),
    )
    return reading


def _store_says(session: Session, step: SuiteStep, path: str) -> tuple[str, bool]:
    """A mount fails for its own reasons, or for those of what lies behind it: asked past it, which only root can. And whether it was asked in vain."""
    outcome = session.ask("probe_object_mount", {"path": path, "write": False, "store": True, "timeout": step.deadline / 3}, step.deadline + GRACE, root=True)
    if outcome.failed:
        return outcome.msg, False
    return str(outcome.values.get("store", "")), outcome.values.get("store_answers") is False


def scratch(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """In sequence, at random and synced, on a file on each scratch disk, as the account that trains."""
    if not scratch_wanted(session.variables):
        return Reading()
    first = scratch_path(session.variables)
    if first not in facts.scratch:
        why = f"not measured: {first} was not found to be a disk's mount that can be written"
        return unknown("disk.scratch.seq_write", (session.host,), "fio", why)
    size, share = int(step.option("gpu_size") if facts.gpus else step.option("size")), step.deadline / len(facts.scratch)
    reading = Reading()
    for path, kind in sorted(facts.scratch.items()):
        order = {"path": path, "ways": list(WAYS), "size": str(size), "runtime": step.option("runtime"), "timeout": share}
        outcome = session.ask("probe_fio", order, share, cleanup=CLEANUP)
        conditions = {"device": kind if kind in ("nvme", "loop") else "other", "path": path, "free_bytes": facts.room[path]}
        names = {way: _at(f"disk.scratch.{what}", session, path) for way, what in WAYS.items()}
        reading.join(_ways(session, outcome, names, conditions, step.option("max_fsync"), "scratch_floor"))
    return reading


def mount_io(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """fio on each file mount. Reads are of copies made within the store, which no cache on this node has seen."""
    reading = Reading()
    mounted = _mounted(session.variables)
    for path in mounted:
        if path not in facts.usable_mounts:
            reading.join([_not_usable(session, f"mount.seq_write:{path}", "fio", path)])
            continue
        share = step.deadline / len(mounted)
        size, runtime = str(int(step.option("size"))), step.option("runtime")
        order = {"path": path, "user": session.target.user, "ways": list(WAYS), "size": size, "runtime": runtime, "timeout": share}
        outcome = session.ask("probe_fio", order, share, root=True, cleanup=CLEANUP)
        if outcome.failed and any(word in outcome.msg for word in _HANGS):
            facts.usable_mounts.discard(path)  # whoever asks it again hangs again
        names = {way: f"mount.{what}:{path}" for way, what in WAYS.items()}
        conditions = {"device": "mount", "path": path, "simulated": _rehearsal(facts)}
        reading.join(_ways(session, outcome, names, conditions, step.option("max_fsync"), ""))
    return reading


def _rehearsal(facts: NodeFacts) -> bool:
    """A host whose scratch disk is a loop device is one to rehearse on, and so is its store."""
    return "loop" in facts.scratch.values()


def _not_usable(session: Session, name: str, method: str, path: str) -> Reading:
    """The bare folder below a mount that is not there would answer, with the system disk's figures."""
    return unknown(name, (session.host,), method, f"not measured: {path} was not found mounted and usable, or hung")


def _ways(session: Session, outcome: Outcome, names: Mapping[str, str], conditions: Mapping[str, Any], most: float, site: str) -> Iterator[Reading]:
    """One figure for each kind of access; ``most`` is the longest fsync (s), ``site`` the inventory's variable for a bar of sequential access."""
    if outcome.failed:
        yield _no_room(session, outcome, names["write"]) or _failed(session, names["write"], "fio", outcome.msg)
        return
    ways = Answer("probe_fio", outcome.values).part("ways")
    for way, name in names.items():
        try:
            found = ways.part(way)
            if found.values.get("error"):
                yield _failed(session, name, "fio", str(found.values["error"]))
            else:
                yield _figure(session, name, way, found, conditions, most, site)
        except Garbled as garbled:
            yield unknown(name, (session.host,), "fio", str(garbled))


def _no_room(session: Session, outcome: Outcome, name: str) -> Reading | None:
    """A disk too full to be measured is too full to be used; None where the probe failed for another reason."""
    free, needed = outcome.values.get("free_bytes"), outcome.values.get("needed_bytes")
    if not isinstance(free, (int, float)) or not isinstance(needed, (int, float)):
        return None
    reading, name = Reading(), _beside(name, "free")
    measurement = Measurement(name, float(free), "B", (session.host,), "statvfs", detail=outcome.msg)
    reading.add(measurement, Expectation(name, "at_least", float(needed) / 0.9, "B", "what the test needs, with a tenth left free", session.host))
    return reading


def _beside(name: str, what: str) -> str:
    """Another check of the same place: "disk.scratch.seq_write:/scratch2" → "disk.scratch.free:/scratch2"."""
    base, colon, place = name.partition(":")
    return f"{base.rpartition('.')[0]}.{what}{colon}{place}"


def _failed(session: Session, name: str, method: str, error: str) -> Reading:
    """Unknown, unless the error itself says that the storage is at fault."""
    if not any(word in error for word in _BROKEN):
        return unknown(name, (session.host,), method, error)
    reading = Reading()
    measurement = Measurement(_beside(name, "works"), False, "bool", (session.host,), method, detail=error)
    reading.must_be_true(measurement, "files are written and read without an error")
    return reading


def _figure(session: Session, name: str, way: str, found: Answer, conditions: Mapping[str, Any], most: float, site: str) -> Reading:
    """With the conditions it was measured under, fio's own JSON, and proof; without proof it is shown and unknown."""
    host, proof, text = (session.host,), found.text("proof"), str(found.values.get("proof_text", ""))
    kept = {**_mapping(found.values.get("conditions")), **conditions, "direct": found.values.get("direct"), "proof": proof, "proof_text": text}
    for key in ("iops", "latency_s", "sync_latency_s", "seconds", "bytes"):
        kept[key] = found.values.get(key)
    simulated, raw = bool(kept.pop("simulated", kept["device"] == "loop")), str(found.values.get("raw", "")) or "; ".join(_list(found.values.get("notes")))
    reading = Reading()
    error = "" if proof else f"no proof that the storage was measured: {text}"
    if way == "fsync":
        value, demand = found.part("sync_latency_s").number("p99"), Expectation(name, "at_most", most, "s", "99 of 100 fsyncs", session.host)
        reading.add(Measurement(name, value, "s", host, str(found.values.get("method")), kept, raw, error, simulated), demand)
        return reading
    reading.add(Measurement(name, found.number("bytes_per_second"), "B/s", host, str(found.values.get("method")), kept, raw, error, simulated))
    return _with_site_bar(reading, session, name, site) if way in ("read", "write") and site else reading


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


def phases(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """What a training run does with each file mount: reads batches, loads a model, writes a checkpoint and needs it to be safe."""
    reading = Reading()
    mounted = _mounted(session.variables)
    sizes = {key: str(int(step.option(key))) for key in ("batch_size", "model_size", "checkpoint_size")}
    for path in mounted:
        if path not in facts.usable_mounts:
            reading.join([_not_usable(session, f"phase:{path}", "probe_phases", path)])
            continue
        share = step.deadline / len(mounted)
        order = {"path": path, "user": session.target.user, "batches": int(step.option("batches")), "timeout": share, **sizes}
        # As root: only root may ask the daemon of the mount, and the store past it. The files are the account's all the same.
        reading.join([_phases_of(session, path, session.ask("probe_phases", order, share, root=True, cleanup=CLEANUP), facts)])
    return reading


def _phases_of(session: Session, path: str, outcome: Outcome, facts: NodeFacts) -> Reading:
    reading = Reading()
    if outcome.failed:
        first = _no_room(session, outcome, f"phase.batch_read:{path}") or _failed(session, f"phase.batch_read:{path}", "probe_phases", outcome.msg)
        others = (unknown(f"phase.{phase}:{path}", (session.host,), "probe_phases", outcome.msg) for phase in PHASES[1:])
        return reading.join([first, *others])
    answer = Answer("probe_phases", outcome.values)
    shared = {**_mapping(outcome.values.get("conditions")), "device": "mount", "path": path}
    for phase in PHASES:
        reading.join([_part(session, f"phase.{phase}:{path}", answer, phase, shared, _rehearsal(facts))])
        _with_site_bar(reading, session, f"phase.{phase}:{path}", "file_mount_floor")
    # Only a filesystem that is safe with fsync has nothing to wait for.
    if answer.values.get("durable") is not None or str(shared.get("fstype", "fuse")).startswith("fuse"):
        reading.join([_part(session, f"phase.checkpoint_durable:{path}", answer, "durable", shared, _rehearsal(facts))])
    return reading.join([_store(session, path, answer)])


def _part(session: Session, name: str, answer: Answer, key: str, shared: Mapping[str, Any], simulated: bool) -> Reading:
    """A bandwidth of one phase, or why there is none."""
    method = str(answer.values.get("method"))
    try:
        found = answer.part(key)
        if found.values.get("error"):
            return _failed(session, name, "probe_phases", str(found.values["error"]))
        value, proof = found.number("bytes_per_second"), "store" if key == "durable" else found.text("proof")
    except Garbled as garbled:
        return unknown(name, (session.host,), "probe_phases", str(garbled))
    text = str(found.values.get("proof_text", found.values.get("how", "")))
    more = {key: found.values[key] for key in ("seconds", "bytes", "files_per_second", "batch_seconds") if key in found.values}
    kept = {**shared, "proof": proof, "proof_text": text, **more}
    error = "" if proof else f"no proof that the storage was measured: {text}"
    return Reading([Measurement(name, value, "B/s", (session.host,), method, kept, error=error, simulated=simulated)])


def _store(session: Session, path: str, answer: Answer) -> Reading:
    """Does what comes back equal what was written, and did the store take it? A store that says no is at fault; one that cannot be asked is unknown."""
    name, host, method = f"mount.content:{path}", (session.host,), "SHA-256 of what was written, of what was read, and of what the store gives back"
    content, durable = _mapping(answer.values.get("content")), _mapping(answer.values.get("durable"))
    wrong = _list(content.get("wrong"))
    reading = Reading()
    trouble = [str(part["error"]) for part in (durable, content) if part.get("error")]
    blamed = any(part.get(key) for part in (durable, content) for key in ("corrupt", "not_durable", "store"))
    if wrong or blamed:
        detail = "; ".join([*(f"{path}: {line}" for line in wrong[:5]), *dict.fromkeys(trouble)])
        reading.must_be_true(Measurement(name, False, "bool", host, method, {"path": path}, detail=detail), "what is written is kept, and comes back as it was")
    elif trouble:
        reading.join([unknown(name, host, method, trouble[0])])
    elif not isinstance(content.get("wrong"), list):
        reading.join([unknown(name, host, method, f"probe_phases gave {content!r:.80} for content")])
    else:
        reading.must_be_true(Measurement(name, True, "bool", host, method, {"path": path}), "what is written is kept, and comes back as it was")
    return reading


def flush(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """Whoever is handed the node may restart a mount, or the node: what was written is in the store before. All mounts together have the deadline.

    A mount that was not found usable has its verdict already, and would only be waited for.
    """
    reading, ends = Reading(), time.monotonic() + step.deadline
    for path in sorted(facts.usable_mounts):
        reading.join([_flushed(session, path, max(1.0, ends - time.monotonic()))])
    return reading


def _flushed(session: Session, path: str, seconds: float) -> Reading:
    """Files that are left are a finding, with their names; a queue that cannot be seen is unknown."""
    name, host = f"mount.flushed:{path}", (session.host,)
    outcome = session.ask("object_flush", {"path": path, "timeout": seconds}, seconds + LOOK, root=True)
    if outcome.failed and "count" not in outcome.values:
        return unknown(name, host, "object_flush", outcome.msg)
    empty = Answer("object_flush", outcome.values).number("count") == 0 and not outcome.failed
    reading = Reading()
    found = Measurement(name, empty, "bool", host, "object_flush", {"path": path}, detail=outcome.msg)
    reading.must_be_true(found, "all that was written is in the object store")
    return reading


CHECKS: Mapping[str, Check] = {"mounts": mounts, "scratch": scratch, "mount_io": mount_io, "phases": phases, "flush": flush}
