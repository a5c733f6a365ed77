"""NVIDIA GPUs, and whether a network card may read their memory directly."""

from __future__ import annotations

import csv
import os
import re
from typing import Any, Dict, List, Optional, Tuple

from nodectl.agent.contract import Failed
from nodectl.agent.facts.bounded import bounded
from nodectl.agent.facts.platform import text
from nodectl.agent.facts.rdma import entries
from nodectl.agent.system import System

# A healthy nvidia-smi without persistence mode takes 2 to 5 s on eight GPUs; one that hangs, hangs for good.
LIMIT = 20.0
_PROC_LIMIT = 5.0
NVIDIA = "0x10de"
# PCI classes: VGA and 3D controller, and "other bridge", which is what an NVSwitch says it is.
GPU_CLASSES, SWITCH_CLASS = ("0x0300", "0x0302"), "0x0680"
_FIELDS = ("index", "uuid", "name", "pci.bus_id", "memory.total", "driver_version")


def gpus(system: System, root: str) -> Tuple[List[Dict[str, Any]], List[str]]:
    """(GPUs, sentences about what is missing): by nvidia-smi, else what the driver lists in /proc."""
    # The driver's own files hang where the driver does; what they do not say is then said by nobody.
    nothing: List[Dict[str, Any]] = []
    listed, _ = bounded("GPUs", lambda: from_proc(root), nothing, _PROC_LIMIT)
    found, problem = _from_smi(system)
    if problem:
        if listed:
            problem += f"; the driver lists {len(listed)} GPU(s)"
        return listed, [problem]
    if found is None:
        if listed:
            return listed, [f"nvidia-smi is not installed; the driver lists {len(listed)} GPU(s)"]
        return [], ["no NVIDIA GPU: neither nvidia-smi nor /proc/driver/nvidia/gpus is there"]
    return found, [] if found else ["nvidia-smi lists no GPU"]


def _from_smi(system: System) -> Tuple[Optional[List[Dict[str, Any]]], str]:
    program = system.which("nvidia-smi")
    if program is None:
        return None, ""
    try:
        done = system.run([program, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"], timeout=LIMIT)
    except Failed as failed:
        return None, f"nvidia-smi: {failed.msg}"
    if done.rc != 0:
        return None, f"nvidia-smi failed with exit code {done.rc}: {' '.join((done.stdout + done.stderr).split())[:300]}"
    return parse(done.stdout), ""


def parse(output: str) -> List[Dict[str, Any]]:
    """Lines of nvidia-smi's csv,noheader,nounits. A field that is no number (`[N/A]`, an ERR! text) becomes None."""
    result = []
    for row in csv.reader(output.splitlines(), skipinitialspace=True):
        if len(row) == len(_FIELDS):
            index, uuid, name, pci, memory, driver = (field.strip() for field in row)
            result.append({"index": _number(index), "uuid": uuid, "name": name, "pci": pci.lower(), "memory_mib": _number(memory), "driver": driver})
    return result


def _number(value: str) -> Optional[int]:
    return int(value) if value.isdigit() else None


def from_proc(root: str) -> List[Dict[str, Any]]:
    """What the driver itself lists; needs no program, so it cannot hang."""
    base = os.path.join(root, "proc/driver/nvidia/gpus")
    version = re.search(r"\b(\d{3}\.[\d.]+)\b", text(os.path.join(root, "proc/driver/nvidia/version")))
    found = []
    for index, pci in enumerate(entries(base)):
        fields = dict(re.findall(r"^([^:\n]+?):[ \t]*(.*?)[ \t]*$", text(os.path.join(base, pci, "information")), re.MULTILINE))
        found.append({
            "index": index, "uuid": fields.get("GPU UUID", ""), "name": fields.get("Model", ""), "pci": pci, "memory_mib": None,
            "driver": version.group(1) if version else "",
        })
    return found


def on_bus(root: str) -> Tuple[List[Dict[str, str]], int]:
    """(GPUs as the PCI bus shows them, {pci, device as 2330}, in its order; number of NVSwitches). Needs no driver."""
    base = os.path.join(root, "sys/bus/pci/devices")
    found, switches = [], 0
    for pci in entries(base):
        if text(os.path.join(base, pci, "vendor")) == NVIDIA:
            kind = text(os.path.join(base, pci, "class"))
            switches += kind.startswith(SWITCH_CLASS)
            if kind.startswith(GPU_CLASSES):
                found.append({"pci": pci, "device": text(os.path.join(base, pci, "device"))[2:]})
    return found, switches


def nearest(root: str, pci: str, gpus_there: List[Dict[str, str]]) -> Optional[int]:
    """Which GPU (its place in the list) shares most bridges with the card at ``pci``: traffic between them climbs least. None where none shares any."""
    base = os.path.join(root, "sys/bus/pci/devices")
    own = _way(base, pci)
    shared = [_alike(own, _way(base, one["pci"])) for one in gpus_there] if pci else []
    return shared.index(max(shared)) if shared and max(shared) > 0 else None


def _alike(one: List[str], other: List[str]) -> int:
    """How many steps two ways have in common."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def _way(base: str, pci: str) -> List[str]:
    """The bridges from the root complex (pci0000:00) to the device, itself left out."""
    steps = os.path.realpath(os.path.join(base, pci)).split("/")[:-1]
    return next((steps[place:] for place, step in enumerate(steps) if step.startswith("pci")), [])


def direct(root: str) -> Dict[str, bool]:
    """peermem: the module is loaded. dmabuf: the driver is the open kernel module, which exports GPU memory by itself."""
    return {
        "peermem": os.path.isdir(os.path.join(root, "sys/module/nvidia_peermem")) or os.path.isdir(os.path.join(root, "sys/module/nv_peer_mem")),
        "dmabuf": "Open Kernel Module" in text(os.path.join(root, "proc/driver/nvidia/version")),
    }
