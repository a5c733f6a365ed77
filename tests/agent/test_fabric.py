"""fabric_facts on recorded trees: which devices a job may use, and the reason for each that it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.contract import Failed
from nodectl.agent.facts import fabric, gpu, rdma
from nodectl.agent.facts.netlink import Address
from nodectl.agent.processes import Completed
from nodectl.agent.system import System
from nodectl.lab import hardware
from tests.agent.conftest import RunModule
from tests.agent.sysfs import hca, netdev, roce_gids, write


def usable(facts: dict[str, Any]) -> list[str]:
    return [entry["name"] for entry in facts["hcas"] if entry["usable"]]


def reason(facts: dict[str, Any], name: str) -> str:
    return next(str(entry["reason"]) for entry in facts["hcas"] if entry["name"] == name)


def test_nothing_there(tmp_path: Path) -> None:
    facts = fabric.collect(str(tmp_path), [])
    assert facts["kind"] == "tcp"
    assert facts["hcas"] == facts["interfaces"] == []
    assert "no RDMA device" in facts["not_found"][0]


def test_infiniband_in_natural_order(tmp_path: Path) -> None:
    for number in (10, 2, 0, 1):
        hca(tmp_path, f"mlx5_{number}")
    facts = fabric.collect(str(tmp_path), [])
    assert facts["kind"] == "ib"
    assert usable(facts) == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10"]
    first = facts["hcas"][0]
    assert (first["link_layer"], first["state"], first["phys_state"], first["rate_gbps"], first["lid"]) == ("InfiniBand", "ACTIVE", "LinkUp", 400.0, 26)
    assert (first["fw_ver"], first["board_id"], first["driver"], first["numa_node"]) == ("28.39.1002", "MT_0000000838", "mlx5_core", "1")
    assert facts["not_found"] == []


def test_prefix_names_down_ports_and_link_local_addresses(tmp_path: Path) -> None:
    """D84: mlx5_1 on the fabric, mlx5_10 down, mlx5_2 with 169.254; only the first may be taken, each other with its reason."""
    hca(tmp_path, "mlx5_1", layer="Ethernet", netdev="eth1", lid="0x0", gids=roce_gids("10.224.1.1"))
    hca(tmp_path, "mlx5_10", layer="Ethernet", netdev="eth10", lid="0x0", state="1: DOWN", physical="3: Disabled")
    hca(tmp_path, "mlx5_2", layer="Ethernet", netdev="eth2", lid="0x0", gids=roce_gids("169.254.3.1"))
    own = [Address("eth1", 4, "10.224.1.1", 24), Address("eth2", 4, "169.254.3.1", 16), Address("eth1", 6, "fe80::1", 64, scope="link")]
    facts = fabric.collect(str(tmp_path), own)
    assert facts["kind"] == "roce"
    assert usable(facts) == ["mlx5_1"]
    assert reason(facts, "mlx5_10") == "port 1 is DOWN (Disabled), not ACTIVE (LinkUp)"
    assert "only link-local addresses (169.254.3.1)" in reason(facts, "mlx5_2")
    assert len([sentence for sentence in facts["not_found"] if "left out" in sentence]) == 2


def test_gids_are_read_with_type_and_interface(tmp_path: Path) -> None:
    """D85: the index of the right GID differs per device, so it is reported, never assumed; empty places are not listed."""
    hca(tmp_path, "mlx5_0", layer="Ethernet", netdev="eth0", lid="0x0", gids={0: ("fe80::1", "IB/RoCE v1"), 4: ("0000:0000:0000:0000:0000:ffff:0ae0:0101", "RoCE v2")})
    gids = rdma.devices(str(tmp_path))[0]["ports"][0]["gids"]
    assert [(gid["index"], gid["type"], gid["ndev"]) for gid in gids] == [(0, "IB/RoCE v1", "eth0"), (4, "RoCE v2", "eth0")]


NO_V2 = {0: ("fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"), 1: ("0000:0000:0000:0000:0000:ffff:0ae0:0101", "IB/RoCE v1")}


@pytest.mark.parametrize(
    ("more", "own", "subnets", "why"),
    [
        ({}, [], [], "its interface eth0 has no address"),
        ({"gids": NO_V2}, ["10.0.0.1"], [], "no RoCE v2 GID"),
        ({}, ["10.0.0.1"], ["10.224.0.0/12"], "outside the fabric's subnet 10.224.0.0/12"),
        ({}, ["10.0.0.1"], ["10.0.0.0/8"], ""),
        ({}, ["10.0.0.1"], ["fd00::/8"], "outside the fabric's subnet"),
        ({"state": "2: INIT"}, ["10.0.0.1"], [], "port 1 is INIT"),
        ({"physical": "2: Polling"}, ["10.0.0.1"], [], "(Polling)"),
    ],
)
def test_why_an_ethernet_device_is_left_out(tmp_path: Path, more: dict[str, Any], own: list[str], subnets: list[str], why: str) -> None:
    hca(tmp_path, "mlx5_0", **{"layer": "Ethernet", "netdev": "eth0", "lid": "0x0", "gids": roce_gids("10.0.0.1"), **more})
    facts = fabric.collect(str(tmp_path), [Address("eth0", 4, address, 24) for address in own], subnets)
    assert facts["hcas"][0]["usable"] == (why == "")
    assert why in facts["hcas"][0]["reason"]


def test_infiniband_without_a_subnet_manager(tmp_path: Path) -> None:
    hca(tmp_path, "mlx5_0", lid="0x0")
    facts = fabric.collect(str(tmp_path), [])
    assert "no subnet manager" in reason(facts, "mlx5_0")
    assert facts["kind"] == "ib", "the hardware is InfiniBand: a role may still set it up"
    assert "no RDMA device is usable" in facts["not_found"]


def test_front_end_ethernet_beside_infiniband(tmp_path: Path) -> None:
    hca(tmp_path, "mlx5_0")
    hca(tmp_path, "mlx5_1", layer="Ethernet", netdev="eth0", lid="0x0", gids=roce_gids("10.0.0.1"))
    facts = fabric.collect(str(tmp_path), [Address("eth0", 4, "10.0.0.1", 24)])
    assert facts["kind"] == "ib"
    assert usable(facts) == ["mlx5_0"]
    assert "front end" in reason(facts, "mlx5_1")


def test_excluded_by_name_exactly(tmp_path: Path) -> None:
    hca(tmp_path, "mlx5_1")
    hca(tmp_path, "mlx5_10")
    facts = fabric.collect(str(tmp_path), [], [], ["mlx5_1"])
    assert usable(facts) == ["mlx5_10"]
    assert reason(facts, "mlx5_1") == "left out by the inventory"


def test_soft_roce_has_no_board(tmp_path: Path) -> None:
    hca(tmp_path, "rxe0", layer="Ethernet", lid="0x0", driver="", gids=roce_gids("10.0.0.1"))
    write(tmp_path, {"sys/class/infiniband/rxe0/parent": "eth0\n"})
    facts = fabric.collect(str(tmp_path), [Address("eth0", 4, "10.0.0.1", 24)])
    assert usable(facts) == ["rxe0"]
    assert facts["hcas"][0]["netdevs"] == ["eth0"]
    assert facts["hcas"][0]["pci"] == facts["hcas"][0]["driver"] == ""


def test_efa(tmp_path: Path) -> None:
    hca(tmp_path, "rdmap0s6", layer="Unspecified", driver="efa", lid="0x0", rate="100 Gb/sec (4X EDR)")
    facts = fabric.collect(str(tmp_path), [])
    assert facts["kind"] == "efa"
    assert usable(facts) == ["rdmap0s6"]


@pytest.mark.parametrize(
    ("files", "kind", "words"),
    [
        ({"class": "0x020700\n", "vendor": "0x15b3\n", "device": "0x1021\n"}, "ib", "InfiniBand controller at 0000:18:00.0 has no driver"),
        ({"class": "0x020000\n", "vendor": "0x1d0f\n", "device": "0xefa2\n"}, "efa", "EFA adapter at 0000:18:00.0 has no driver"),
        ({"class": "0x020000\n", "vendor": "0x8086\n", "device": "0x1572\n"}, "tcp", "no RDMA device"),
    ],
)
def test_hardware_without_driver(tmp_path: Path, files: dict[str, str], kind: str, words: str) -> None:
    write(tmp_path, {f"sys/bus/pci/devices/0000:18:00.0/{name}": content for name, content in files.items()})
    facts = fabric.collect(str(tmp_path), [])
    assert facts["kind"] == kind
    assert any(words in sentence for sentence in facts["not_found"])


def test_interfaces(tmp_path: Path) -> None:
    netdev(tmp_path, "eth10", speed="-1")
    netdev(tmp_path, "eth2", speed="25000", mtu="1500")
    netdev(tmp_path, "lo", kind="772")
    netdev(tmp_path, "ib0", kind="32", mtu="4092")
    found = fabric.interfaces(str(tmp_path), [Address("eth2", 4, "10.0.0.2", 24), Address("eth2", 6, "fd00::2", 64)])
    assert [(entry["name"], entry["type"], entry["speed_mbps"], entry["mtu"]) for entry in found] == [
        ("eth2", "ether", 25000, 1500), ("eth10", "ether", None, 9000), ("ib0", "infiniband", 400000, 4092),
    ]
    assert found[0]["addresses"] == ["10.0.0.2/24", "fd00::2/64"]


class FakeSystem(System):
    """nvidia-smi as it answers, or does not."""

    def __init__(self, answer: Completed | Failed | None) -> None:
        super().__init__()
        self.answer = answer

    def which(self, name: str) -> str | None:
        return "/usr/bin/nvidia-smi" if self.answer is not None else None

    def run(self, *args: Any, **more: Any) -> Completed:
        assert more["timeout"] == 20
        if isinstance(self.answer, Failed):
            raise self.answer
        assert self.answer
        return self.answer


def smi(stdout: str, rc: int = 0) -> FakeSystem:
    return FakeSystem(Completed(rc, stdout, "", ("nvidia-smi",)))


TWO = "0, GPU-aa, NVIDIA H100 80GB HBM3, 00000000:18:00.0, 81559, 550.90.07\n1, GPU-bb, NVIDIA H100 80GB HBM3, 00000000:2A:00.0, [N/A], 550.90.07\n"


def test_gpus_by_nvidia_smi(tmp_path: Path) -> None:
    found, missing = gpu.gpus(smi(TWO), str(tmp_path))
    assert [(entry["index"], entry["uuid"], entry["memory_mib"], entry["pci"]) for entry in found] == [
        (0, "GPU-aa", 81559, "00000000:18:00.0"), (1, "GPU-bb", None, "00000000:2a:00.0"),
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("system", "listed", "words"),
    [
        (FakeSystem(None), 0, "no NVIDIA GPU"),
        (FakeSystem(None), 1, "nvidia-smi is not installed; the driver lists 1 GPU(s)"),
        (FakeSystem(Failed("nvidia-smi did not end within 20 s")), 1, "did not end within 20 s; the driver lists 1 GPU(s)"),
        (smi("Failed to initialize NVML: Driver/library version mismatch\n", 18), 0, "exit code 18: Failed to initialize NVML"),
        (smi(""), 0, "nvidia-smi lists no GPU"),
    ],
)
def test_gpus_when_nvidia_smi_does_not_help(tmp_path: Path, system: FakeSystem, listed: int, words: str) -> None:
    if listed:
        write(tmp_path, {
            "proc/driver/nvidia/gpus/0000:18:00.0/information": "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-cc\n",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build\n",
        })
    found, missing = gpu.gpus(system, str(tmp_path))
    assert len(found) == listed
    assert words in missing[0]
    if listed:
        assert (found[0]["name"], found[0]["uuid"], found[0]["driver"]) == ("NVIDIA H100", "GPU-cc", "550.90.07")


def test_gpu_direct(tmp_path: Path) -> None:
    assert gpu.direct(str(tmp_path)) == {"peermem": False, "dmabuf": False}
    write(tmp_path, {"sys/module/nvidia_peermem/refcnt": "0", "proc/driver/nvidia/version": "NVIDIA UNIX Open Kernel Module 550"})
    assert gpu.direct(str(tmp_path)) == {"peermem": True, "dmabuf": True}


def test_the_module_on_a_tree(tmp_path: Path, run: RunModule) -> None:
    hca(tmp_path, "mlx5_0")
    outcome = run("fabric_facts", {"sysfs_root": str(tmp_path)}, system=smi(TWO))
    facts = outcome.facts["nodectl_fabric"]
    assert outcome.values["kind"] == facts["kind"] == "ib"
    assert len(facts["gpus"]) == 2
    assert any("nvidia_peermem" in sentence for sentence in facts["not_found"])
    assert not outcome.changed


def test_a_subnet_that_is_none(run: RunModule) -> None:
    outcome = run("fabric_facts", {"subnets": ["10.0.0"]})
    assert outcome.failed
    assert "10.0.0 is not a network" in outcome.msg


def test_gpus_and_switches_on_the_bus_and_the_gpu_beside_each_card(tmp_path: Path, run: RunModule) -> None:
    """Eight H100 and four NVSwitches, without any driver's word."""
    hardware.write(tmp_path)
    facts = run("fabric_facts", {"sysfs_root": str(tmp_path)}, system=FakeSystem(None)).facts["nodectl_fabric"]
    assert [one["device"] for one in facts["gpus_on_bus"]] == ["2330"] * 8
    assert facts["nvswitches"] == 4
    assert [(entry["name"], entry["near_gpu"]) for entry in facts["hcas"]] == [(f"mlx5_{index}", index) for index in range(8)]


def test_a_card_that_shares_no_bridge_with_a_gpu_is_near_none(tmp_path: Path) -> None:
    for place in ("pci0000:00/0000:01:00.0", "pci0000:80/0000:81:00.0"):
        (tmp_path / "sys/devices" / place).mkdir(parents=True)
        link = tmp_path / "sys/bus/pci/devices" / place[-12:]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(tmp_path / "sys/devices" / place)
    there = [{"pci": "0000:81:00.0", "device": "2330"}]
    assert gpu.nearest(str(tmp_path), "0000:01:00.0", there) is None
    assert gpu.nearest(str(tmp_path), "0000:81:00.0", there) == 0
    assert gpu.nearest(str(tmp_path), "", there) is None
    assert gpu.nearest(str(tmp_path), "0000:01:00.0", []) is None
