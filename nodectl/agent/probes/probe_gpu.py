"""probe_gpu: what the driver and its tools say of each GPU; fabric manager, GPUDirect. Every program runs detached, with a deadline."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

from nodectl.agent import nvidia_smi, recorded
from nodectl.agent.contract import Args, Failed
from nodectl.agent.facts import gpu
from nodectl.agent.facts.bounded import bounded
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="GPUs as nvidia-smi shows them (memory errors, links, clocks, modes), NVLinks, fabric manager and GPUDirect.",
    params={
        "timeout": Param("float", "seconds for nvidia-smi; one that hangs in the kernel is left behind", default=15.0),
        "root": recorded.PARAM,
    },
    returns={
        "driver": "version of the kernel module, \"\" without one", "library": "version that nvidia-smi speaks of",
        "listed": "names of the GPUs that the kernel module lists", "gpus": "per GPU what nvidia-smi says; null where a GPU has no such thing",
        "error": "why nvidia-smi said nothing, \"\" otherwise; \"absent\" without it",
        "nvlink_error": "why nvidia-smi said nothing about NVLinks",
        "fabric_manager": "state of its unit (\"\" = not installed), version, error", "persistenced": "state of nvidia-persistenced",
        "imex": "state of nvidia-imex",
        "gpudirect": "peermem, dmabuf: which of the two ways is there", "simulated": "whether a recorded tree was read",
    },
    example="- probe_gpu: {}\n",
)
ABSENT = "absent"
# A unit's state is asked over D-Bus; a version costs one start of a program.
_SHORT = 5.0


def act(system: System, args: Args, check: bool) -> Outcome:
    tree = recorded.Tree(system, args["root"])
    # The driver's own files hang where the driver does.
    nothing: List[Dict[str, Any]] = []
    listed, silent = bounded("GPUs", lambda: gpu.from_proc(tree.root), nothing, _SHORT)
    report, error = _report(tree, args["timeout"])
    error = error or silent
    return Outcome(values={
        "driver": next((entry["driver"] for entry in listed if entry["driver"]), ""), "library": report["driver"],
        "listed": [entry["name"] for entry in listed],
        "gpus": report["gpus"], "error": error, "nvlink_error": report["nvlink_error"], "fabric_manager": _fabric_manager(tree),
        "persistenced": _unit(tree, "nvidia-persistenced")[0], "imex": _asked(*_unit(tree, "nvidia-imex")),
        "gpudirect": gpu.direct(tree.root), "simulated": tree.simulated,
    })


def _report(tree: recorded.Tree, timeout: float) -> Tuple[Dict[str, Any], str]:
    nothing: Dict[str, Any] = {"driver": "", "gpus": [], "nvlink_error": ""}
    if tree.program("nvidia-smi") is None:
        return nothing, ABSENT
    try:
        report = nvidia_smi.parse(tree.run("nvidia-smi", ["-q", "-x"], timeout).stdout)
    except Failed as failed:
        tree.system.stopper.check()
        return nothing, failed.msg
    links, report["nvlink_error"] = _links(tree, timeout / 2)
    for entry in report["gpus"]:
        found = links.get(entry["index"])
        entry.update(nvlinks_up=found["up"] if found else None, nvlinks_listed=found["listed"] if found else None)
    return report, ""


def _links(tree: recorded.Tree, timeout: float) -> Tuple[Dict[int, Dict[str, int]], str]:
    """(links by GPU, why they could not be asked). A GPU that has none is no trouble."""
    try:
        return nvidia_smi.nvlinks(tree.run("nvidia-smi", ["nvlink", "-s"], timeout).stdout), ""
    except Failed as failed:
        tree.system.stopper.check()
        return {}, "" if "not supported" in failed.msg.lower() else failed.msg


def _fabric_manager(tree: recorded.Tree) -> Dict[str, Any]:
    state, error = _unit(tree, "nvidia-fabricmanager")
    version: Optional[str] = None
    if tree.program("nv-fabricmanager") is not None:
        try:
            said = tree.run("nv-fabricmanager", ["--version"], _SHORT).stdout
            found = re.search(r"Fabric Manager version is\s*:\s*(\S+)", said)
            version = found.group(1) if found else None
        except Failed as failed:
            tree.system.stopper.check()
            error = error or failed.msg
    return {"state": state, "version": version, "error": error}


def _asked(state: str, error: str) -> Optional[str]:
    """None where the unit could not be asked: that is not the same as one that is not there."""
    return None if error else state


def _unit(tree: recorded.Tree, name: str) -> Tuple[str, str]:
    """(state, ""): active, failed, inactive, "" for a unit that is not there; or ("", why it could not be asked)."""
    try:
        said = tree.run("systemctl", ["show", name, "--property=LoadState,ActiveState"], _SHORT).stdout
    except Failed as failed:
        tree.system.stopper.check()
        return "", failed.msg
    found = {key: word for key, _, word in (line.partition("=") for line in said.splitlines())}
    return ("" if found.get("LoadState") == "not-found" else found.get("ActiveState", "")), ""
