"""Faults of the recorded machine in hardware.py, by name: each changes files of the tree as the fault would change what a probe reads."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from nodectl.lab.hardware import DRIVER, SYSFS, bridge_address, card_address, config, gpu_address, program

Act = Callable[[Path], None]


def break_it(root: Path, fault: str) -> None:
    """One fault of FAULTS in the tree. Raises KeyError for one that is none."""
    for act in FAULTS[fault]:
        act(root)


def _sub(place: str, old: str, new: str, count: int = 1) -> Act:
    """What matches ``old`` replaced; the first, or all with ``count`` 0."""

    def act(root: Path) -> None:
        text = (root / place).read_text()
        if not re.search(old, text):
            raise LookupError(f"{place} has no {old!r}: the recorded machine and its faults differ")
        (root / place).write_text(re.sub(old, new, text, count=count))

    return act


def _logged(line: str, times: int = 1) -> Act:
    """Lines of the kernel's log, a minute apart, the last one a minute old."""

    def act(root: Path) -> None:
        now = time.time()
        lines = "".join(f"{now - 60 * number:.6f} node kernel: {line}\n" for number in range(times, 0, -1))
        (root / "kernel.log").write_text((root / "kernel.log").read_text() + lines)

    return act


def _hang(name: str) -> Act:
    return lambda root: program(root, name, "exec sleep 3600\n")


def _gone(place: str) -> Act:
    def act(root: Path) -> None:
        path = root / place
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    return act


def _config(address: str, data: bytes) -> Act:
    def act(root: Path) -> None:
        (root / SYSFS / address / "config").write_bytes(data)

    return act


def _group(address: str, kind: str) -> Act:
    """The device in an IOMMU group of its own, of ``kind`` identity, DMA or DMA-FQ."""

    def act(root: Path) -> None:
        group = root / "sys/kernel/iommu_groups/17"
        group.mkdir(parents=True)
        (group / "type").write_text(f"{kind}\n")
        place = (root / SYSFS / address).resolve()
        (place / "iommu_group").symlink_to(Path(*[".."] * len(place.relative_to(root.resolve()).parts)) / "sys/kernel/iommu_groups/17")

    return act


_XML, _PORT, _SMART = "bin/nvidia-smi.xml", "sys/class/infiniband/mlx5_3/ports/1", "bin/smart-nvme2.json"
FAULTS: Mapping[str, tuple[Act, ...]] = MappingProxyType({
    "hung-nvidia-smi": (_hang("nvidia-smi"),),
    "no-nvidia-smi": (_gone("bin/nvidia-smi"),),
    "gpu-lost": (_sub(_XML, r"(?s)<gpu id=\"00000000:89.*?</gpu>\n", ""),),
    "gpu-dead": (_config(gpu_address(7), b"\xff" * 4096),),
    "xid": (_logged("NVRM: Xid (PCI:0000:89:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),),
    "xid-harmless": (_logged("NVRM: Xid (PCI:0000:89:00): 31, pid=1587983, name=python3, Ch 0000000a, intr 00000000. MMU Fault"),),
    "xid-unlisted": (_logged("NVRM: Xid (PCI:0000:89:00): 999, something new"),),
    "sxid": (_logged("nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"),),
    "ecc": (_sub(_XML, "<dram_uncorrectable>0<", "<dram_uncorrectable>2<"),),
    "ecc-off": (_sub(_XML, "<current_ecc>Enabled<", "<current_ecc>Disabled<"),),
    "remap-pending": (_sub(_XML, "<remapped_row_pending>No<", "<remapped_row_pending>Yes<"),),
    "remap-failure": (_sub(_XML, "<remapped_row_failure>No<", "<remapped_row_failure>Yes<"),),
    "recovery": (_sub(_XML, "<gpu_recovery_action>None<", "<gpu_recovery_action>Reset<"),),
    "throttled": (_sub(_XML, "hw_thermal_slowdown>Not Active<", "hw_thermal_slowdown>Active<"),),
    "hot": (_sub(_XML, "<gpu_temp>31 C<", "<gpu_temp>88 C<"),),
    "persistence-off": (_sub(_XML, "<persistence_mode>Enabled<", "<persistence_mode>Disabled<"),),
    "mig-on": (_sub(_XML, "<current_mig>Disabled<", "<current_mig>Enabled<"),),
    "vbios-odd": (_sub(_XML, "96.00.89.00.01", "96.00.74.00.01", 0),),
    "vbios-mixed": (_sub(_XML, "96.00.89.00.01", "96.00.74.00.01"),),
    "driver-odd": (_sub("proc/driver/nvidia/version", DRIVER, "535.183.01"),),
    "nvlink-down": (_sub("bin/nvlink.txt", "26.562 GB/s", "<inactive>"),),
    "fabric-manager-dead": (_sub("bin/unit-nvidia-fabricmanager.txt", "=active", "=failed"),),
    "fabric-manager-version": (_sub("bin/fabricmanager.txt", DRIVER, "550.54.15"),),
    "iommu-odd": (_group(gpu_address(2), "identity"),),
    "no-gpudirect": (_gone("sys/module/nvidia_peermem"), _sub("proc/driver/nvidia/version", "Open Kernel Module for x86_64 ", "Kernel Module")),
    "port-down": (_sub(f"{_PORT}/state", "4: ACTIVE", "1: DOWN"), _sub(f"{_PORT}/phys_state", "5: LinkUp", "3: Disabled")),
    "port-slow": (_sub(f"{_PORT}/rate", r"400 Gb/sec \(4X NDR\)", "100 Gb/sec (1X NDR)"),),
    "symbol-errors": (_sub(f"{_PORT}/counters/symbol_error", "0", "4711"),),
    "firmware-odd": (_sub("sys/class/infiniband/mlx5_3/fw_ver", "28.39.1002", "28.36.1010"),),
    "flapping": (_logged("mlx5_core 0000:4a:00.0 ib3: Link down", 6),),
    "wrong-gid": (_sub("addresses", r"eth3 10\.224\.3\.", "eth3 10.224.30."),),
    "mtu-odd": (_sub("sys/class/net/eth3/mtu", "9000", "1500"),),
    "acs": (_config(bridge_address(2), config(bridge=True, acs=0x001D)),),
    "iommu": (_group(gpu_address(2), "DMA-FQ"),),
    "narrow-link": (_sub(f"{SYSFS}/{card_address(3)}/current_link_width", "16", "8"),),
    "slow-link": (_sub(f"{SYSFS}/{card_address(3)}/current_link_speed", "32.0", "16.0"),),
    "small-reads": (_config(card_address(3), config(max_read_request=512)),),
    "strict-ordering": (_config(card_address(3), config(relaxed=False)),),
    "nvme-worn": (_sub(_SMART, '"percent_used" : 3', '"percent_used" : 97'),),
    "nvme-warning": (_sub(_SMART, '"critical_warning" : 0', '"critical_warning" : 4'),),
    "nvme-spare": (_sub(_SMART, '"avail_spare" : 100', '"avail_spare" : 9'),),
    "nvme-media": (_sub(_SMART, '"media_errors" : 0', '"media_errors" : 3'),),
    "nvme-hot": (_sub(_SMART, '"temperature" : 309', '"temperature" : 356'),),
    "nvme-hung": (_hang("nvme"),),
    "nvme-dead": (_sub("sys/class/nvme/nvme2/state", "live", "dead"),),
    "nvme-gone": (_gone("sys/class/nvme/nvme2"),),
})
