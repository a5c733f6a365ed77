"""What is sent over which link, against sums done by hand, and what must hold whatever the layout is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.advise.layout import Group, Layout
from nodectl.advise.network import Transfer, measured_latency, measured_rate, nominal, seconds, shares
from nodectl.advise.volumes import bubble, transfers
from nodectl.advise.workload import Workload
from tests.advise.jobs import exact, net, shipped

TWO_OF_EIGHT = Group("data", 16, 8, 2, 1)
# op, group, (adapters, NVLink) for one byte, (hops between nodes, inside)
SHARES = [
    ("all_gather", TWO_OF_EIGHT, (1 / 2, 15 / 16), (1, 7)),
    ("reduce_scatter", TWO_OF_EIGHT, (1 / 2, 15 / 16), (1, 7)),
    ("all_reduce", TWO_OF_EIGHT, (1.0, 30 / 16), (2, 14)),
    ("all_reduce", Group("tensor", 8, 8, 1, 1), (0.0, 14 / 8), (0, 14)),
    ("all_gather", Group("data", 4, 1, 4, 8), (3 / 4, 0.0), (3, 0)),
    ("alltoall", TWO_OF_EIGHT, (8 * 8 / 16, 7 / 16), (1, 7)),
    ("sendrecv", Group("pipeline", 4, 1, 4, 8), (1.0, 0.0), (1, 0)),
    ("sendrecv", Group("pipeline", 4, 4, 1, 2), (0.0, 1.0), (0, 1)),
]


@pytest.mark.parametrize(("op", "group", "links", "hops"), SHARES)
def test_shares(op: str, group: Group, links: tuple[float, float], hops: tuple[int, int]) -> None:
    outside, inside, far, near = shares(op, group)
    assert (outside, inside) == pytest.approx(links)
    assert (far, near) == hops


# nodes, gpus, tensor, expert, pipeline; kind of group; ranks, inside, nodes, beside
GROUPS = [
    ((2, 8, 1, 1, 1), "data", (16, 8, 2, 1)),
    ((8, 8, 8, 1, 1), "tensor", (8, 8, 1, 1)),
    ((8, 8, 8, 1, 1), "data", (8, 1, 8, 8)),
    ((4, 8, 2, 1, 1), "data", (16, 4, 4, 2)),
    ((4, 8, 1, 8, 1), "expert", (8, 8, 1, 1)),
    ((4, 8, 1, 8, 1), "expert_data", (4, 1, 4, 8)),
    ((4, 8, 1, 16, 1), "expert", (16, 8, 2, 1)),
    ((64, 8, 8, 1, 16), "pipeline", (16, 1, 16, 8)),
    ((64, 8, 8, 1, 16), "data", (4, 1, 4, 8)),
]


@pytest.mark.parametrize(("degrees", "kind", "wanted"), GROUPS)
def test_groups(degrees: tuple[int, int, int, int, int], kind: str, wanted: tuple[int, int, int, int]) -> None:
    group = Layout(*degrees).group(kind)
    assert (group.ranks, group.inside, group.nodes, group.beside) == wanted


def test_a_gather_over_two_nodes_by_hand() -> None:
    """24.4 GB over 2 x 8 GPUs: half of it enters each node, at 10 GB/s; the NVLink would need 0.229 s."""
    found = seconds(Transfer("all_gather", TWO_OF_EIGHT, exact("size", 24.4e9, "B"), 1, "weights"), net(10e9, 100e9))
    assert found.value == pytest.approx(1.22)
    assert seconds(Transfer("all_gather", TWO_OF_EIGHT, exact("size", 24.4e9, "B"), 1, "weights"), net(1000e9, 100e9)).value == pytest.approx(24.4e9 * 15 / 16 / 100e9)


def test_small_messages_are_latency() -> None:
    found = seconds(Transfer("all_reduce", TWO_OF_EIGHT, exact("size", 8, "B"), 3, "x"), net(latency=1e-3))
    assert found.value == pytest.approx(3 * 2e-3, rel=1e-3)


def test_the_12b_job_sends_three_times_its_weights() -> None:
    found = {one.op: one for one in transfers(shipped("12b"))}
    assert found["all_gather"].count == 2 * 48
    assert found["all_gather"].size.value == pytest.approx(24.4e9 / 48)
    assert found["reduce_scatter"].size.value * found["reduce_scatter"].count == pytest.approx(24.4e9)


def test_each_kind_of_parallelism_sends_what_is_its_own() -> None:
    def ops(name: str) -> set[str]:
        return {f"{one.op} {one.group.name}" for one in transfers(shipped(name))}

    assert ops("7b") == {"reduce_scatter data", "all_gather data"}
    assert ops("70b") == {"all_gather data", "reduce_scatter data", "all_reduce tensor"}
    assert ops("405b") == {"reduce_scatter data", "all_gather data", "all_reduce tensor", "sendrecv pipeline"}
    experts = shipped("120b-moe")
    split = replace(experts, layout=replace(experts.layout, expert=8))
    assert {f"{one.op} {one.group.name}" for one in transfers(split)} == {
        "all_gather data", "reduce_scatter data", "all_gather expert_data", "reduce_scatter expert_data", "alltoall expert",
    }


def test_splitting_experts_sends_fewer_weights() -> None:
    whole = shipped("120b-moe")
    split = replace(whole, layout=replace(whole.layout, expert=8))

    def gathered(work: Workload) -> float:
        return sum((one.size.value * one.count for one in transfers(work) if one.op == "all_gather"), 0.0)

    assert gathered(split) < gathered(whole) / 5


def test_ddp_is_one_all_reduce_of_the_gradients() -> None:
    found = transfers(shipped("7b", data="ddp"))
    assert [(one.op, one.count) for one in found] == [("all_reduce", 1)]
    assert found[0].size.value == pytest.approx(2 * 6.74e9)


def test_more_micro_batches_gather_more_often_and_one_without_resharding_once() -> None:
    four = transfers(shipped("12b", micro_batches=4))
    assert [one.count for one in four] == [4 * 96, 4 * 48]
    assert transfers(shipped("12b", reshard=False))[0].count == 48


def test_activations_anew_cost_two_more_all_reduces() -> None:
    counts = [next(one.count for one in transfers(shipped("70b", recompute=recompute)) if one.group.name == "tensor") for recompute in (False, True)]
    assert counts == [4 * 80 * 8, 6 * 80 * 8]


def test_bubble() -> None:
    assert bubble(Layout(1, 8, pipeline=4), 12) == pytest.approx(3 / 15)
    assert bubble(Layout(1, 8), 3) == 0


def test_what_adapters_carried_from_a_bus_bandwidth() -> None:
    """H100: 480 GB/s of bus bandwidth on 2 x 8 are 256 GB/s of each node's adapters; with one rank a node it is the bus bandwidth itself."""
    assert measured_rate("x", exact("busbw", 480e9, "B/s"), 16, 2).value == pytest.approx(256e9)
    assert measured_rate("x", exact("busbw", 100e6, "B/s"), 4, 4).value == pytest.approx(100e6)
    assert measured_latency(exact("took", 6e-4, "s"), 6).value == pytest.approx(1e-4)


@given(st.integers(1, 64), st.sampled_from([1, 2, 4, 8]), st.floats(1e8, 1e12), st.floats(1.01, 100), st.sampled_from(["all_gather", "all_reduce", "alltoall", "sendrecv"]))
def test_more_bandwidth_is_never_slower(nodes: int, gpus: int, rate: float, factor: float, op: str) -> None:
    group = Layout(nodes, gpus).group("data")
    transfer = Transfer(op, group, exact("size", 1e9, "B"), 2, "x")
    assert seconds(transfer, net(rate * factor)).value <= seconds(transfer, net(rate)).value
    assert seconds(transfer, net(gpu=rate * factor)).value <= seconds(transfer, net(gpu=rate)).value


def test_a_group_of_one_waits_for_nobody() -> None:
    assert seconds(Transfer("all_reduce", Group("data", 1, 1, 1, 8), exact("size", 1e9, "B"), 1, "x"), net()).value == 0


def test_a_data_sheet_is_an_assumption_with_a_range() -> None:
    found = nominal("10 GbE", 1.25e9, "tcp", "H100")
    assert found.node.low < found.node.value < 1.25e9
    assert {leaf.kind for leaf in found.node.leaves()} == {"assumed"}
