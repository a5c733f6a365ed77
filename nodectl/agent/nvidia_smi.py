"""What `nvidia-smi -q -x` and `nvidia-smi nvlink -s` say, as plain values. Pure.

Names changed between driver branches (clocks_throttle_reasons became clocks_event_reasons; SRAM errors were split): both are read.
"N/A" means that the GPU has no such thing and becomes None, as does a text that is no number where a number belongs.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional
from xml.etree import ElementTree

from nodectl.agent.contract import Failed

_NONE = frozenset(["", "n/a", "[n/a]", "not supported", "[not supported]", "unknown error", "[unknown error]"])
# Reasons for which the hardware itself holds the clocks back, or heat does. Idle, an own clock setting and the power cap are normal.
SLOW = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")


def parse(xml: str) -> Dict[str, Any]:
    """{driver, gpus: […]}, GPUs in the driver's order. Raises Failed for what is no such report."""
    if "<!ENTITY" in xml:
        raise Failed("nvidia-smi -q -x declares entities: that is no report of nvidia-smi")
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314 -- entities were refused above
    except ElementTree.ParseError as error:
        raise Failed(f"nvidia-smi -q -x is not XML: {error}") from None
    if root.tag != "nvidia_smi_log":
        raise Failed(f"nvidia-smi -q -x begins with {root.tag}, not nvidia_smi_log")
    return {"driver": value(root, "driver_version") or "", "gpus": [_gpu(entry, index) for index, entry in enumerate(root.findall("gpu"))]}


def value(entry: "ElementTree.Element", path: str) -> Optional[str]:
    """The text at ``path``; None where it is not there, or not available."""
    text = (entry.findtext(path) or "").strip()
    return None if text.lower() in _NONE else text


def number(entry: "ElementTree.Element", path: str) -> Optional[float]:
    """The number that the text begins with ("41 C", "16x")."""
    found = re.match(r"-?\d+(\.\d+)?", value(entry, path) or "")
    return float(found.group()) if found else None


def _gpu(entry: "ElementTree.Element", index: int) -> Dict[str, Any]:
    pci = (value(entry, "pci/pci_bus_id") or entry.get("id") or "").lower()
    return {
        "index": index, "pci": re.sub(r"^0{4}(?=[0-9a-f]{4}:)", "", pci), "uuid": value(entry, "uuid") or "", "serial": value(entry, "serial"),
        "name": value(entry, "product_name"), "vbios": value(entry, "vbios_version"), "part": value(entry, "board_part_number"),
        "memory": number(entry, "fb_memory_usage/total"), "persistence": value(entry, "persistence_mode"), "pstate": value(entry, "performance_state"),
        "temperature": number(entry, "temperature/gpu_temp"), "recovery": value(entry, "gpu_recovery_action"),
        "mig": value(entry, "mig_mode/current_mig"), "mig_pending": value(entry, "mig_mode/pending_mig"),
        "ecc": value(entry, "ecc_mode/current_ecc"), "ecc_pending": value(entry, "ecc_mode/pending_ecc"),
        "fabric_state": value(entry, "fabric/state"), "fabric_status": value(entry, "fabric/status"),
        **_memory(entry), **_link(entry), "slow": _slow(entry),
    }


def _memory(entry: "ElementTree.Element") -> Dict[str, Any]:
    errors = "ecc_errors"
    volatile = [f"{errors}/volatile/{name}" for name in ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")]
    aggregate = [path.replace("volatile", "aggregate") for path in volatile]
    return {
        "ecc_uncorrected": _sum(entry, volatile), "ecc_uncorrected_ever": _sum(entry, aggregate),
        "ecc_corrected_dram": number(entry, f"{errors}/aggregate/dram_correctable"),
        "ecc_corrected_sram": number(entry, f"{errors}/aggregate/sram_correctable"),
        "sram_over_threshold": value(entry, f"{errors}/aggregate/sram_threshold_exceeded"),
        "repair_pending": _worst(entry, [f"{errors}/channel_repair_pending", f"{errors}/tpc_repair_pending"]),
        "remapped": _sum(entry, ["remapped_rows/remapped_row_corr", "remapped_rows/remapped_row_unc"]),
        "remap_pending": value(entry, "remapped_rows/remapped_row_pending"), "remap_failure": value(entry, "remapped_rows/remapped_row_failure"),
        "retire_pending": _worst(entry, ["retired_pages/pending_retirement", "retired_pages/pending_blacklist"]),
    }


def _link(entry: "ElementTree.Element") -> Dict[str, Any]:
    info = "pci/pci_gpu_link_info"
    gens = [number(entry, f"{info}/pcie_gen/{name}") for name in ("max_link_gen", "max_host_link_gen", "max_device_link_gen")]
    return {
        "pcie_gen": number(entry, f"{info}/pcie_gen/current_link_gen"), "pcie_gen_max": min((gen for gen in gens if gen is not None), default=None),
        "pcie_width": number(entry, f"{info}/link_widths/current_link_width"), "pcie_width_max": number(entry, f"{info}/link_widths/max_link_width"),
    }


def _sum(entry: "ElementTree.Element", paths: List[str]) -> Optional[float]:
    """The sum of those that are there; a counter that the driver could not read makes the sum unknown."""
    there = [path for path in paths if entry.find(path) is not None and value(entry, path) is not None]
    numbers = [number(entry, path) for path in there]
    return None if not numbers or None in numbers else sum(figure for figure in numbers if figure is not None)


def _worst(entry: "ElementTree.Element", paths: List[str]) -> Optional[str]:
    """ "Yes" where any says so; None where none is there."""
    texts = [text for text in (value(entry, path) for path in paths) if text is not None]
    return next((text for text in texts if text.lower() != "no"), texts[0] if texts else None)


def _slow(entry: "ElementTree.Element") -> Optional[List[str]]:
    """The active reasons of SLOW; None where the driver says nothing about them."""
    for word in ("event", "throttle"):
        block = entry.find(f"clocks_{word}_reasons")
        if block is not None:
            return [name for name in SLOW if (block.findtext(f"clocks_{word}_reason_{name}") or "").strip() == "Active"]
    return None


def nvlinks(text: str) -> Dict[int, Dict[str, int]]:
    """Per GPU index: how many links are up and how many are listed. A GPU without NVLink is not in it."""
    found: Dict[int, Dict[str, int]] = {}
    index = None
    for line in text.splitlines():
        gpu = re.match(r"^GPU (\d{1,6}):", line)
        link = re.match(r"^\s+Link (\d+): (.+?)\s*$", line)
        if gpu:
            index = int(gpu.group(1))
        elif link and index is not None:
            entry = found.setdefault(index, {"up": 0, "listed": 0})
            entry["listed"] += 1
            entry["up"] += bool(re.match(r"^\d", link.group(2)))
    return found
