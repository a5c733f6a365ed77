"""network_tier and disk_tier of hosts.yaml: what they came to, why, and which node is below its tier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.probes import probe_storage_target
from nodectl.verify.judging.judge import judge
from nodectl.verify.node.tier_checks import Scratch, disk_tier, local_nvme, network_tier, tcp_rate
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, SuiteStep
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, fabric, node_of, storage


def wire(speed: Any = 10_000, driver: str = "ixgbe", state: str = "up", kind: str = "ether") -> dict[str, Any]:
    return {"name": "eth0", "driver": driver, "state": state, "type": kind, "speed_mbps": speed}


def card(usable: bool = True, rate: float = 400.0, driver: str = "mlx5_core") -> dict[str, Any]:
    return {"name": "mlx5_0", "usable": usable, "driver": driver, "rate_gbps": rate, "reason": "" if usable else "port is down"}


NETWORKS: list[tuple[str, dict[str, Any], str, list[dict[str, Any]], list[dict[str, Any]], float, str, str]] = [
    ("best there is", {}, "ib", [card()] * 8, [wire()], 0, "pass", "best: ib, 8 x mlx5 at 400 Gb/s"),
    ("one of eight is enough for the tier", {}, "ib", [card(), *[card(False)] * 7], [wire()], 8, "pass", "best: ib, 1 x mlx5 at 400 Gb/s"),
    ("two kinds", {"network_tier": "best"}, "roce", [card(rate=100.0), card(driver="bnxt_re", rate=0)], [], 0, "pass", "best: roce, 1 x bnxt_re, 1 x mlx5 at 100 Gb/s"),
    ("efa", {}, "efa", [card(driver="efa", rate=100.0)] * 4, [], 0, "pass", "best: efa, 4 x efa at 100 Gb/s"),
    ("no hardware", {"network_tier": "best"}, "tcp", [], [wire()], 0, "pass", "asked best, found tcp at 10 Gb/s: no RDMA hardware is here, so that is the best there is; step estimate 4.4 times slower"),
    ("no hardware, no wire", {}, "tcp", [], [wire(driver="")], 0, "pass", "asked best, found tcp: no RDMA hardware is here, so that is the best there is"),
    ("hardware that is down", {}, "ib", [card(False)] * 8, [wire()], 0, "fail", "measured standard, expected best (asked best, found tcp at 10 Gb/s: IB hardware is here and cannot be used; step estimate 4.4 times slower"),
    ("hardware without a driver", {"network_tier": "best"}, "efa", [], [wire(25_000)], 0, "fail", "found tcp at 25 Gb/s: EFA hardware is here and cannot be used"),
    ("hardware that is expected", {}, "tcp", [], [wire()], 8, "fail", "8 RDMA devices are expected and none is here"),
    ("tcp is asked for", {"network_tier": "standard"}, "ib", [card(False)] * 8, [wire(100_000)], 8, "pass", "asked standard: tcp at 100 Gb/s"),
]


@pytest.mark.parametrize(("variables", "kind", "hcas", "links", "needed", "verdict", "words"), [case[1:] for case in NETWORKS], ids=[case[0] for case in NETWORKS])
def test_networks(variables: dict[str, Any], kind: str, hcas: list[dict[str, Any]], links: list[dict[str, Any]], needed: float, verdict: str, words: str) -> None:
    reading = network_tier("n1", variables, kind, {"hcas": hcas, "interfaces": links}, needed, False)
    check, = judge(reading.measurements, [], reading.expectations)
    assert (check.name, check.host, check.verdict) == ("network_tier", "n1", verdict)
    assert words in check.reason
    assert check.source == ("network_tier of hosts.yaml" if variables else "network_tier is best where hosts.yaml says nothing")


@pytest.mark.parametrize(("links", "rate"), [
    ([], 0), ([wire()], 1.25e9), ([wire(), wire(100_000)], 12.5e9), ([wire(None)], 0), ([wire(driver="")], 0), ([wire(state="down")], 0), ([wire(kind="bond")], 0), ([{}], 0),
])
def test_the_rate_of_tcp_is_that_of_a_wire(links: list[dict[str, Any]], rate: float) -> None:
    assert tcp_rate(links) == rate


TWO = ("nvme0", "nvme1")
DISKS: list[tuple[str, dict[str, Any], Scratch, str, str]] = [
    ("nvme", {}, Scratch("/scratch", "nvme", ("nvme0n1",), TWO), "pass", "best: /scratch on 1 x local NVMe"),
    ("partitions, striped", {"disk_tier": "best"}, Scratch("/scratch", "md", ("nvme0n1p1", "nvme1n1p1"), TWO), "pass", "best: /scratch on 2 x local NVMe, striped"),
    ("a disk beside NVMe", {}, Scratch("/scratch", "disk", ("sda",), TWO), "fail", "measured standard, expected best (asked best, found /scratch on disk (sda): 2 local NVMe disks are not used (nvme0, nvme1))"),
    ("only the system's NVMe", {}, Scratch("/scratch", "disk", ("sda",), ("nvme0",), system=("nvme0n1p2",)), "pass", "no other local NVMe is here, so that is the best there is"),
    ("no NVMe", {}, Scratch("/scratch", "md", ("sda", "sdb"), ()), "pass", "asked best, found /scratch on 2 x md (sda, sdb): no other local NVMe"),
    ("a volume of the network", {}, Scratch("/scratch", "nvme", ("nvme1n1",), ("nvme0",)), "fail", "1 local NVMe disks are not used (nvme0)"),
    ("a mix", {}, Scratch("/scratch", "md", ("nvme0n1", "sda"), TWO), "fail", "1 local NVMe disks are not used (nvme1)"),
    ("a network filesystem", {}, Scratch("/scratch", "nas:/x", (), ()), "pass", "asked best, found /scratch on nas:/x: no other"),
    ("nothing is mounted", {}, Scratch("/scratch", "overlay", (), (), mounted=False), "fail", "found /scratch on overlay, where no scratch disk is mounted"),
    ("a rehearsal", {}, Scratch("/scratch", "loop", ("loop7",), ()), "pass", "which stands in for a disk) [simulated]"),
    ("standard", {"disk_tier": "standard"}, Scratch("/scratch", "disk", ("sda",), TWO), "pass", "asked standard: /scratch on disk (sda)"),
]


@pytest.mark.parametrize(("variables", "found", "verdict", "words"), [case[1:] for case in DISKS], ids=[case[0] for case in DISKS])
def test_disks(variables: dict[str, Any], found: Scratch, verdict: str, words: str) -> None:
    reading = disk_tier("n1", variables, "disk_tier:/scratch2", found)
    check, = judge(reading.measurements, [], reading.expectations)
    assert (check.name, check.verdict) == ("disk_tier:/scratch2", verdict)
    assert words in check.reason
    assert check.source == ("disk_tier of hosts.yaml" if variables else "disk_tier is best where hosts.yaml says nothing")


@pytest.mark.parametrize(("model", "local"), [
    ("SAMSUNG MZQL23T8HCLS-00A07", True), ("Amazon EC2 NVMe Instance Storage", True), ("nvme_card", True), ("", True),
    ("Amazon Elastic Block Store", False), ("nvme_card-pd", False), ("MSFT NVMe Accelerator v1.0", False),
])
def test_volumes_of_the_network_that_look_like_nvme(model: str, local: bool) -> None:
    assert local_nvme([{"name": "nvme0", "model": model}]) == (("nvme0",) if local else ())


def sysfs(root: Path, built: dict[str, list[str]]) -> None:
    for name in {*built, *(part for parts in built.values() for part in parts)}:
        (root / name / "slaves").mkdir(parents=True)
    for name, parts in built.items():
        for part in parts:
            (root / name / "slaves" / part).symlink_to(root / part)


@pytest.mark.parametrize(("name", "disks"), [("nvme0n1", ["nvme0n1"]), ("md0", ["nvme0n1", "nvme1n1"]), ("dm-0", ["nvme0n1", "nvme1n1"])])
def test_what_lies_under_an_array_and_a_logical_volume(tmp_path: Path, name: str, disks: list[str]) -> None:
    sysfs(tmp_path, {"md0": ["nvme1n1", "nvme0n1"], "dm-0": ["md0"]})
    assert probe_storage_target._below(str(tmp_path / name)) == disks


# -- as part of a verification

CONTROLLER = {"name": "nvme1", "model": "SAMSUNG", "serial": "S1", "firmware": "1", "state": "live", "error": ""}
STEPS = (SuiteStep("pci", 20.0), SuiteStep("nvme", 20.0), SuiteStep("fabric", 20.0), SuiteStep("mounts", 20.0))


def under(path: str) -> Any:
    def answer(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        return storage(target="/", disks=["nvme0n1p2"]) if args["path"] == "/" else storage(target=path, kind="disk", disks=["sda"])
    return answer


def test_a_node_below_its_tiers_fails_and_the_others_pass() -> None:
    nvme = Outcome(values={"controllers": [CONTROLLER, {**CONTROLLER, "name": "nvme0"}], "simulated": False})
    odd = FakeNode("n1", answers={"fabric_facts": fabric("ib", [card(False)]), "probe_nvme": nvme, "probe_storage_target": under("/scratch")})
    seen = Seen()
    plain = FakeNode("n2", answers={"probe_storage_target": under("/scratch")})
    verdicts = verify([node_of(odd), node_of(plain)], Suite("tiers", "", STEPS), FakeFleet(odd, plain), seen)
    assert verdicts["n1"] == "fail"
    assert seen.check("n1", "network_tier").data["verdict"] == "fail"
    disk = seen.check("n1", "disk_tier").data
    assert (disk["verdict"], disk["value"], disk["floor"]) == ("fail", "standard", "best")
    assert "1 local NVMe disks are not used (nvme1)" in disk["reason"]
    assert {seen.check("n2", name).data["verdict"] for name in ("network_tier", "disk_tier")} == {"pass"}


def test_where_the_system_lies_is_unknown_so_is_the_tier() -> None:
    nvme = Outcome(values={"controllers": [CONTROLLER], "simulated": False})

    def silent(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        return Outcome(failed=True, msg="/ does not answer") if args["path"] == "/" else storage(kind="disk")

    odd, seen = FakeNode("n1", answers={"probe_nvme": nvme, "probe_storage_target": silent}), Seen()
    verify([node_of(odd)], Suite("tiers", "", STEPS), FakeFleet(odd), seen)
    check = seen.check("n1", "disk_tier").data
    assert (check["verdict"], check["reason"]) == ("unknown", "/ does not answer")


def test_where_no_step_looked_for_nvme_nothing_is_said_of_the_tier() -> None:
    node, seen = FakeNode("n1", answers={"probe_storage_target": under("/scratch")}), Seen()
    verify([node_of(node)], Suite("mounts", "", (SuiteStep("mounts", 20.0),)), FakeFleet(node), seen)
    assert "disk_tier" not in {event.data["name"] for event in seen.of("check", "n1")}
