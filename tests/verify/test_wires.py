"""What carried the bytes: NCCL's log against the node's devices, and counters before and after against what had to be sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.transport.channel import Target
from nodectl.verify.answer import Garbled
from nodectl.verify.group.gang import GangResult, Member
from nodectl.verify.group.network_checks import Fleet, transport_reading
from nodectl.verify.group.wire_checks import Traffic, Wires, between, log_reading, traffic_of, traffic_reading
from nodectl.verify.judging.judge import judge
from nodectl.verify.parse.workload import GroupOutput
from nodectl.verify.session import Session

LOGS = Path(__file__).parent / "nccl_logs"
GB = 10**9


def members(*hosts: str, backend: str = "nccl", nproc: int = 8, **env: str) -> list[Member]:
    nobody: Any = None
    return [Member(Session(host, Target(host, host), {}, nobody), host, "eth0", nproc, "python3", backend, env) for host in hosts]


def fleet(fabric: str = "ib") -> Fleet:
    return Fleet(fabric, "H100-SXM", 8, False, (), {})


def logged(name: str, hosts: tuple[str, ...] = ("n1", "n2"), **other: str) -> GangResult:
    text = (LOGS / f"{name}.log").read_text("utf-8") if name else ""
    return GangResult(GroupOutput(), 16, logs={**dict.fromkeys(hosts, text), **other})


def verdicts(reading: Any, host: str = "n1") -> dict[str, tuple[str, str]]:
    return {check.name: (check.verdict, check.reason) for check in judge(reading.measurements, (), reading.expectations) if check.host == host}


THREE = frozenset(["mlx5_0", "mlx5_3", "mlx5_10"])
# log, usable HCAs, GPUDirect there; verdicts of hcas_used and gpudirect, words
LOGGED: list[tuple[str, Wires, dict[str, str], str]] = [
    ("ib_2_19_gdr", Wires(THREE, True), {"network.hcas_used": "pass", "network.gpudirect": "pass"}, ""),
    ("ib_2_19_gdr", Wires(THREE | {"mlx5_11"}, True), {"network.hcas_used": "fail", "network.gpudirect": "pass"}, "mlx5_11 is not used"),
    ("ib_2_19_gdr", Wires(THREE - {"mlx5_3"}, True), {"network.hcas_used": "fail", "network.gpudirect": "pass"}, "mlx5_3 is no device of the fabric"),
    ("roce_staged", Wires(frozenset(["mlx5_2", "mlx5_3"]), True), {"network.hcas_used": "pass", "network.gpudirect": "fail"}, "2 of 3 connections copy through host memory"),
    ("roce_staged", Wires(frozenset(["mlx5_2", "mlx5_3"]), True), {"network.hcas_used": "pass", "network.gpudirect": "fail"}, "disabled for mlx5_3"),
    ("roce_staged", Wires(frozenset(["mlx5_2", "mlx5_3"]), False), {"network.hcas_used": "pass"}, ""),
    ("socket_2_28", Wires(THREE, True), {"network.hcas_used": "fail", "network.gpudirect": "fail"}, "mlx5_0, mlx5_10, mlx5_3 is not used"),
    ("cut_at_the_front", Wires(THREE, True), {"network.hcas_used": "unknown", "network.gpudirect": "pass"}, "does not name its HCAs"),
    ("inside_one_node", Wires(frozenset(["mlx5_0"]), True), {"network.hcas_used": "pass", "network.gpudirect": "unknown"}, "no connection to another node"),
    ("", Wires(THREE, True), {"network.hcas_used": "unknown", "network.gpudirect": "unknown"}, "does not name its HCAs"),
    ("ib_2_19_gdr", Wires(error="no answer"), {"network.hcas_used": "unknown", "network.gpudirect": "unknown"}, "no answer"),
]


@pytest.mark.parametrize(("log", "wires", "expected", "words"), LOGGED)
def test_nccl_log_against_the_devices_of_the_node(log: str, wires: Wires, expected: dict[str, str], words: str) -> None:
    found = verdicts(log_reading(members("n1", "n2"), logged(log), fleet("roce"), {"n1": wires, "n2": wires}))
    assert {name: verdict for name, (verdict, _) in found.items()} == expected
    assert words in " ".join(reason for _, reason in found.values())


def test_a_node_that_was_not_asked_is_unknown() -> None:
    found = verdicts(log_reading(members("n1", "n2"), logged("ib_2_19_gdr"), fleet(), {"n2": Wires(THREE, True)}))
    assert {verdict for verdict, _ in found.values()} == {"unknown"}


@pytest.mark.parametrize(("people", "fabric"), [(members("n1", "n2", backend="gloo"), "ib"), (members("n1", "n2"), "tcp")])
def test_nothing_is_asked_where_no_fabric_is_used(people: list[Member], fabric: str) -> None:
    assert log_reading(people, logged("socket_2_28"), fleet(fabric), {}).measurements == []


def test_a_site_that_names_its_hcas_is_believed_and_efa_has_none() -> None:
    own = members("n1", "n2", NCCL_IB_HCA="=mlx5_0")
    assert "network.hcas_used" not in verdicts(log_reading(own, logged("ib_2_19_gdr"), fleet(), dict.fromkeys(("n1", "n2"), Wires(THREE, True))))
    assert set(verdicts(log_reading(members("n1", "n2"), logged("efa_ofi"), fleet("efa"), dict.fromkeys(("n1", "n2"), Wires(THREE, True))))) == {"network.gpudirect"}


# log; verdict of the network on an ib (efa where the name says so) fabric, words
NETWORKS = [
    ("ib_2_19_gdr", "ib", "pass", ""), ("ibext_mixed", "ib", "fail", "IB,Socket"), ("socket_2_28", "ib", "fail", "found no device for IB"),
    ("efa_ofi", "efa", "pass", ""), ("efa_fell_back", "efa", "fail", "Could not find any optimal provider"), ("cut_at_the_front", "ib", "pass", ""),
    ("", "ib", "unknown", "does not say which network"),
]


@pytest.mark.parametrize(("log", "fabric", "verdict", "words"), NETWORKS)
def test_the_network_of_each_node(log: str, fabric: str, verdict: str, words: str) -> None:
    found = verdicts(transport_reading(members("n1", "n2"), logged(log), fleet(fabric)))["network.transport"]
    assert found[0] == verdict
    assert words in found[1]


# -- counters


def values(**changes: Any) -> dict[str, Any]:
    ports = [{"device": "mlx5_0", "port": 1, "sent": 5 * GB, "received": 1}, {"device": "mlx5_0", "port": 2, "sent": GB, "received": 1}]
    return {"ports": ports, "interfaces": [{"name": "eth0", "sent": 7, "received": 8}], "simulated": False, **changes}


def test_ports_of_one_device_are_summed() -> None:
    assert traffic_of(values()) == Traffic({"mlx5_0": 6 * GB}, {"eth0": 7})


@pytest.mark.parametrize("sent", [None, -1, "many", True, 1.5])
def test_a_port_that_counts_nothing_makes_its_device_unknown(sent: object) -> None:
    assert traffic_of(values(ports=[{"device": "mlx5_0", "sent": sent}, {"device": "mlx5_0", "sent": 5}])).hcas == {"mlx5_0": None}


@pytest.mark.parametrize("changes", [{"ports": None}, {"interfaces": 5}, {"ports": [{"sent": 3}]}, {"interfaces": [{"name": 3}]}])
def test_garbled_counters_are_told(changes: dict[str, Any]) -> None:
    with pytest.raises(Garbled):
        traffic_of(values(**changes))


def test_between_two_readings() -> None:
    early, late = Traffic({"a": 5, "b": 9, "c": None}, {"eth0": 1}), Traffic({"a": 25, "b": 3, "c": 7, "d": 1}, {"eth0": 1})
    assert between(early, late) == Traffic({"a": 20, "b": None, "c": None, "d": None}, {"eth0": 0})


def group(*moved: int, nproc: int = 8) -> GangResult:
    return GangResult(GroupOutput(moved={index * nproc: bytes_ for index, bytes_ in enumerate(moved)}), len(moved) * nproc)


# backend, fabric, what n1 sent by device (HCAs, interfaces) while it had to send 10 GB; verdict, words
CARRIED: list[tuple[str, str, Traffic, str, str]] = [
    ("nccl", "ib", Traffic({"mlx5_0": 6 * GB, "mlx5_1": 5 * GB}, {"eth0": GB}), "pass", ""),
    ("nccl", "ib", Traffic({"mlx5_0": 5 * GB, "mlx5_1": 0}, {"eth0": GB}), "pass", ""),
    ("nccl", "ib", Traffic({"mlx5_0": 10**6, "mlx5_1": None}, {"eth0": 11 * GB}), "fail", "sent 1 MB of 10 GB: the rest went another way"),
    ("nccl", "roce", Traffic({"rxe0": None}, {"eth0": 11 * GB}), "unknown", "the node's HCAs count no bytes"),
    ("nccl", "tcp", Traffic({"mlx5_0": 0}, {"eth0": 11 * GB}), "pass", ""),
    ("gloo", "tcp", Traffic({}, {"eth0": 11 * GB}), "pass", ""),
    ("gloo", "tcp", Traffic({}, {"eth0": 10**6, "docker0": 11 * GB}), "fail", "docker0"),
    ("gloo", "tcp", Traffic({}, {"eth1": 11 * GB}), "unknown", "eth0 count no bytes"),
]


@pytest.mark.parametrize(("backend", "fabric", "sent", "verdict", "words"), CARRIED)
def test_counters_against_what_had_to_be_sent(backend: str, fabric: str, sent: Traffic, verdict: str, words: str) -> None:
    people = members("n1", "n2", backend=backend)
    reading = traffic_reading(people, group(10 * GB, 10 * GB), fleet(fabric), {"n1": sent, "n2": sent})
    (check, _) = judge(reading.measurements, (), reading.expectations)
    assert check.verdict == verdict
    assert words in f"{check.reason} {check.raw}"


@pytest.mark.parametrize(("moved", "sent", "words"), [
    ((), {"n1": Traffic({}, {"eth0": 5})}, "did not say how much they had to send"), ((10 * GB, 10 * GB), {}, "counters could not be read"),
])
def test_without_both_sides_it_is_unknown(moved: tuple[int, ...], sent: dict[str, Traffic], words: str) -> None:
    reading = traffic_reading(members("n1", "n2", backend="gloo"), group(*moved), fleet("tcp"), sent)
    first = judge(reading.measurements, (), reading.expectations)[0]
    assert first.verdict == "unknown"
    assert words in first.reason


def test_a_single_node_sends_nothing() -> None:
    assert traffic_reading(members("n1"), group(0), fleet(), {}).measurements == []
