"""Events of a run as the engine and the verification emit them."""

from __future__ import annotations

from typing import Any

from nodectl.wire.event import Event


def machine(hostname: str, **changes: Any) -> dict[str, Any]:
    data = {
        "hostname": hostname, "cpus": 64, "sockets": 2, "cores_per_socket": 16, "threads_per_core": 2, "memory": 512 * 2**30,
        "gpu_files": [f"/dev/nvidia{number}" for number in range(8)], "gpu_model": "NVIDIA H100 80GB HBM3", "sku": "H100-SXM",
        "nccl_conf": [{"path": "/etc/nccl.conf", "text": "# why\nNCCL_IB_HCA==mlx5_0\n"}],
    }
    return {**data, **changes}


def waived(host: str, name: str = "clock.offset", **waiver: Any) -> Event:
    """A check that is no pass, and who excused it."""
    return check(host, name=name, verdict="skipped", waiver={"who": "ops", "why": "ticket 7", "until": "2026-12-31", **waiver})


def node(host: str, **changes: Any) -> Event:
    data = {
        "address": f"192.0.2.{host[1:]}", "fabric_address": f"10.0.0.{host[1:]}", "interface": "eth0", "gpus": 8, "nproc": 8, "torch_python": "/opt/torch/bin/python",
        "user": "ops", "port": 22, "key_file": "/keys/id", "connection": "ssh", "ssh_options": {"userknownhostsfile": "/keys/known_hosts"},
        "env": {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}, "backend": "nccl", "fabric": "ib", "machine": machine(host),
    }
    return Event("node", 1.0, host, {**data, **changes})


def verdict(host: str, value: str = "pass", *reasons: str) -> Event:
    return Event("verdict", 2.0, host, {"verdict": value, "reasons": list(reasons)})


def start(*hosts: str) -> list[Event]:
    return [Event("run.start", 0.0, "", {"run_id": "20260801T000000Z-ab12"}), Event("play.start", 0.1, "", {"play": "p", "hosts": list(hosts)})]


def check(host: str, **changes: Any) -> Event:
    data = {"name": "network.pairs", "verdict": "pass", "value": 1e9, "unit": "B/s", "floor": 3e7, "reason": "r", "source": "s", "simulated": False, "raw": "long"}
    return Event("check", 1.5, host, {**data, **changes})
