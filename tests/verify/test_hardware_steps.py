"""Steps pci, hca, gpu and nvme on made-up answers: guests and containers, what only root may read, probes that fail, logs that say nothing."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.node.hca_checks import WINDOW, flaps
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, SuiteStep
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, fabric, node_of
from tests.verify.node_answers import GPU, HCA, LOG, NVME, PCI

SUITE = Suite("hardware", "", tuple(SuiteStep(kind, 20.0) for kind in ("pci", "hca", "gpu", "nvme")))
BARE = {"virtualization": {"kind": "NA", "role": "NA"}}
GUEST = {"virtualization": {"kind": "kvm", "role": "guest"}}
NOW = float(LOG["now"])


def device(kind: str, address: str = "0000:01:00.0", **changes: Any) -> dict[str, Any]:
    base = {
        "address": address, "kind": kind, "model": "0x15b3:0x1021", "driver": "mlx5_core", "numa_node": 0, "alive": True, "whole": True, "max_read_request": 4096,
        "relaxed_ordering": True, "iommu": "off", "width": 16.0, "width_max": 16.0, "speed": 32.0, "speed_max": 32.0,
    }
    return {**base, **changes}


def card(index: int = 0, **changes: Any) -> dict[str, Any]:
    """One GPU as the probe tells of it."""
    base: dict[str, Any] = {
        "index": index, "pci": f"0000:0{index + 1}:00.0", "name": "NVIDIA L40S", "vbios": "95", "memory": 46068.0, "persistence": "Enabled", "pstate": "P8",
        "temperature": 31.0, "recovery": "None", "mig": None, "mig_pending": None, "ecc": "Enabled", "ecc_pending": "Enabled", "fabric_state": None,
        "fabric_status": None, "ecc_uncorrected": 0.0, "ecc_uncorrected_ever": 0.0, "ecc_corrected_dram": 0.0, "ecc_corrected_sram": 0.0,
        "sram_over_threshold": None, "repair_pending": None, "remapped": 0.0, "remap_pending": "No", "remap_failure": "No", "retire_pending": None,
        "pcie_gen": 1.0, "pcie_gen_max": 4.0, "pcie_width": 16.0, "pcie_width_max": 16.0, "slow": [], "nvlinks_up": None, "nvlinks_listed": None,
    }
    return {**base, **changes}


def gpus(*cards: dict[str, Any], **changes: Any) -> Outcome:
    found = {**GPU, "driver": "550.90.07", "library": "550.90.07", "error": "", "gpus": list(cards), "listed": [str(one["name"]) for one in cards]}
    return Outcome(values={**found, **changes})


def node(name: str, variables: dict[str, Any] | None = None, **answers: Any) -> FakeNode:
    return FakeNode(name, answers={f"probe_{key}": value for key, value in answers.items()}, variables=dict(variables or {}))


def bus(*devices: dict[str, Any], **changes: Any) -> Outcome:
    return Outcome(values={**PCI, **BARE, "devices": list(devices), **changes})


def judged(*nodes: FakeNode) -> tuple[dict[str, Verdict], Seen]:
    seen = Seen()
    return verify([node_of(one) for one in nodes], SUITE, FakeFleet(*nodes), seen), seen


def names(seen: Seen, host: str = "n1") -> set[str]:
    return {str(event.data["name"]) for event in seen.of("check", host)}


# -- how many GPUs


@pytest.mark.parametrize(("count", "variables", "verdict", "words"), [
    (0, {}, "pass", "none is there, and none is expected"), (0, {"expected_gpus": 8}, "fail", "measured 0, expected at least 8 (expected_gpus of the inventory)"),
    (0, {"node_profile": "h100-sxm"}, "fail", "GPUs of profile h100-sxm"), (1, {}, "unknown", "found 1, and there is nothing to hold it against"),
    (1, {"expected_gpus": 1}, "pass", "measured 1"), (2, {"expected_gpus": 1}, "pass", "measured 2"),
])
def test_a_single_node_and_its_gpus(count: int, variables: dict[str, Any], verdict: str, words: str) -> None:
    answer = gpus(*map(card, range(count))) if count else Outcome(values=GPU)
    verdicts, seen = judged(node("n1", variables, gpu=answer))
    assert verdicts == {"n1": verdict}, seen.reasons("n1")
    assert words in seen.check("n1", "gpu.count").data["reason"]


def test_gpus_of_a_model_that_nobody_knows_are_held_against_the_fleet() -> None:
    verdicts, seen = judged(node("n1", gpu=gpus(card(0), card(1))), node("n2", gpu=gpus(card(0))), node("n3", gpu=gpus(card(0), card(1))))
    assert verdicts == {"n1": "pass", "n2": "fail", "n3": "pass"}, seen.reasons("n1")
    assert "2: n1, n3; 1: n2" in seen.reasons("n2")


@pytest.mark.parametrize(("kind", "check"), [("gpu", "pci.gpus"), ("hca", "pci.hcas")])
def test_a_bus_that_lacks_what_the_others_have(kind: str, check: str) -> None:
    """Nodes that all have none agree on nothing: the check is then not there, rather than a pass of 0 of 0."""
    full, empty = bus(device(kind), device(kind, "0000:02:00.0")), bus(device(kind))
    _, seen = judged(node("n1", pci=full), node("n2", pci=empty), node("n3", pci=full))
    assert {name: seen.check(name, check).data["verdict"] for name in ("n1", "n2", "n3")} == {"n1": "pass", "n2": "fail", "n3": "pass"}
    _, seen = judged(node("n1", pci=bus()), node("n2", pci=bus()))
    assert check not in names(seen)


def test_a_node_without_gpus_among_nodes_with_some() -> None:
    verdicts, seen = judged(node("n1", gpu=gpus(card())), node("n2"), node("n3", gpu=gpus(card())))
    assert verdicts == {"n1": "pass", "n2": "fail", "n3": "pass"}, seen.reasons("n1")
    assert "measured 0, expected 1 (as most of the fleet has it)" in seen.reasons("n2")


def test_a_guest_may_have_a_part_of_the_board() -> None:
    """One H100 of eight in a guest is no fault; on bare metal seven are missing."""
    one = gpus(card(name="NVIDIA H100 80GB HBM3", pcie_width=16.0))
    verdicts, seen = judged(node("n1", {"expected_gpus": 1}, gpu=one, pci=bus(device("gpu"), **GUEST)))
    assert verdicts == {"n1": "pass"}, seen.reasons("n1")
    verdicts, seen = judged(node("n1", gpu=one, pci=bus(device("gpu"))))
    assert "measured 1, expected at least 8" in seen.reasons("n1")


def test_gpus_on_the_bus_that_the_driver_gave_up() -> None:
    verdicts, seen = judged(node("n1", {"expected_gpus": 1}, gpu=gpus(card(0)), pci=bus(device("gpu"), device("gpu", "0000:02:00.0"))))
    assert verdicts == {"n1": "fail"}
    assert "gpu 0000:02:00.0" in seen.check("n1", "gpu.lost").data["reason"]


def test_gpus_of_the_machine_are_not_those_of_a_container_on_it() -> None:
    verdicts, seen = judged(node("n1", pci=bus(device("gpu"), container="docker")))
    assert verdicts == {"n1": "pass"}, seen.reasons("n1")
    assert names(seen) & {"gpu.lost", "pci.dead", "gpu.nvidia_smi"} == set()


# -- what the tools say


@pytest.mark.parametrize(("answer", "verdict", "check", "words"), [
    (Outcome(failed=True, msg="the step did not end"), "unknown", "gpu.count", "the step did not end"),
    (gpus(card(), error="nvidia-smi did not end within 15 s"), "unknown", "gpu.nvidia_smi", "did not end within 15 s: nothing can be said of the GPUs"),
    (gpus(card(), nvlink_error="it hangs"), "unknown", "gpu.nvlinks", "it hangs"),
    (gpus(card(), library="550.107.02"), "fail", "gpu.driver_matches", "kernel module 550.90.07, nvidia-smi 550.107.02"),
    (gpus(card(), driver=""), "pass", "gpu.driver_matches", "measured 0"),
    (gpus(card(slow=None)), "unknown", "gpu.throttled", "could not be read"),
    (gpus(card(slow=["hw_power_brake_slowdown"])), "fail", "gpu.throttled", "GPU 0 (0000:01:00.0): hw_power_brake_slowdown"),
    (gpus(card(temperature=None)), "unknown", "gpu.temperature", "temperature of GPU 0 (0000:01:00.0) could not be read"),
    (gpus(card(ecc="Disabled")), "fail", "gpu.ecc_pending", "a change of the ECC mode waits for a reset"),
])
def test_tools_that_say_little_or_something_bad(answer: Outcome, verdict: str, check: str, words: str) -> None:
    verdicts, seen = judged(node("n1", {"expected_gpus": 1}, gpu=answer))
    assert verdicts == {"n1": verdict}, seen.reasons("n1")
    assert words in seen.check("n1", check).data["reason"]


def test_a_card_without_ecc_mig_nvlink_or_fabric_is_asked_for_none_of_them() -> None:
    plain = card(ecc=None, ecc_pending=None, ecc_uncorrected=None, ecc_uncorrected_ever=None, remapped=None, remap_pending=None, remap_failure=None, vbios=None)
    verdicts, seen = judged(node("n1", {"expected_gpus": 2}, gpu=gpus(plain, {**plain, "index": 1})))
    assert verdicts == {"n1": "pass"}, seen.reasons("n1")
    assert not {"gpu.ecc", "gpu.ecc_pending", "gpu.ecc_uncorrected", "gpu.mig", "gpu.nvlinks", "gpu.fabric_state", "gpu.remapped", "gpu.pcie_gen", "gpu.fabric_manager"} & names(seen)


@pytest.mark.parametrize(("manager", "verdict", "words"), [
    ({"state": "active", "version": "550.90.07", "error": ""}, "pass", ""), ({"state": "failed", "version": "550.90.07", "error": ""}, "fail", "measured failed"),
    ({"state": "", "version": "550.90.07", "error": "systemctl hangs"}, "unknown", "fabric_manager.state could not be read"),
    ({"state": "", "version": "550.90.07", "error": ""}, "fail", "expected active"), ({"state": "active", "version": None, "error": ""}, "unknown", "could not be read"),
    ({"state": "active", "version": "550.54.15", "error": ""}, "fail", "fabric manager 550.54.15, driver 550.90.07"),
])
def test_switches_need_their_manager(manager: dict[str, Any], verdict: str, words: str) -> None:
    verdicts, seen = judged(node("n1", {"expected_gpus": 1}, gpu=gpus(card(), fabric_manager=manager), pci=bus(device("gpu"), device("nvswitch", "0000:c1:00.0"))))
    assert verdicts == {"n1": verdict}, seen.reasons("n1")
    assert words in "; ".join(str(event.data["reason"]) for event in seen.of("check", "n1"))


@pytest.mark.parametrize(("log", "words"), [
    (Outcome(values={**LOG, "error": "journalctl is not installed; dmesg failed with exit code 1"}), "dmesg failed with exit code 1"),
    (Outcome(failed=True, msg="the step did not end"), "the step did not end"),
])
def test_a_log_that_cannot_be_read_is_no_clean_log(log: Outcome, words: str) -> None:
    verdicts, seen = judged(node("n1", {"expected_gpus": 1}, gpu=gpus(card()), kernel_log=log))
    assert verdicts == {"n1": "unknown"}
    assert words in seen.check("n1", "gpu.xid").data["reason"]
    assert judged(node("n1", kernel_log=log))[0] == {"n1": "pass"}  # without a GPU nobody asks it


@pytest.mark.parametrize("broken", [{"gpus": "eight"}, {"listed": 8}, {"error": None}, {"fabric_manager": "active"}, {"gpudirect": {}}, {"nvlink_error": 3}])
def test_an_answer_that_lacks_what_it_promises(broken: dict[str, Any]) -> None:
    verdicts, seen = judged(node("n1", {"expected_gpus": 1}, gpu=gpus(card(), **broken)))
    assert verdicts == {"n1": "unknown"}, seen.reasons("n1")
    assert "nothing can be concluded from it" in seen.reasons("n1")


# -- the bus


BRIDGE = {"address": "0000:00:01.0", "alive": True, "whole": True, "acs": ["SrcValid", "ReqRedir"], "redirect": ["ReqRedir"]}
HIDDEN: dict[str, Any] = {"whole": False, "max_read_request": None, "relaxed_ordering": None}


@pytest.mark.parametrize(("answer", "verdict", "words"), [
    (bus(device("gpu"), device("hca", "0000:02:00.0"), bridges=[BRIDGE]), "fail", "pci.acs: measured 1"),
    (bus(device("gpu"), device("hca", "0000:02:00.0"), bridges=[BRIDGE], **GUEST), "pass", ""),
    (bus(device("hca"), bridges=[BRIDGE]), "pass", ""),
    (bus(device("hca", **HIDDEN)), "unknown", "max_read_request of hca 0000:01:00.0 could not be read"),
    (bus(device("hca", **HIDDEN), **GUEST), "pass", ""),
    (bus(device("gpu", **HIDDEN), bridges=[]), "unknown", "pci.acs: redirecting could not be read"),
    (bus(device("hca", relaxed_ordering=False)), "fail", "hca 0000:01:00.0: no"),
    (bus(device("hca", width=None)), "fail", "hca 0000:01:00.0 is down, of x16"),
    (bus(device("hca", width=None, speed=None), **GUEST), "pass", ""),
    (bus(device("nvme", width=2.0, width_max=4.0)), "fail", "nvme 0000:01:00.0 runs x2 of x4"),
    (bus(device("gpu", speed=2.5), bridges=[]), "pass", ""),
    (bus(device("hca", iommu="translated"), device("gpu", "0000:02:00.0"), bridges=[]), "fail", "pci.iommu: measured 1"),
    (bus(device("hca", iommu="translated"), device("gpu", "0000:02:00.0"), bridges=[], **GUEST), "pass", ""),
    (bus(device("hca", numa_node=None), numa_nodes=2), "fail", "hca 0000:01:00.0"),
    (bus(device("nvme", numa_node=None), numa_nodes=2), "pass", ""),
    (bus(device("hca", numa_node=None), numa_nodes=1), "pass", ""),
    (bus(device("hca", width="sixteen")), "unknown", "expected numbers"),
    (Outcome(failed=True, msg="facts about the PCI bus are missing: no answer within 10 s"), "unknown", "no answer within 10 s"),
    (Outcome(values={}), "unknown", "probe_pci gave nothing"),
])
def test_the_bus_of_one_node(answer: Outcome, verdict: str, words: str) -> None:
    cards = gpus(card(0, pci="0000:01:00.0"), card(1, pci="0000:02:00.0")) if any(one.get("kind") == "gpu" for one in answer.values.get("devices", [])) else Outcome(values=GPU)
    verdicts, seen = judged(node("n1", {"expected_gpus": 0} if cards.values["gpus"] == [] else {"expected_gpus": 2}, pci=answer, gpu=cards))
    reasons = "; ".join(part for part in seen.reasons("n1").split("; ") if not part.startswith("gpu."))
    assert verdicts["n1"] == verdict, reasons
    assert words in seen.reasons("n1")


# -- ports


def port(**changes: Any) -> dict[str, Any]:
    base = {
        "device": "mlx5_0", "port": 1, "netdev": "eth0", "usable": True, "reason": "", "state": "ACTIVE", "phys_state": "LinkUp", "rate": 400.0,
        "link_layer": "Ethernet", "lid": 0, "fw_ver": "28.39", "board_id": "MT_838", "driver": "mlx5_core", "pci": "", "numa_node": "0", "mtu": 9000,
        "counters": {}, "hw_counters": {}, "gids": [], "addresses": ["10.0.0.1"], "matching": [3],
    }
    return {**base, **changes}


def ports(*found: dict[str, Any]) -> Outcome:
    return Outcome(values={**HCA, "ports": list(found)})


@pytest.mark.parametrize(("answer", "variables", "verdict", "words"), [
    (ports(port()), {}, "pass", ""), (ports(port(matching=[])), {}, "fail", "hca.gid: measured no"), (ports(port(matching=[], driver="efa")), {}, "pass", ""),
    (ports(port(matching=[], link_layer="InfiniBand")), {}, "pass", ""), (ports(port(), port(device="mlx5_1", rate=100.0)), {}, "fail", "mlx5_1 port 1: 12.5 GB/s (100 Gb/s)"),
    (ports(port(rate=0.0, driver="efa")), {}, "pass", ""), (ports(port(rate="fast")), {}, "unknown", "gave 'fast' for rate"),
    (ports(port()), {"torch_env": {"NCCL_IB_GID_INDEX": "3"}}, "pass", ""), (ports(port()), {"torch_env": {"NCCL_IB_GID_INDEX": "1"}}, "fail", "hca.gid_pinned"),
    (ports(port()), {"torch_env": {"NCCL_IB_GID_INDEX": "-1"}}, "pass", ""), (ports(port(), port(device="mlx5_1", link_layer="InfiniBand")), {}, "fail", "hca.link_layer"),
    (ports(port(usable=False, reason="front end", matching=[])), {}, "pass", ""), (ports(port()), {"expected_hca_rate": "800 Gb/s"}, "fail", "expected_hca_rate of the inventory"),
    (Outcome(failed=True, msg="subnets: x is not a network"), {}, "unknown", "is not a network"), (Outcome(values={}), {}, "unknown", "probe_hca gave nothing"),
])
def test_the_ports_of_one_node(answer: Outcome, variables: dict[str, Any], verdict: str, words: str) -> None:
    verdicts, seen = judged(node("n1", variables, hca=answer))
    assert verdicts == {"n1": verdict}, seen.reasons("n1")
    assert words in seen.reasons("n1")


def test_ports_without_a_log_are_unknown_in_their_flaps_only() -> None:
    verdicts, seen = judged(node("n1", hca=ports(port()), kernel_log=Outcome(values={**LOG, "error": "dmesg failed"})))
    assert verdicts == {"n1": "unknown"}
    assert seen.reasons("n1") == "hca.flaps: dmesg failed"


def down(interface: str, age: float | None) -> dict[str, Any]:
    return {"kind": "link_down", "interface": interface, "at": None if age is None else NOW - age}


@pytest.mark.parametrize(("events", "count"), [
    ([], 0), ([down("eth0", 60.0)] * 3, 3), ([down("eth0", WINDOW - 1), down("eth0", WINDOW + 1)], 1), ([down("eth0", None)], 1), ([down("eth9", 5.0)] * 9, 0),
    ([down("eth0", 5.0), down("eth1", 5.0), down("eth1", 6.0)], 2), ([down("mlx5_0", 5.0)], 1), ([{"kind": "xid", "code": 79, "pci": "x"}], 0),
])
def test_lost_links_within_the_window(events: list[dict[str, Any]], count: int) -> None:
    """The worst port counts; other interfaces do not; a line without a time does."""
    assert len(flaps(events, NOW, [port(), port(device="mlx5_1", netdev="eth1")])) == count


# -- disks


def disk(name: str = "nvme0", **changes: Any) -> dict[str, Any]:
    base = {
        "name": name, "model": "PM1733", "serial": "S1", "firmware": "EPK9", "state": "live", "transport": "pcie", "pci": "", "warning": 0.0, "temperature": 36.0,
        "spare": 100.0, "spare_threshold": 10.0, "used": 3.0, "media_errors": 0.0, "error": "",
    }
    return {**base, **changes}


SILENT: dict[str, Any] = {"warning": None, "temperature": None, "spare": None, "spare_threshold": None, "used": None, "media_errors": None}


@pytest.mark.parametrize(("disks", "variables", "verdict", "words"), [
    ([], {}, "pass", ""), ([disk()], {}, "pass", ""), ([disk(), disk("nvme1", used=95.0)], {}, "fail", "nvme1 (PM1733 S1): 95 percent"),
    ([disk(used=95.0)], {"expected_nvme_used": 96}, "pass", ""), ([disk(error="nvme did not end within 8 s", **SILENT)], {}, "unknown", "nvme did not end within 8 s"),
    ([disk(used=95.0), disk("nvme1", error="hangs", **SILENT)], {}, "fail", "nvme0 (PM1733 S1): 95 percent"), ([disk(warning=None)], {}, "unknown", "could not be read"),
    ([disk(state=None)], {}, "pass", ""), ([disk(state="resetting")], {}, "fail", "measured resetting"), ([disk()], {"expected_nvme": 2}, "fail", "measured 1, expected at least 2"),
    ([disk(spare=0.0, spare_threshold=0.0)], {}, "pass", ""), ([disk(media_errors=2.0)], {"expected_nvme_media_errors": 5}, "pass", ""),
    ([disk(temperature=80.0)], {}, "fail", "measured 80 degC"),
])
def test_the_disks_of_one_node(disks: list[dict[str, Any]], variables: dict[str, Any], verdict: str, words: str) -> None:
    verdicts, seen = judged(node("n1", variables, nvme=Outcome(values={**NVME, "controllers": disks})))
    assert verdicts == {"n1": verdict}, seen.reasons("n1")
    assert words in seen.reasons("n1")


@pytest.mark.parametrize(("answer", "words"), [(Outcome(failed=True, msg="no sysfs"), "no sysfs"), (Outcome(values={}), "gave nothing for controllers")])
def test_a_probe_of_disks_that_says_nothing(answer: Outcome, words: str) -> None:
    verdicts, seen = judged(node("n1", nvme=answer))
    assert verdicts == {"n1": "unknown"}
    assert words in seen.reasons("n1")


# -- how many cards the fabric needs


@pytest.mark.parametrize(("kind", "usable", "variables", "verdict", "words"), [
    ("tcp", 0, {}, "pass", ""), ("tcp", 0, {"expected_hcas": 8}, "fail", "measured 0, expected at least 8 (devices that are up and usable): no RDMA device"),
    ("ib", 7, {"expected_hcas": 8}, "fail", "measured 7, expected at least 8"), ("ib", 8, {"expected_hcas": 8}, "pass", ""), ("ib", 1, {}, "pass", ""),
    ("ib", 0, {}, "fail", "measured 0, expected at least 1"), ("tcp", 0, {"node_profile": "oci-bm-h100"}, "fail", "expected at least 16"),
    ("tcp", 0, {"node_profile": "oci-bm-h100", "network_tier": "standard"}, "pass", ""), ("tcp", 0, {"expected_hcas": 0}, "pass", ""),
])
def test_cards_that_hosts_yaml_or_the_profile_expects(kind: str, usable: int, variables: dict[str, Any], verdict: str, words: str) -> None:
    """A node whose cards are all dead has a fabric of tcp: that must not hide that cards are expected."""
    cards = [{"name": f"mlx5_{index}", "usable": True, "reason": ""} for index in range(usable)]
    one = FakeNode("n1", answers={"fabric_facts": fabric(kind, cards)}, variables=variables)
    seen = Seen()
    verdicts = verify([node_of(one)], Suite("fabric", "", (SuiteStep("fabric", 20.0),)), FakeFleet(one), seen)
    assert verdicts == {"n1": verdict}, seen.reasons("n1")
    assert words in seen.reasons("n1")
