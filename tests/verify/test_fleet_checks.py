"""What must be the same on all nodes, clocks that disagree, and what an inventory may say."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.transport.channel import Target
from nodectl.verify.judging.judge import judge
from nodectl.verify.judging.reading import Reading
from nodectl.verify.members import Clock, NodeFacts, backend_of, members_of, node_data, site_bar, sku_of
from nodectl.verify.node.fleet_checks import clocks, duplicates, same
from nodectl.verify.session import Session
from nodectl.verify.settings import mistakes
from tests.verify.fleet import FakeFleet


def verdicts(reading: Reading) -> dict[str, str]:
    return {check.host: check.verdict for check in judge(reading.measurements, (), reading.expectations)}


P, F = "pass", "fail"


@pytest.mark.parametrize(("values", "expected"), [
    ({"a": 1500.0, "b": 1500.0}, {"a": P, "b": P}),
    ({"a": 1500.0, "b": 9000.0}, {"a": F, "b": F}),
    ({"a": 1500.0, "b": 1500.0, "c": 9000.0}, {"a": P, "b": P, "c": F}),
    ({"a": 1500.0, "b": 4200.0, "c": 9000.0}, {"a": F, "b": F, "c": F}),
    ({"a": 9000.0, "b": 9000.0, "c": 1500.0, "d": 1500.0}, {"a": F, "b": F, "c": F, "d": F}),
    ({"a": 1500.0}, {}),
    ({}, {}),
])
def test_the_odd_one_out(values: dict[str, float], expected: dict[str, str]) -> None:
    assert verdicts(same("network.mtu", "count", "m", values, "large ones hang")) == expected


def test_the_reason_lists_all_nodes_and_the_consequence() -> None:
    reading = same("network.mtu", "count", "m", {"a": 1500.0, "b": 1500.0, "c": 9000.0}, "large ones hang")
    reason = judge(reading.measurements, (), reading.expectations)[2].reason
    assert "measured 9000, expected 1500" in reason
    assert "1500: a, b; 9000: c; large ones hang" in reason


def test_duplicates() -> None:
    assert verdicts(duplicates({"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.1"})) == {"a": F, "b": P, "c": F}


# offsets from the controller's clock in seconds
@pytest.mark.parametrize(("offsets", "expected"), [
    ({"a": 0.01, "b": -0.02, "c": 0.0}, {"a": P, "b": P, "c": P}),
    ({"a": 0.0, "b": 3.0, "c": 0.0}, {"a": P, "b": F, "c": P}),
    ({"a": 60.0, "b": 60.1, "c": 60.0}, {"a": P, "b": P, "c": P}),  # the controller is off
    ({"a": 0.0, "b": 3.0}, {"a": P, "b": F}),  # the controller is the third clock
    ({"a": 3.0}, {"a": F}),
    ({"a": 0.1}, {"a": P}),
    ({}, {}),
])
def test_clocks(offsets: dict[str, float], expected: dict[str, str]) -> None:
    assert verdicts(clocks({host: Clock(offset, 0.001) for host, offset in offsets.items()}, 0.5)) == expected


def test_a_slow_answer_tells_no_offset() -> None:
    assert verdicts(clocks({"a": Clock(0.0, 2.0)}, 0.5)) == {"a": "unknown"}


@pytest.mark.parametrize(("names", "sku"), [
    (["NVIDIA H100 80GB HBM3"], "H100-SXM"), (["NVIDIA H100 NVL"], "H100-NVL"), (["NVIDIA H200"], "H200-SXM"), (["NVIDIA A100-SXM4-80GB"], "A100-SXM"),
    (["NVIDIA A100-PCIE-40GB"], "A100-PCIe"), (["NVIDIA B200"], "B200"), (["NVIDIA GB200"], "GB200"), (["AMD Instinct MI300X"], "MI300X"),
    (["NVIDIA L40S"], "NVIDIA L40S"), ([], ""),
])
def test_skus(names: list[str], sku: str) -> None:
    assert sku_of(names) == sku


@pytest.mark.parametrize(("counts", "backend"), [([8, 8], "nccl"), ([8, 0], "gloo"), ([0, 0], "gloo"), ([], "gloo")])
def test_a_group_speaks_one_language(counts: list[int], backend: str) -> None:
    assert backend_of([NodeFacts(gpus=count) for count in counts]) == backend


@pytest.mark.parametrize(("variables", "value", "words"), [
    ({"network_floor": "200 Mb/s"}, 25e6, "network_floor"), ({"expected_busbw": "400 GB/s"}, 360e9, "90% of expected_busbw"),
    ({"network_floor": 1e9, "expected_busbw": 2e9}, 1.8e9, "90% of expected_busbw"), ({"network_floor": 3e9, "expected_busbw": 2e9}, 3e9, "network_floor"),
])
def test_a_sites_bar_is_the_higher_one(variables: dict[str, Any], value: float, words: str) -> None:
    bar = site_bar("n1", variables)
    assert bar is not None
    assert bar.value == pytest.approx(value)
    assert words in bar.why


def test_no_bar_of_the_site() -> None:
    assert site_bar("n1", {"network_floor": "", "expected_busbw": None}) is None


@pytest.mark.parametrize(("variables", "words"), [
    ({"network_floor": "fast"}, ["network_floor"]), ({"expected_busbw": "3 GiB"}, ["expected_busbw"]), ({"scratch_floor": True}, ["scratch_floor"]),
    ({"file_mount_floor": "1 parsec"}, ["file_mount_floor"]), ({"expected_gpus": "eight"}, ["expected_gpus"]), ({"base_memlock": "lots"}, ["base_memlock"]),
    ({"torch_env": ["A=1"]}, ["torch_env"]), ({"file_mounts": "/data"}, ["file_mounts"]), ({"network_floor": "x", "base_nofile": "y"}, ["network_floor", "base_nofile"]),
    ({"network_floor": float("nan")}, ["network_floor"]), ({"network_floor": float("inf")}, ["network_floor"]), ({"network_floor": -1}, ["network_floor"]),
    ({"network_floor": 300}, ["network_floor: 300 without a unit is 300 B/s"]), ({"scratch_floor": "7"}, ["scratch_floor: 7 without a unit"]),
    ({"expected_busbw": 999_999.0}, ["expected_busbw"]), ({"expected_busbw": 1e6}, []), ({"network_floor": "300 kB/s"}, []), ({"network_floor": "1 B/s"}, []),
    ({"network_floor": 0}, ["network_floor: a bar of 0 passes everything"]), ({"scratch_floor": "0 MB/s"}, ["scratch_floor"]), ({"expected_busbw": "1e999 B/s"}, ["expected_busbw"]),
    ({"network_floor": 10**400}, ["network_floor"]), ({"expected_gpus": -8}, ["expected_gpus"]), ({"expected_gpus": "8 GB"}, ["expected_gpus"]), ({"base_nofile": []}, ["base_nofile"]),
    ({"expected_gpus": 0}, []), ({"base_memlock": -1}, []), ({"base_memlock": "-2"}, ["base_memlock"]),
    ({"fabric_subnets": "10.0.0.0/8"}, ["fabric_subnets: expected a list"]), ({"fabric_exclude": {"a": 1}}, ["fabric_exclude"]), ({"fabric_subnets": ["10.0.0.0/8"]}, []),
    ({"torch_env": {"A": "1\nB=2"}}, ["torch_env: A holds a line break"]), ({"torch_env": {"-S": "x"}}, ["torch_env: '-S' is not a name"]), ({"torch_env": {"": "x"}}, ["torch_env"]),
    ({"torch_env": {"A=B": "x"}}, ["torch_env"]), ({"torch_env": {"A": True}}, ["torch_env: A is True; expected text"]), ({"torch_env": {"A": None}}, ["torch_env"]),
    ({"torch_env": {"A": ["x"], "B": "\x00"}}, ["torch_env: A", "torch_env: B"]), ({"torch_env": {"A": "", "B": "ü x", "C": 1.5}}, []),
    ({}, []), ({"base_memlock": "unlimited", "network_floor": "1 GB/s", "expected_gpus": "8", "torch_env": {"A": 1}, "file_mounts": None}, []),
])
def test_settings(variables: dict[str, Any], words: list[str]) -> None:
    found = mistakes(variables)
    assert len(found) == len(words)
    assert all(text.startswith(word) for text, word in zip(found, words, strict=True))


def member_data(target: Target, facts: NodeFacts, **variables: Any) -> dict[str, Any]:
    (member,) = members_of([(Session(target.host, target, variables, FakeFleet()), facts)])
    return node_data(target, member, facts)


def test_paths_of_the_handoff_are_absolute_and_secrets_are_not_in_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = Target("n1", "192.0.2.1", key_file="keys/id", options={"userknownhostsfile": "known_hosts", "proxyjump": "bastion"})
    data = member_data(target, NodeFacts(), ansible_password="hunter2", torch_env={"NCCL_DEBUG": "WARN"})
    assert data["key_file"] == str(tmp_path / "keys/id")
    assert data["ssh_options"] == {"userknownhostsfile": str(tmp_path / "known_hosts"), "proxyjump": "bastion"}
    assert data["env"] == {"GLOO_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "WARN"}
    assert "hunter2" not in str(data)


@pytest.mark.parametrize("option", ["/dev/null", "none", "%d/.ssh/known_hosts", ""])
def test_option_values_that_are_no_plain_path_stay(option: str) -> None:
    data = member_data(Target("n1", "192.0.2.1", options={"userknownhostsfile": option}), NodeFacts())
    assert data["ssh_options"]["userknownhostsfile"] == option
