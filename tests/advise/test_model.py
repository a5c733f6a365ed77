"""T = T_gpu + T_net + T_io: sums that hold for every workload, and directions that no input may break."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.advise.figure import Figure
from nodectl.advise.model import Estimate, Places, bottleneck, compute, estimate, exposed, idle
from nodectl.advise.storage import Place, safe_seconds, save_seconds
from nodectl.advise.workload import Workload
from nodectl.advise.workload_load import shipped as names
from tests.advise.jobs import disk, exact, net, shipped

WORKLOADS = [shipped(name) for name in names()]


def all_at(place: Place) -> Places:
    return Places(place, place, place)


def test_ten_seconds_of_compute_and_thirty_of_network() -> None:
    gpu, network, none = exact("T_gpu", 10, "s"), exact("all collectives", 30, "s"), exact("overlap", 0, "1")
    waiting = exposed("T_net", network, gpu, none)
    assert waiting.value == 30
    assert gpu.value + waiting.value == 40
    assert idle(gpu, [waiting]).value == pytest.approx(0.75)


def test_full_overlap_leaves_the_longer_of_both() -> None:
    assert exposed("T_net", exact("net", 30, "s"), exact("gpu", 10, "s"), exact("overlap", 1, "1")).value == 20
    assert exposed("T_net", exact("net", 10, "s"), exact("gpu", 30, "s"), exact("overlap", 1, "1")).value == 0


works, rates, shares = st.sampled_from(WORKLOADS), st.floats(1e7, 1e12), st.floats(0, 1)


def job(work: Workload, overlap: float, ahead: float, blocking: bool) -> Workload:
    return replace(work, overlap=exact("overlap", overlap, "1"), read_ahead=exact("read_ahead", ahead, "1"), blocking=blocking)


@given(works, rates, rates, shares, shares, st.booleans())
@settings(max_examples=60, deadline=None)
def test_terms_sum_to_the_total(work: Workload, wire: float, store: float, overlap: float, ahead: float, blocking: bool) -> None:
    found = estimate(job(work, overlap, ahead, blocking), net(wire), all_at(disk(read=store, load=store, write=store)))
    assert found.step.value == pytest.approx(found.gpu.value + found.net.value + found.io.value)
    assert found.io.value == pytest.approx(found.reading.value + found.saving.value)
    assert found.run.value == pytest.approx(found.run_gpu.value + found.run_net.value + found.run_io.value)
    assert found.run.value == pytest.approx(work.steps * found.step.value + found.load.value)
    assert 0 <= found.idle.value <= 1
    assert all(term.low <= term.value <= term.high for term in (found.step, found.run, found.idle, found.net, found.io))
    assert min(found.gpu.value, found.net.value, found.reading.value, found.saving.value) >= 0


@given(works, rates, st.floats(1.001, 1000), rates, shares, shares, st.booleans())
@settings(max_examples=80, deadline=None)
def test_more_bandwidth_never_makes_a_step_slower(work: Workload, wire: float, more: float, store: float, overlap: float, ahead: float, blocking: bool) -> None:
    mine = job(work, overlap, ahead, blocking)
    place = disk(read=store, load=store, write=store)
    safe, cache = exact("safe", store / 7, "B/s"), exact("cache", 3e10, "B")
    cached = save_seconds(mine, disk(write=store, safe=safe, cache=cache))
    assert save_seconds(mine, disk(write=store * more, safe=safe, cache=cache)).value <= cached.value * (1 + 1e-9)
    base = estimate(mine, net(wire), all_at(place))
    assert estimate(mine, net(wire * more), all_at(place)).step.value <= base.step.value * (1 + 1e-9)
    faster = disk(read=store * more, load=store * more, write=store * more)
    better = estimate(mine, net(wire), all_at(faster))
    assert better.step.value <= base.step.value * (1 + 1e-9)
    assert better.run.value <= base.run.value * (1 + 1e-9)


@given(works, rates, st.floats(1.001, 100), st.booleans(), st.integers(1, 200), st.floats(1e8, 1e14))
@settings(max_examples=60, deadline=None)
def test_a_bigger_checkpoint_never_makes_io_smaller(work: Workload, store: float, more: float, blocking: bool, interval: int, cache: float) -> None:
    def io(size: float) -> float:
        mine = replace(work, checkpoint_size=exact("bytes of a checkpoint", size, "B"), blocking=blocking, interval=interval)
        place = disk(write=store, safe=exact("safe", 1e8, "B/s"), cache=exact("cache", cache, "B"))
        return estimate(mine, net(), all_at(place)).run_io.value

    assert io(1e11 * more) >= io(1e11)


def test_compute_is_measured_or_follows_from_flop() -> None:
    work = shipped("12b")
    assert compute(replace(work, seconds=exact("x", 3.5, "s"))).value == 3.5
    flops = replace(work, flops=exact("FLOP", 16e15, "FLOP"), rate=exact("rate", 400e12, "FLOP/s"))
    assert compute(flops).value == pytest.approx(16e15 / (400e12 * 16))
    by_hand = 8 * 12.2e9 * 64 * 8192 / (16 * 989e12 * 0.4)
    assert compute(work).value == pytest.approx(by_hand)


def test_a_pipeline_waits_in_its_bubble() -> None:
    work = replace(shipped("405b"), flops=exact("FLOP", 1e18, "FLOP"), rate=exact("rate", 400e12, "FLOP/s"))
    flat = 1e18 / (400e12 * 512)
    assert compute(work).value == pytest.approx(flat * (128 + 15) / 128)


def test_saving_in_the_background_costs_the_copy_until_it_is_too_slow() -> None:
    work = replace(shipped("12b"), blocking=False, interval=10, steps=100, seconds=exact("x", 1.0, "s"), checkpoint_size=exact("c", 2e9, "B"), sample_size=None)
    quick = estimate(work, net(1e15, 1e15), all_at(disk(write=1e9)))
    assert quick.saving.value * 100 == pytest.approx(10 * 5.0)
    slow = estimate(work, net(1e15, 1e15), all_at(disk(write=1e7)))
    assert slow.saving.value * 100 == pytest.approx(10 * (5.0 + 100 - 10), rel=0.01)


def test_reading_many_small_files_is_bound_by_files() -> None:
    work = replace(shipped("12b"), sample_size=exact("sample", 1e3, "B"), read_ahead=exact("read_ahead", 0, "1"))
    by_files = disk(files=exact("files", 8.0, "1/s"))
    assert estimate(work, net(), all_at(by_files)).reading.value == pytest.approx(32 / 8)
    in_a_row = estimate(replace(work, random=False), net(), all_at(by_files))
    assert in_a_row.reading.value == pytest.approx(32e3 / 1e9)


def test_the_bottleneck_is_named() -> None:
    work = replace(shipped("12b"), seconds=exact("x", 1.0, "s"))

    def name(found: Estimate) -> str:
        return bottleneck(found)

    fast, slow = disk(read=1e12, load=1e12, write=1e12), disk("/slow", read=1e12, load=1e12, write=1e5)
    assert name(estimate(work, net(1e14, 1e14), all_at(fast))) == "GPU compute"
    assert name(estimate(work, net(1e9), all_at(fast))).startswith("network: all_gather for weights")
    assert name(estimate(work, net(1e14, 1e14), all_at(slow))) == "storage: saving checkpoints (/slow)"


def test_cost_is_price_of_all_nodes_for_the_run() -> None:
    work = replace(shipped("12b"), price=Figure("price", 36 / 3600, "money/s", "x", "workload"))
    found = estimate(work, net(), all_at(disk()))
    assert found.cost is not None
    assert found.cost.value == pytest.approx(2 * 36 * found.run.value / 3600)
    assert estimate(shipped("12b"), net(), all_at(disk())).cost is None


def test_when_a_checkpoint_is_safe() -> None:
    work = replace(shipped("12b"), checkpoint_size=exact("c", 8e9, "B"))
    assert safe_seconds(work, disk(durable=False)) is None
    both = disk(write=4e9, safe=exact("safe", 1e9, "B/s"))
    found = safe_seconds(work, both)
    assert found is not None
    assert found.value == pytest.approx(4.0)
    plain = safe_seconds(work, disk(write=4e9))
    assert plain is not None
    assert plain.value == pytest.approx(1.0)


@pytest.mark.parametrize("work", WORKLOADS, ids=names())
def test_everything_rests_on_a_measurement_the_file_or_a_named_assumption(work: Workload) -> None:
    found = estimate(work, net(), all_at(disk()))
    leaves = list(found.run.leaves())
    assert {leaf.kind for leaf in leaves} <= {"measured", "workload", "assumed"}
    assert all(leaf.how for leaf in leaves)
