"""A fleet of recorded eight-GPU machines: all pass; with one fault in one machine that one is named, for the right reason, and the others pass."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodectl.lab.hardware_faults import FAULTS, break_it
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeNode, Seen
from tests.verify.recorded_fleet import HARDWARE, REAL, SHORT, judged, real, recorded_node

NAMES = ("n1", "n2", "n3")
PCI, HCA, GPU, NVME, LOG = REAL
# Only what a probe reads is copied for a fault: a whole machine is some 700 files.
READS = {
    PCI: ["sys/bus", "sys/devices"], HCA: ["sys/class/infiniband", "sys/class/net", "sys/devices", "addresses"], LOG: ["kernel.log", "proc/uptime"],
    GPU: ["bin", "proc", "sys/module"], NVME: ["bin", "sys/class/nvme"],
}


class Fleet:
    """Healthy machines, each probe run once; a fault runs again only the probes that read what it changes."""

    def __init__(self, folder: Path, roce: bool) -> None:
        self.folder = folder
        self.roce = roce
        self.healthy = [recorded_node(name, folder, roce) for name in NAMES]
        self.answers: dict[tuple[str, str], Outcome] = {}
        for node in self.healthy:
            for probe in REAL:
                args = {"root": str(folder / node.name)}
                self.answers[node.name, probe] = real(probe)(node, args)

    def nodes(self, **variables: Any) -> list[FakeNode]:
        def saved(node: FakeNode) -> FakeNode:
            answers: dict[str, Any] = {probe: self.answers[node.name, probe] for probe in REAL}
            return replace(node, answers=answers, variables={**node.variables, **variables}, asked=[])

        return [saved(node) for node in self.healthy]

    def broken(self, fault: str, probes: tuple[str, ...], folder: Path, **variables: Any) -> list[FakeNode]:
        for place in {place for probe in probes for place in READS[probe]}:
            source, target = self.folder / "n2" / place, folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            elif source.exists():
                shutil.copy(source, target)
        break_it(folder, fault)
        nodes = self.nodes(**variables)
        nodes[1].variables["hardware_root"] = str(folder)
        nodes[1].answers.update({probe: real(probe) for probe in probes})
        return nodes


@pytest.fixture(scope="module")
def infiniband(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return Fleet(tmp_path_factory.mktemp("ib"), roce=False)


@pytest.fixture(scope="module")
def ethernet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return Fleet(tmp_path_factory.mktemp("roce"), roce=True)


def names(seen: Seen, host: str) -> set[str]:
    return {str(event.data["name"]) for event in seen.of("check", host)}


def test_healthy_machines_pass_and_everything_is_called_simulated(infiniband: Fleet) -> None:
    verdicts, seen = judged(infiniband.nodes())
    assert set(verdicts.values()) == {"pass"}, [seen.reasons(name) for name in NAMES]
    assert all(event.data["simulated"] for event in seen.of("check"))
    for name in ("gpu.count", "gpu.nvlinks", "gpu.fabric_manager", "gpu.xid", "pci.acs", "hca.rate", "hca.flaps", "nvme.used", "gpu.direct"):
        assert name in names(seen, "n1"), name
    assert not {"hca.gid", "hca.mtu"} & names(seen, "n1")
    assert "H100" in seen.check("n1", "gpu.model").data["reason"]


def test_healthy_roce_machines_pass(ethernet: Fleet) -> None:
    verdicts, seen = judged(ethernet.nodes(torch_env={"NCCL_IB_GID_INDEX": 3}))
    assert set(verdicts.values()) == {"pass"}, [seen.reasons(name) for name in NAMES]
    assert {"hca.gid", "hca.gid_pinned", "hca.mtu", "hca.link_layer"} <= names(seen, "n1")


# fault, the probes that read it, the check that has to name it, its verdict, and words of the reason
CASES = [
    ("hung-nvidia-smi", (GPU,), "gpu.nvidia_smi", "unknown", "nvidia-smi did not end within 0.3 s; its process group was ended: nothing can be said of the GPUs"),
    ("no-nvidia-smi", (GPU,), "gpu.nvidia_smi", "unknown", "nvidia-smi is not installed"),
    ("no-nvidia-smi", (GPU,), "gpu.count", "pass", "GPUs of profile h100-sxm"),
    ("gpu-lost", (GPU,), "gpu.count", "fail", "measured 7, expected at least 8 (GPUs of profile h100-sxm)"),
    ("gpu-lost", (GPU,), "gpu.lost", "fail", "gpu 0000:89:00.0"),
    ("gpu-dead", (PCI,), "pci.dead", "fail", "fell off the bus; power the node off and on, then replace it): gpu 0000:89:00.0"),
    ("xid", (LOG,), "gpu.xid", "fail", "GPU 0000:89:00.0: Xid 79, reboot the machine"),
    ("xid-unlisted", (LOG,), "gpu.xid", "unknown", "Xid 999, which the catalogue does not know"),
    ("sxid", (LOG,), "gpu.sxid", "fail", "nvidia-nvswitch3: SXid 20034, Fatal, Link 30"),
    ("ecc", (GPU,), "gpu.ecc_uncorrected", "fail", "GPU 0 (0000:19:00.0): 2; all others are as expected"),
    ("ecc-off", (GPU,), "gpu.ecc", "fail", "measured Disabled, expected Enabled"),
    ("ecc-off", (GPU,), "gpu.ecc_pending", "fail", "GPU 0 (0000:19:00.0): no"),
    ("remap-pending", (GPU,), "gpu.remap_pending", "fail", "reset the GPU"),
    ("remap-failure", (GPU,), "gpu.remap_failure", "fail", "replace the GPU): GPU 0 (0000:19:00.0): Yes"),
    ("recovery", (GPU,), "gpu.recovery", "fail", "measured Reset, expected None"),
    ("throttled", (GPU,), "gpu.throttled", "fail", "GPU 0 (0000:19:00.0): hw_thermal_slowdown"),
    ("hot", (GPU,), "gpu.temperature", "fail", "measured 88 degC, expected at most 75 degC"),
    ("persistence-off", (GPU,), "gpu.persistence", "fail", "nvidia-persistenced"),
    ("mig-on", (GPU,), "gpu.mig", "fail", "measured Enabled, expected Disabled"),
    ("vbios-odd", (GPU,), "gpu.vbios", "fail", "96.00.89.00.01: n1, n3; 96.00.74.00.01: n2"),
    ("vbios-mixed", (GPU,), "gpu.vbios", "fail", "as most of this node's others have it): GPU 0 (0000:19:00.0): 96.00.74.00.01"),
    ("driver-odd", (GPU,), "gpu.driver", "fail", "550.90.07: n1, n3; 535.183.01: n2"),
    ("driver-odd", (GPU,), "gpu.driver_matches", "fail", "kernel module 535.183.01, nvidia-smi 550.90.07"),
    ("nvlink-down", (GPU,), "gpu.nvlinks", "fail", "measured 17, expected at least 18"),
    ("fabric-manager-dead", (GPU,), "gpu.fabric_manager", "fail", "measured failed, expected active"),
    ("fabric-manager-version", (GPU,), "gpu.fabric_manager_version", "fail", "fabric manager 550.54.15, driver 550.90.07"),
    ("no-gpudirect", (GPU,), "gpu.direct", "fail", "nvidia_peermem nor DMA-BUF"),
    ("port-down", (HCA,), "hca.usable", "fail", "measured 7, expected 8 (as most of the fleet has it): mlx5_3: port 1 is DOWN (Disabled)"),
    ("port-slow", (HCA,), "hca.rate", "fail", "mlx5_3 port 1: 12.5 GB/s (100 Gb/s)"),
    ("symbol-errors", (HCA,), "hca.symbol_errors", "fail", "measured 4711, expected at most 100"),
    ("firmware-odd", (HCA,), "hca.firmware", "fail", "28.36.1010"),
    ("flapping", (LOG,), "hca.flaps", "fail", "measured 6, expected at most 4"),
    ("acs", (PCI,), "pci.acs", "fail", "0000:38:00.0: ReqRedir CmpltRedir"),
    ("iommu", (PCI,), "pci.iommu", "fail", "gpu 0000:39:00.0"),
    ("iommu-odd", (PCI,), "pci.iommu_mode", "fail", "off: n1, n3; off, passthrough: n2"),
    ("narrow-link", (PCI,), "pci.width", "fail", "hca 0000:4a:00.0 runs x8 of x16"),
    ("slow-link", (PCI,), "pci.speed", "fail", "hca 0000:4a:00.0 runs 16 GT/s of 32 GT/s"),
    ("small-reads", (PCI,), "pci.max_read_request", "fail", "hca 0000:4a:00.0: 512 B"),
    ("strict-ordering", (PCI,), "pci.relaxed_ordering", "fail", "hca 0000:4a:00.0: no"),
    ("nvme-worn", (NVME,), "nvme.used", "fail", "measured 97 percent, expected at most 90 percent"),
    ("nvme-warning", (NVME,), "nvme.warning", "fail", "nvme2 (SAMSUNG MZWLJ7T6HALA-00007 S5G2N0020002): 4"),
    ("nvme-spare", (NVME,), "nvme.spare", "fail", "S5G2N0020002): -1 percent"),
    ("nvme-media", (NVME,), "nvme.media_errors", "fail", "measured 3, expected at most 0"),
    ("nvme-hot", (NVME,), "nvme.temperature", "fail", "measured 83 degC"),
    ("nvme-hung", (NVME,), "nvme.health", "unknown", "did not end within"),
    ("nvme-dead", (NVME,), "nvme.state", "fail", "measured dead, expected live"),
    ("nvme-gone", (NVME,), "nvme.count", "fail", "measured 7, expected 8"),
]


@pytest.mark.parametrize(("fault", "probes", "check", "verdict", "words"), CASES, ids=[f"{case[0]}-{case[2]}" for case in CASES])
def test_a_fault_names_its_machine_and_its_cause(infiniband: Fleet, tmp_path: Path, fault: str, probes: tuple[str, ...], check: str, verdict: str, words: str) -> None:
    suite = SHORT if "hung" in fault else HARDWARE
    verdicts, seen = judged(infiniband.broken(fault, probes, tmp_path / "broken"), suite)
    assert verdicts["n1"] == verdicts["n3"] == "pass", [seen.reasons(name) for name in ("n1", "n3")]
    found = seen.check("n2", check).data
    assert (found["verdict"], verdicts["n2"] != "pass") == (verdict, True), found["reason"]
    assert words in found["reason"]


ETHERNET = [("wrong-gid", "hca.gid", "mlx5_3 port 1: no"), ("mtu-odd", "hca.mtu", "1500, 9000: n2"), ("port-down", "hca.usable", "mlx5_3: port 1 is DOWN")]


@pytest.mark.parametrize(("fault", "check", "words"), ETHERNET)
def test_faults_of_roce(ethernet: Fleet, tmp_path: Path, fault: str, check: str, words: str) -> None:
    verdicts, seen = judged(ethernet.broken(fault, (HCA,), tmp_path / "broken"))
    assert verdicts == {"n1": "pass", "n2": "fail", "n3": "pass"}, [seen.reasons(name) for name in NAMES]
    assert words in seen.check("n2", check).data["reason"]


def without_ports(node: FakeNode, change: dict[str, Any], devices: tuple[str, ...] = ("mlx5_3",)) -> FakeNode:
    """The same machine with some ports changed."""
    answer = node.answers[HCA]
    assert isinstance(answer, Outcome)
    ports = [{**port, **(change if port["device"] in devices else {})} for port in answer.values["ports"]]
    return replace(node, answers={**node.answers, HCA: Outcome(values={**answer.values, "ports": ports})})


DOWN = {"usable": False, "state": "DOWN", "phys_state": "Disabled", "reason": "port 1 is DOWN (Disabled), not ACTIVE (LinkUp)"}
ALL_PORTS = tuple(f"mlx5_{number}" for number in range(8))


@pytest.mark.parametrize(("change", "devices", "variables", "verdict", "words"), [
    (DOWN, ("mlx5_3",), {}, "unknown", "7 as most of the fleet has, and nothing says how many there must be, while these count for nothing: mlx5_3: port 1 is DOWN"),
    (DOWN, ALL_PORTS, {}, "unknown", "0 as most of the fleet has"), ({**DOWN, "reason": "no subnet manager gave it a LID", "state": "ACTIVE"}, ("mlx5_3",), {}, "unknown", "no subnet manager"),
    (DOWN, ("mlx5_3",), {"expected_hcas": 7}, "pass", "measured 7, expected at least 7"), (DOWN, ("mlx5_3",), {"expected_hcas": 8}, "fail", "measured 7, expected at least 8"),
    (DOWN, ("mlx5_3",), {"node_profile": "azure-nd-h100-v5"}, "fail", "expected at least 8 (profile azure-nd-h100-v5"), (DOWN, ALL_PORTS, {"expected_hcas": 0}, "pass", "expected at least 0"),
    ({**DOWN, "reason": "left out by the inventory"}, ("mlx5_3",), {"fabric_exclude": ["mlx5_3"]}, "pass", "measured 7, expected 7"),
    ({**DOWN, "link_layer": "Ethernet"}, ("mlx5_3",), {}, "pass", "measured 7, expected 7"),
    ({}, (), {"node_profile": "azure-nd-h100-v5"}, "pass", "measured 8, expected at least 8"),
])
def test_machines_that_all_lack_the_same_prove_nothing(
    infiniband: Fleet, change: dict[str, Any], devices: tuple[str, ...], variables: dict[str, Any], verdict: str, words: str,
) -> None:
    _, seen = judged([without_ports(node, change, devices) for node in infiniband.nodes(**variables)])
    for name in NAMES:
        found = seen.check(name, "hca.usable").data
        assert found["verdict"] == verdict, found["reason"]
        assert words in found["reason"]


def test_a_single_machine_whose_port_is_down_is_unknown(infiniband: Fleet) -> None:
    _, seen = judged([without_ports(infiniband.nodes()[0], DOWN)])
    assert "7 on this node, and nothing says how many" in seen.check("n1", "hca.usable").data["reason"]


def bare(node: FakeNode) -> FakeNode:
    """The same machine without any RDMA card."""
    pci, hca = node.answers[PCI], node.answers[HCA]
    assert isinstance(pci, Outcome)
    assert isinstance(hca, Outcome)
    devices = [device for device in pci.values["devices"] if device["kind"] != "hca"]
    return replace(node, answers={**node.answers, PCI: Outcome(values={**pci.values, "devices": devices}), HCA: Outcome(values={**hca.values, "ports": []})})


def test_machines_without_rdma_have_nothing_to_agree_on(infiniband: Fleet) -> None:
    _, seen = judged([bare(node) for node in infiniband.nodes()])
    assert not [event for event in seen.of("check") if event.data["name"].startswith("hca.")]


def test_the_only_machine_without_cards_is_named(infiniband: Fleet) -> None:
    nodes = infiniband.nodes()
    verdicts, seen = judged([nodes[0], bare(nodes[1]), nodes[2]])
    assert verdicts == {"n1": "pass", "n2": "fail", "n3": "pass"}
    assert "measured 0, expected 8" in seen.check("n2", "hca.usable").data["reason"]


def test_cards_without_a_driver_are_no_agreement(infiniband: Fleet) -> None:
    """All nodes booted a kernel for which nobody built the driver: cards on the bus, no port, TCP everywhere."""
    nodes = infiniband.nodes()
    for node in nodes:
        pci, hca = node.answers[PCI], node.answers[HCA]
        assert isinstance(pci, Outcome)
        assert isinstance(hca, Outcome)
        cards = [{**device, **({"driver": ""} if device["kind"] == "hca" else {})} for device in pci.values["devices"]]
        node.answers.update({PCI: Outcome(values={**pci.values, "devices": cards}), HCA: Outcome(values={**hca.values, "ports": []})})
    _, seen = judged(nodes)
    found = seen.check("n1", "hca.usable").data
    assert (found["verdict"], "hca 0000:1a:00.0 has no driver" in found["reason"]) == ("unknown", True), found["reason"]


def test_every_fault_of_the_lab_is_tried() -> None:
    tried = {case[0] for case in CASES} | {case[0] for case in ETHERNET} | {"xid-harmless"}
    assert tried == set(FAULTS)


def test_an_applications_own_xid_is_kept_and_passes(infiniband: Fleet, tmp_path: Path) -> None:
    verdicts, seen = judged(infiniband.broken("xid-harmless", (LOG,), tmp_path / "broken"))
    assert set(verdicts.values()) == {"pass"}
    assert "Xid 31, the application did it: restart it" in seen.check("n2", "gpu.xid").data["raw"]


def test_a_pinned_gid_index_that_is_another_entry(ethernet: Fleet) -> None:
    verdicts, seen = judged(ethernet.nodes(torch_env={"NCCL_IB_GID_INDEX": "1"}))
    assert set(verdicts.values()) == {"fail"}
    assert "NCCL finds the right one" in seen.check("n1", "hca.gid_pinned").data["reason"]


@pytest.mark.parametrize(("variables", "check", "verdict"), [
    ({"expected_gpus": 9}, "gpu.count", "fail"), ({"expected_gpus": 4}, "gpu.count", "pass"), ({"node_profile": "gb200"}, "gpu.count", "pass"), ({"node_profile": "gb200"}, "gpu.imex", "fail"),
    ({"node_profile": "azure-nd-h100-v5"}, "nvme.count", "pass"), ({"node_profile": "oci-bm-h100"}, "nvme.count", "fail"), ({"expected_nvme": 8}, "nvme.count", "pass"),
    ({"expected_hca_rate": "800 Gb/s"}, "hca.rate", "fail"), ({"expected_mig": "Enabled"}, "gpu.mig", "fail"), ({"expected_nvlinks": 12}, "gpu.nvlinks", "pass"),
    ({"expected_max_read_request": "8192 B"}, "pci.max_read_request", "fail"), ({"expected_gpu_temperature": 30}, "gpu.temperature", "fail"),
])
def test_pins_of_the_inventory_come_first(infiniband: Fleet, variables: dict[str, Any], check: str, verdict: str) -> None:
    _, seen = judged(infiniband.nodes(**variables))
    found = seen.check("n1", check).data
    assert found["verdict"] == verdict, found["reason"]
    assert next(iter(variables)) in found["reason"] or "profile" in found["reason"] or check == "gpu.imex"


def test_a_single_machine_with_a_profile_is_judged_by_it(infiniband: Fleet) -> None:
    verdicts, seen = judged(infiniband.nodes()[:1])
    assert verdicts == {"n1": "pass"}, seen.reasons("n1")
    assert "gpu.driver" not in names(seen, "n1")


def test_standard_network_asks_nothing_of_cards(infiniband: Fleet) -> None:
    verdicts, seen = judged(infiniband.nodes(network_tier="standard"))
    assert set(verdicts.values()) == {"pass"}
    assert not {name for name in names(seen, "n1") if name.startswith("hca.")}


def test_two_machines_that_differ_are_both_named(infiniband: Fleet, tmp_path: Path) -> None:
    nodes = infiniband.broken("vbios-odd", (GPU,), tmp_path / "broken")[:2]
    verdicts, seen = judged(nodes)
    assert verdicts == {"n1": "fail", "n2": "fail"}
    for name in ("n1", "n2"):
        assert "the same on all nodes" in seen.reasons(name)
        assert "96.00.89.00.01: n1; 96.00.74.00.01: n2" in seen.reasons(name)


def test_emulated_disks_speak_of_no_spare(infiniband: Fleet, tmp_path: Path) -> None:
    """QEMU's disks report spare 0 and threshold 0: nothing to judge, and not worn out."""
    nodes = infiniband.broken("nvme-spare", (NVME,), tmp_path / "broken")
    smart = tmp_path / "broken/bin/smart-nvme2.json"
    smart.write_text(smart.read_text().replace('"avail_spare" : 9', '"avail_spare" : 0').replace('"spare_thresh" : 10', '"spare_thresh" : 0'))
    verdicts, seen = judged(nodes)
    assert set(verdicts.values()) == {"pass"}, seen.reasons("n2")


def test_nvlinks_that_could_not_be_asked_are_unknown_and_the_rest_is_judged(infiniband: Fleet, tmp_path: Path) -> None:
    nodes = infiniband.broken("xid-harmless", (GPU, LOG), tmp_path / "broken")
    (tmp_path / "broken/bin/nvlink.txt").unlink()
    verdicts, seen = judged(nodes)
    assert verdicts == {"n1": "pass", "n2": "unknown", "n3": "pass"}
    assert "nvidia-smi failed with exit code 1" in seen.check("n2", "gpu.nvlinks").data["reason"]
    assert seen.check("n2", "gpu.ecc").data["verdict"] == "pass"


@pytest.mark.parametrize(("model", "verdict"), [("0x1021", "fail"), ("0x101d", "pass")])
def test_only_fast_cards_need_large_read_requests(infiniband: Fleet, tmp_path: Path, model: str, verdict: str) -> None:
    nodes = infiniband.broken("small-reads", (PCI,), tmp_path / "broken")
    for number in range(8):
        (tmp_path / f"broken/sys/bus/pci/devices/0000:{0x1A + 0x10 * number:02x}:00.0/device").write_text(model + "\n")
    verdicts, seen = judged(nodes)
    assert verdicts["n2"] == verdict, seen.reasons("n2")
