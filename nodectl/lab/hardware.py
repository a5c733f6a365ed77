"""A machine with eight H100 GPUs as a tree of files: what probes read of a real one, for hosts that have none.

hosts.yaml names the tree with ``hardware_root``; all that is found there is called simulated. ``write`` makes a healthy one, hardware_faults breaks it.
Texts have the form that the kernel, nvidia-smi 550 and nvme-cli 2 write; programs of the tree are shell scripts that print a file beside them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

GPUS, CARDS, DISKS = 8, 8, 8
DRIVER = "550.90.07"
# Class codes, vendor 0x10de is NVIDIA, 0x15b3 the maker of ConnectX.
_GPU, _SWITCH, _CARD, _ETHERNET, _NVME, _BRIDGE = "0x030200", "0x068000", "0x020700", "0x020000", "0x010802", "0x060400"
_MODELS: Mapping[str, str] = MappingProxyType({_GPU: "0x2330", _SWITCH: "0x22a3", _CARD: "0x1021", _ETHERNET: "0x1021"})
SYSFS = "sys/bus/pci/devices"
_REASONS = ("sw_power_cap", "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
_ERRORS = ("sram_correctable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_correctable", "dram_uncorrectable")
_COUNTERS = ("symbol_error", "link_error_recovery", "local_link_integrity_errors", "port_rcv_errors", "link_downed")
_SCRIPTS: Mapping[str, str] = MappingProxyType({
    "nvidia-smi": 'if [ "$1" = nvlink ]; then exec cat "$here/nvlink.txt"; fi\nexec cat "$here/nvidia-smi.xml"\n',
    "nv-fabricmanager": 'exec cat "$here/fabricmanager.txt"\n',
    "nvme": 'exec cat "$here/smart-${2##*/}.json"\n',
    "systemctl": 'cat "$here/unit-$2.txt" 2>/dev/null || printf "LoadState=not-found\\nActiveState=inactive\\n"\n',
})


def gpu_address(index: int) -> str:
    return f"0000:{0x19 + 0x10 * index:02x}:00.0"


def card_address(index: int) -> str:
    return f"0000:{0x1A + 0x10 * index:02x}:00.0"


def bridge_address(index: int) -> str:
    return f"0000:{0x18 + 0x10 * index:02x}:00.0"


def switch_address(index: int) -> str:
    return f"0000:{0xC1 + index:02x}:00.0"


def write(root: Path, host: int = 1, roce: bool = False) -> None:
    """A healthy machine. ``host`` is its number: addresses and serials differ from machine to machine, nothing else."""
    _put(root, "proc/uptime", "86400.00 690000.00\n")
    _put(root, "proc/modules", "nvidia 1 0 - Live 0x0\nnvidia_uvm 1 0 - Live 0x0\nmlx5_core 1 0 - Live 0x0\nmlx5_ib 1 0 - Live 0x0\n")
    _put(root, "proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER}  Release Build\n")
    _put(root, "sys/module/nvidia_peermem/refcnt", "0\n")
    _put(root, "kernel.log", "")
    for node in (0, 1):
        _put(root, f"sys/devices/system/node/node{node}/meminfo", "")
    for index in range(GPUS):
        _gpu(root, index, host)
    for index in range(4):
        _device(root, switch_address(index), _SWITCH, "0x10de", "nvidia-nvswitch", 1)
    for index in range(CARDS):
        _card(root, index, host, roce)
    for index in range(DISKS):
        _disk(root, index, host)
    _put(root, "addresses", "".join(f"eth{index} 10.224.{index}.{host}/24\n" for index in range(CARDS)) if roce else "ib0 10.224.0.1/24\n")
    smi = "".join(_gpu_xml(index, host) for index in range(GPUS))
    _put(root, "bin/nvidia-smi.xml", f'<?xml version="1.0" ?>\n<nvidia_smi_log>\n<driver_version>{DRIVER}</driver_version>\n{smi}</nvidia_smi_log>\n')
    links = "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(18))
    _put(root, "bin/nvlink.txt", "".join(f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: {_uuid(index, host)})\n{links}" for index in range(GPUS)))
    _put(root, "bin/fabricmanager.txt", f"Fabric Manager version is : {DRIVER}\n")
    for unit in ("nvidia-fabricmanager", "nvidia-persistenced"):
        _put(root, f"bin/unit-{unit}.txt", "LoadState=loaded\nActiveState=active\n")
    for name, script in _SCRIPTS.items():
        program(root, name, script)


def _put(root: Path, place: str, text: str) -> None:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def program(root: Path, name: str, script: str) -> None:
    """A program of the tree; in its shell script ``$here`` is the folder that it lies in."""
    _put(root, f"bin/{name}", f'#!/bin/sh\nhere=${{0%/*}}\n{script}')
    (root / "bin" / name).chmod(0o755)


# -- the PCI bus


def config(bridge: bool = False, acs: int | None = None, max_read_request: int = 4096, relaxed: bool = True) -> bytes:
    """4 KiB of configuration space: the PCI Express capability at 0x60, and ACS at 0x100 where ``acs`` gives its control word."""
    data = bytearray(4096)
    struct.pack_into("<HHHH", data, 0, 0x10DE, 0x2330, 0x0406, 0x0010)
    data[0x0E], data[0x34], data[0x60] = (1 if bridge else 0), 0x60, 0x10
    struct.pack_into("<H", data, 0x68, ((max_read_request // 128).bit_length() - 1) << 12 | (0x10 if relaxed else 0) | 0x0820)
    if acs is not None:
        struct.pack_into("<IHH", data, 0x100, 0x0001000D, 0x005F, acs)
    return bytes(data)


def _device(root: Path, address: str, kind: str, vendor: str, driver: str, node: int, below: str = "", speed: str = "32.0 GT/s PCIe") -> Path:
    """One device; ``below`` is the bridge that it hangs on."""
    place = root / "sys/devices/pci0000:00" / below / address if below else root / "sys/devices/pci0000:00" / address
    width = "4" if kind == _NVME else "16"
    for name, text in {
        "vendor": vendor, "device": _MODELS.get(kind, "0x0001"), "class": kind, "numa_node": str(node),
        "current_link_speed": speed, "max_link_speed": speed, "current_link_width": width, "max_link_width": width,
    }.items():
        _put(place, name, text + "\n")
    (place / "config").write_bytes(config(bridge=kind == _BRIDGE, acs=0x0001 if kind == _BRIDGE else None))
    (root / SYSFS).mkdir(parents=True, exist_ok=True)
    (root / SYSFS / address).symlink_to(Path("../../../..") / place.relative_to(root))
    if driver:
        (root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (place / "driver").symlink_to(Path(*[".."] * len(place.relative_to(root).parts)) / "sys/bus/pci/drivers" / driver)
    return place


def _gpu(root: Path, index: int, host: int) -> None:
    bridge = bridge_address(index)
    _device(root, bridge, _BRIDGE, "0x1000", "pcieport", index // 4)
    _device(root, gpu_address(index), _GPU, "0x10de", "nvidia", index // 4, bridge)
    _put(root, f"proc/driver/nvidia/gpus/{gpu_address(index)}/information", f"Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t {_uuid(index, host)}\n")


def _uuid(index: int, host: int) -> str:
    return f"GPU-{host:08x}-0000-4000-8000-{index:012x}"


def _card(root: Path, index: int, host: int, roce: bool) -> None:
    place = _device(root, card_address(index), _ETHERNET if roce else _CARD, "0x15b3", "mlx5_core", index // 4, bridge_address(index))
    base, interface = f"sys/class/infiniband/mlx5_{index}", f"eth{index}" if roce else f"ib{index}"
    port = f"{base}/ports/1"
    texts = {
        f"{base}/fw_ver": "28.39.1002", f"{base}/board_id": "MT_0000000838", f"{base}/hca_type": "MT4129",
        f"{base}/node_guid": f"a088:c203:{host:04x}:{index:04x}", f"{port}/state": "4: ACTIVE", f"{port}/phys_state": "5: LinkUp",
        f"{port}/rate": "400 Gb/sec (4X NDR)", f"{port}/lid": "0x0" if roce else f"0x{host * 16 + index:x}", f"{port}/sm_lid": "0x1",
        f"{port}/link_layer": "Ethernet" if roce else "InfiniBand", f"sys/class/net/{interface}/mtu": "9000" if roce else "4092",
        **{f"{port}/counters/{name}": "0" for name in _COUNTERS},
    }
    for name, text in texts.items():
        _put(root, name, text + "\n")
    gids = _roce_gids(index, host) if roce else {0: (f"fe80:0000:0000:0000:a088:c203:{host:04x}:{index:04x}", "IB/RoCE v1")}
    for number, (gid, kind) in gids.items():
        for name, text in {"gids": gid, "gid_attrs/types": kind, "gid_attrs/ndevs": interface}.items():
            _put(root, f"{port}/{name}/{number}", text + "\n")
    (place / "net" / interface).mkdir(parents=True)
    (root / base / "device").symlink_to(Path("../../../..") / place.relative_to(root))


def _roce_gids(index: int, host: int) -> dict[int, tuple[str, str]]:
    local = f"fe80:0000:0000:0000:a288:c2ff:fe{host:02x}:{index:04x}"
    mapped = f"0000:0000:0000:0000:0000:ffff:0ae0:{index:02x}{host:02x}"
    return {0: (local, "IB/RoCE v1"), 1: (local, "RoCE v2"), 2: (mapped, "IB/RoCE v1"), 3: (mapped, "RoCE v2")}


def _disk(root: Path, index: int, host: int) -> None:
    address = f"0000:{0xD0 + index:02x}:00.0"
    _device(root, address, _NVME, "0x144d", "nvme", index // 4, speed="16.0 GT/s PCIe")
    base = f"sys/class/nvme/nvme{index}"
    for name, text in {
        "model": "SAMSUNG MZWLJ7T6HALA-00007", "serial": f"S5G2N{host:03d}{index:04d}", "firmware_rev": "EPK9CB5Q", "state": "live", "transport": "pcie",
        "address": address,
    }.items():
        _put(root, f"{base}/{name}", text + "\n")
    _put(root, f"bin/smart-nvme{index}.json", (
        '{\n  "critical_warning" : 0,\n  "temperature" : 309,\n  "avail_spare" : 100,\n  "spare_thresh" : 10,\n  "percent_used" : 3,\n'
        '  "data_units_read" : 90811223,\n  "media_errors" : 0,\n  "num_err_log_entries" : 12\n}\n'
    ))


def _gpu_xml(index: int, host: int) -> str:
    errors = "".join(f"<{name}>0</{name}>" for name in _ERRORS)
    slow = "".join(f"<clocks_event_reason_{name}>Not Active</clocks_event_reason_{name}>" for name in _REASONS)
    return f"""<gpu id="0000{gpu_address(index).upper()}">
<product_name>NVIDIA H100 80GB HBM3</product_name><persistence_mode>Enabled</persistence_mode>
<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
<serial>16530230{host:03d}{index:02d}</serial><uuid>{_uuid(index, host)}</uuid><vbios_version>96.00.89.00.01</vbios_version>
<board_part_number>692-2G520-0200-000</board_part_number><gpu_recovery_action>None</gpu_recovery_action>
<pci><pci_bus_id>0000{gpu_address(index).upper()}</pci_bus_id><pci_gpu_link_info>
<pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>5</current_link_gen><max_device_link_gen>5</max_device_link_gen></pcie_gen>
<link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths></pci_gpu_link_info></pci>
<performance_state>P0</performance_state><clocks_event_reasons>
<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>{slow}</clocks_event_reasons>
<fb_memory_usage><total>81559 MiB</total><used>1 MiB</used></fb_memory_usage>
<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
<ecc_errors><volatile>{errors}</volatile><aggregate>{errors}<sram_threshold_exceeded>No</sram_threshold_exceeded></aggregate></ecc_errors>
<retired_pages><pending_blacklist>N/A</pending_blacklist><pending_retirement>N/A</pending_retirement></retired_pages>
<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc>
<remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
<temperature><gpu_temp>31 C</gpu_temp></temperature>
<fabric><state>Completed</state><status>Success</status></fabric>
</gpu>
"""
