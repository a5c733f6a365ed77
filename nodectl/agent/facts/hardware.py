"""Processors, memory, board, virtualisation: all from /proc and /sys."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List

from nodectl.agent.facts.platform import Facts, text

_DMI = {
    "bios_date": "bios_date", "bios_vendor": "bios_vendor", "bios_version": "bios_version", "board_name": "board_name", "board_serial": "board_serial",
    "board_vendor": "board_vendor", "board_version": "board_version", "board_asset_tag": "board_asset_tag", "chassis_serial": "chassis_serial",
    "chassis_vendor": "chassis_vendor", "chassis_version": "chassis_version", "product_name": "product_name", "product_serial": "product_serial",
    "product_uuid": "product_uuid", "product_version": "product_version", "system_vendor": "sys_vendor",
}
_HYPERVISORS = (
    ("KVM", "kvm"), ("QEMU", "kvm"), ("Amazon EC2", "kvm"), ("Google", "kvm"), ("OpenStack", "openstack"), ("VMware", "VMware"), ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"), ("Microsoft Corporation", "VirtualPC"), ("Xen", "xen"), ("Nutanix", "kvm"), ("Parallels", "parallels"), ("Bochs", "kvm"),
)


def processors(root: str = "/") -> Facts:
    """Counts as Ansible defines them: cores per socket, threads per core, vcpus in all."""
    blocks = [dict(re.findall(r"^([^:\n]+?)\s*:[ \t]*(.*)$", block, re.MULTILINE)) for block in _long(os.path.join(root, "proc/cpuinfo")).split("\n\n")]
    blocks = [block for block in blocks if "processor" in block]
    sockets = {block.get("physical id", "0") for block in blocks} or {"0"}
    cores = int(blocks[0].get("cpu cores", 1)) if blocks else 1
    siblings = int(blocks[0].get("siblings", cores)) if blocks else cores
    if blocks and "cpu cores" not in blocks[0]:  # ARM and s390 do not say it: one core each, one socket
        cores = siblings = len(blocks)
    shown: List[str] = []
    for block in blocks:
        shown += [block["processor"], block.get("vendor_id", ""), block.get("model name") or block.get("CPU part", "")]
    threads = max(1, siblings // max(1, cores))
    return {
        "ansible_processor": [word for word in shown if word], "ansible_processor_count": len(sockets), "ansible_processor_cores": cores,
        "ansible_processor_threads_per_core": threads, "ansible_processor_vcpus": len(blocks) or os.cpu_count() or 1,
        "ansible_processor_nproc": len(os.sched_getaffinity(0)),
    }


def _long(path: str) -> str:
    """/proc/cpuinfo of a large node is longer than the small files of /sys."""
    try:
        with open(path, "rb") as file:
            return file.read(16 * 1024 * 1024).decode("utf-8", "replace")
    except OSError:
        return ""


def memory(root: str = "/") -> Facts:
    """MiB, rounded down."""
    kib = {key: int(value) for key, value in re.findall(r"^(\w+):\s+(\d+)", text(os.path.join(root, "proc/meminfo")), re.MULTILINE)}
    mib = {key: value // 1024 for key, value in kib.items()}
    total, free = mib.get("MemTotal", 0), mib.get("MemFree", 0)
    idle = free + mib.get("Cached", 0) + mib.get("Buffers", 0)
    swap = {"total": mib.get("SwapTotal", 0), "free": mib.get("SwapFree", 0), "cached": mib.get("SwapCached", 0)}
    return {
        "ansible_memtotal_mb": total, "ansible_memfree_mb": free, "ansible_swaptotal_mb": swap["total"], "ansible_swapfree_mb": swap["free"],
        "ansible_memory_mb": {
            "real": {"total": total, "used": total - free, "free": free}, "nocache": {"free": idle, "used": total - idle},
            "swap": dict(swap, used=swap["total"] - swap["free"]),
        },
        "ansible_hugepages": {"total": kib.get("HugePages_Total", 0), "free": kib.get("HugePages_Free", 0), "size_kb": kib.get("Hugepagesize", 0)},
    }


def board(root: str = "/") -> Facts:
    """What the firmware says about the machine; some of it only to root. "NA" where it is not said."""
    folder = os.path.join(root, "sys/class/dmi/id")
    facts: Facts = {f"ansible_{name}": text(os.path.join(folder, file)) or "NA" for name, file in _DMI.items()}
    facts["ansible_uptime_seconds"] = int(float((text(os.path.join(root, "proc/uptime")) or "0").split()[0]))
    return facts


def virtualization(root: str = "/") -> Facts:
    """Container before machine, as Ansible: role is guest, host or NA."""
    found = container(root)
    if found:
        return _virtual(found, "guest")
    vendor = f"{text(os.path.join(root, 'sys/class/dmi/id/sys_vendor'))} {text(os.path.join(root, 'sys/class/dmi/id/product_name'))}"
    found = next((kind for word, kind in _HYPERVISORS if word in vendor), "")
    if not found and re.search(r"^flags\s*:.*\bhypervisor\b", _long(os.path.join(root, "proc/cpuinfo")), re.MULTILINE):
        found = "kvm"
    if found:
        return _virtual(found, "guest")
    return _virtual("kvm", "host") if os.path.exists(os.path.join(root, "sys/module/kvm")) else _virtual("NA", "NA")


def container(root: str) -> str:
    """The kind of container that this is; "" outside of one."""
    if os.path.exists(os.path.join(root, ".dockerenv")):
        return "docker"
    if os.path.exists(os.path.join(root, "run/.containerenv")):
        return "podman"
    variables = text(os.path.join(root, "proc/1/environ")).split("\0")
    first = next((word.partition("=")[2] for word in variables if word.startswith("container=")), "")
    if first:  # what the first process was told counts before what systemd noted; of the kinds, Ansible knows these by name
        return first if first in ("lxc", "podman") else "container"
    return text(os.path.join(root, "run/systemd/container"))


def _virtual(kind: str, role: str) -> Dict[str, Any]:
    guest = [kind] if role == "guest" else []
    host = [kind] if role == "host" else []
    return {
        "ansible_virtualization_type": kind, "ansible_virtualization_role": role,
        "ansible_virtualization_tech_guest": guest, "ansible_virtualization_tech_host": host,
    }
