"""What the hardware and host probes say of a healthy node without GPU or RDMA card, as a starting point for tests."""

from __future__ import annotations

from typing import Any

from nodectl.wire.outcome import Outcome

HOST: dict[str, Any] = {
    "kernel": "6.1.0-40-amd64", "machine": "x86_64", "os": "Debian 12.11", "python": "3.11.2", "cpu_model": "AMD EPYC 9654", "cpus": 2, "sockets": 1,
    "numa_nodes": 1, "memory": 25 * 2**30, "swap": 0, "hugepages": 0, "hugepage_size": 2**21, "thp": "madvise", "numa_balancing": 0, "governor": [],
    "clocksource": "tsc", "container": "", "virtual_machine": "kvm", "packages": {"libc6": "2.36-9", "python3": "3.11.2-1"}, "packages_error": "",
    "modules_missing": [], "modules": [], "own_name_on_loopback": "", "bridges": {}, "nccl_interface": "", "resolvers": [], "names_unresolved": {},
    "mounts_hung": {}, "mounts_asked": 0, "port_holder": "", "service_limits": {"memlock": "infinity", "nofile": "1048576"}, "simulated": False,
}
PCI: dict[str, Any] = {
    "devices": [], "bridges": [], "virtualization": {"kind": "kvm", "role": "guest"}, "container": "", "numa_nodes": 1, "simulated": False,
}
HCA: dict[str, Any] = {"ports": [], "drivers": [], "interfaces": {"host0": {"rx_errors": 3, "tx_errors": 0}}, "simulated": False}
GPU: dict[str, Any] = {
    "driver": "", "library": "", "listed": [], "gpus": [], "error": "absent", "nvlink_error": "", "fabric_manager": {"state": "", "version": None, "error": ""}, "persistenced": "", "imex": "",
    "gpudirect": {"peermem": False, "dmabuf": False}, "simulated": False,
}
NVME: dict[str, Any] = {"controllers": [], "simulated": False}
LOG: dict[str, Any] = {"events": [], "source": "journal", "error": "", "now": 1_796_000_000.0, "simulated": False}

HEALTHY_NODE: dict[str, Outcome] = {
    "probe_host": Outcome(values=HOST), "probe_pci": Outcome(values=PCI), "probe_hca": Outcome(values=HCA), "probe_gpu": Outcome(values=GPU),
    "probe_nvme": Outcome(values=NVME), "probe_kernel_log": Outcome(values=LOG),
    "probe_path_mtu": Outcome(values={"peers": [{"address": "10.77.1.12", "small": True, "full": True, "error": ""}]}),
}
