"""Step gpu: how many GPUs there are and must be, and the table's rows about each of them, the fabric manager and the driver's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.verify.answer import Answer
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.judging.units import quantity
from nodectl.verify.members import NodeFacts
from nodectl.verify.node.check import Peers
from nodectl.verify.node.hardware import Hardware
from nodectl.verify.node.kernel_log import kernel_events
from nodectl.verify.node.node_table import load_table
from nodectl.verify.node.pci_checks import hardware_root, name
from nodectl.verify.node.profiles import load_profiles, profile_for
from nodectl.verify.node.table_reading import Context, read_rows
from nodectl.verify.node.traits import Trait
from nodectl.verify.node.xid import Found, load_catalogue, sxids, xids
from nodectl.verify.session import Session
from nodectl.verify.suite_load import SuiteStep

KIND = "gpu"
ABSENT = "absent"
_METHOD = "PCI bus, kernel module, nvidia-smi"


def gpu(session: Session, step: SuiteStep, facts: NodeFacts, peers: Peers) -> Reading:
    """A node without GPUs has one check, of their number. An nvidia-smi that hangs is named with its deadline, and nothing is said of its GPUs."""
    root, host = hardware_root(session.variables), session.host
    outcome = session.ask("probe_gpu", {"root": root, "timeout": step.deadline / 2}, step.deadline)
    if outcome.failed:
        return unknown("gpu.count", (host,), "probe_gpu", outcome.msg)
    said, hardware = Answer("probe_gpu", outcome.values), facts.hardware
    gpus, listed, error = said.parts("gpus"), said.texts("listed"), said.text("error")
    hardware.simulated = said.truth("simulated")
    names = [str(entry.get("name") or "") for entry in gpus] or listed or list(facts.gpu_names)
    hardware.profile = profile_for(load_profiles(), str(session.variables.get("node_profile") or ""), names)
    on_bus = [str(device.get("address")) for device in hardware.of("gpu")]
    traits = hardware.traits.setdefault(KIND, {})
    reading = _count(session, hardware, len(gpus) if not error else max(len(listed), len(on_bus)), traits)
    if not (gpus or listed or on_bus):
        return reading
    if error:
        why = "nvidia-smi is not installed" if error == ABSENT else error
        reading.join([unknown("gpu.nvidia_smi", (host,), "nvidia-smi -q -x", f"{why}: nothing can be said of the GPUs")])
    else:
        reading.join([_lost(hardware, host, gpus), _rows(session, hardware, outcome.values, traits)])
        if said.text("nvlink_error"):
            reading.join([unknown("gpu.nvlinks", (host,), "nvidia-smi nvlink -s", said.text("nvlink_error"))])
    return reading.join([_messages(session, hardware, step, root)])


def _count(session: Session, hardware: Hardware, count: int, traits: dict[str, Trait]) -> Reading:
    """The inventory's number, or the profile's, or that of the rest of the fleet. None of them: right is what is there only where that is none."""
    host, reading = session.host, Reading()
    entry = hardware.profile.entry("gpus", "bare_metal" in hardware.words())
    pinned = session.variables.get("expected_gpus")
    measurement = Measurement("gpu.count", float(count), "count", (host,), _METHOD, simulated=hardware.simulated)
    if pinned not in (None, ""):
        reading.add(measurement, Expectation("gpu.count", "at_least", quantity(pinned, "count"), "count", "expected_gpus of the inventory", host, "hosts.yaml"))
    elif entry is not None:
        why = f"GPUs of profile {hardware.profile.name}"
        reading.add(measurement, Expectation("gpu.count", "at_least", float(entry.value), "count", why, host, entry.source))
    else:
        why = "no profile and no expected_gpus of the inventory says how many; a job of equal nodes needs as many on each"
        traits["gpu.count"] = Trait(float(count), "count", _METHOD, why, lone="unknown" if count else "accept", simulated=hardware.simulated)
    return reading


def _lost(hardware: Hardware, host: str, gpus: Sequence[Mapping[str, Any]]) -> Reading:
    """GPUs that are on the bus and not in nvidia-smi's list: the driver could not start them, or they fell off."""
    reading = Reading()
    known = {str(entry.get("pci")) for entry in gpus}
    missing = [name(device) for device in hardware.of("gpu") if str(device.get("address")) not in known]
    if hardware.of("gpu"):
        measurement = Measurement("gpu.lost", float(len(missing)), "count", (host,), _METHOD, simulated=hardware.simulated, detail="; ".join(missing))
        why = "on the PCI bus, but not in nvidia-smi's list: the kernel's log says why the driver gave it up"
        reading.add(measurement, Expectation("gpu.lost", "at_most", 0.0, "count", why, host, "leptonai/gpud (2026-08)"))
    return reading


def _rows(session: Session, hardware: Hardware, values: Mapping[str, Any], traits: dict[str, Trait]) -> Reading:
    answer, words = _derived(values), hardware.words()
    entry = hardware.profile.entry("fabric_manager", "bare_metal" in words)
    if hardware.of("nvswitch") or (entry is not None and entry.value is True and len(answer["gpus"]) > 1):
        words.add("nvswitch")
    if len(answer["gpus"]) > 1:
        words.add("several_gpus")
    if answer["awake"]:
        words.add("awake")
    imex = hardware.profile.entry("imex", "bare_metal" in words)
    if imex is not None and imex.value is True:
        words.add("imex")
    rows = [row for row in load_table(KIND) if "kernel_log" not in row.when]
    context = Context(session.host, frozenset(words), hardware.profile, session.variables, hardware.simulated)
    reading, found = read_rows(rows, answer, context)
    traits.update(found)
    return reading


def _derived(values: Mapping[str, Any]) -> dict[str, Any]:
    """The probe's answer with what the table reads beside it: comparisons of two versions, two modes, two ways."""
    gpus = [_labelled(entry) for entry in values["gpus"]]
    manager = Answer("probe_gpu", values).part("fabric_manager").values
    driver = str(values.get("driver") or values.get("library") or "")
    direct = Answer("probe_gpu", values).part("gpudirect")
    # Not there is one thing, could not be asked another.
    state = manager.get("state") or (None if manager.get("error") else "")
    return {
        **values, "gpus": gpus, "driver": driver, "fabric_manager": {**manager, "state": state},
        "awake": [entry for entry in gpus if entry.get("pstate") == "P0"],
        "driver_mismatch": _mismatch("kernel module", values.get("driver"), "nvidia-smi", values.get("library")),
        "fabric_manager_mismatch": _mismatch("fabric manager", manager.get("version"), "driver", driver) if manager.get("version") else None,
        "throttled": _throttled(gpus), "direct": direct.truth("peermem") or direct.truth("dmabuf"),
    }


def _labelled(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **entry, "label": f"GPU {entry.get('index')} ({entry.get('pci')})", "ecc_settled": _settled(entry, "ecc"), "mig_settled": _settled(entry, "mig"),
    }


def _settled(entry: Mapping[str, Any], mode: str) -> bool | None:
    now, then = entry.get(mode), entry.get(f"{mode}_pending")
    return None if now is None or then is None else now == then


def _mismatch(one: str, first: Any, other: str, second: Any) -> list[str]:
    """A side that says nothing (no /proc, an old tool) cannot differ."""
    return [f"{one} {first}, {other} {second}"] if first and second and first != second else []


def _throttled(gpus: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """GPUs that are slow for a bad reason; None where no GPU says anything about it."""
    told = [entry for entry in gpus if isinstance(entry.get("slow"), list)]
    return [f"{entry['label']}: {', '.join(entry['slow'])}" for entry in told if entry["slow"]] if told else None


def _messages(session: Session, hardware: Hardware, step: SuiteStep, root: str) -> Reading:
    """Xid and SXid since boot. A code that nobody knows is unknown where nothing worse is there."""
    events, _, error = kernel_events(session, root, step.deadline)
    if events is None:
        return unknown("gpu.xid", (session.host,), "the kernel's log of this boot", error)
    catalogue = load_catalogue()
    found = {"gpu.xid": xids(events, catalogue), "gpu.sxid": sxids(events, catalogue)}
    answer = {"xids": list(found["gpu.xid"].severe), "sxids": list(found["gpu.sxid"].severe)}
    rows = [row for row in load_table(KIND) if "kernel_log" in row.when]
    reading, _ = read_rows(rows, answer, Context(session.host, frozenset(["kernel_log"]), simulated=hardware.simulated))
    reading.measurements = [_with_rest(measurement, found[measurement.name]) for measurement in reading.measurements]
    return reading


def _with_rest(measurement: Measurement, found: Found) -> Measurement:
    """Messages that ask for nothing are kept beside the verdict; unlisted ones take the pass away."""
    raw = "; ".join([*found.severe, *found.unlisted, *found.mild])[:4000]
    error = "; ".join(found.unlisted) if found.unlisted and not found.severe else ""
    return Measurement(
        measurement.name, measurement.value, measurement.unit, measurement.hosts, measurement.method, raw=raw, error=error,
        simulated=measurement.simulated, detail=measurement.detail,
    )
