"""Sweeps: which cases are run, what their event says, and what is judged of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodectl.transport.channel import Target
from nodectl.verify.group.collectives_checks import LEAST_SHARE, better, program_of, refusals, sizes_of, sweep_events, sweep_reading
from nodectl.verify.group.gang import Case, GangResult, Member, Program
from nodectl.verify.group.network_checks import Fleet
from nodectl.verify.group.operations import DTYPES, OPS, PLACES, REDOPS, REDUCING, Sizes
from nodectl.verify.group.sweep_plan import survey, sweep
from nodectl.verify.judging.floor_load import Floor
from nodectl.verify.judging.formulas import collectives
from nodectl.verify.judging.judge import judge
from nodectl.verify.parse.workload import GroupOutput, SizeResult, group_output
from nodectl.verify.session import Session
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import SuiteStep, suite_of
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, node_of

GB = 1e9
OPTIONS: dict[str, float] = {
    "begin": 8, "end": 8 * 2**20, "gpu_begin": 2**20, "gpu_end": 2**30, "factor": 32, "iterations": 5, "warmup": 1, "timeout": 20,
}
WORDS = {"ops": OPS, "dtypes": ("float32", "bfloat16", "int32"), "redops": ("sum", "max")}
STEP = SuiteStep("collectives", 120.0, options=OPTIONS, words=WORDS)

# -- sizes

# begin, end, factor, step; sizes, as nccl-tests runs them
SIZES: list[tuple[int, int, int, int, tuple[int, ...]]] = [
    (8, 64, 2, 0, (8, 16, 32, 64)), (8, 100, 4, 0, (8, 32)), (5, 5, 2, 0, (5,)), (8, 64, 100, 0, (8,)), (10, 40, 2, 10, (10, 20, 30, 40)), (10, 45, 9, 20, (10, 30)),
    (1, 1, 2, 5, (1,)),
]


@pytest.mark.parametrize(("begin", "end", "factor", "step", "expected"), SIZES)
def test_sizes(begin: int, end: int, factor: int, step: int, expected: tuple[int, ...]) -> None:
    assert Sizes(begin, end, factor, step).all() == expected


@pytest.mark.parametrize(("begin", "end", "factor", "step"), [(0, 8, 2, 0), (16, 8, 2, 0), (8, 16, 1, 0), (8, 16, 0, 0), (8, 16, 2, -1)])
def test_sizes_that_never_end_or_are_none(begin: int, end: int, factor: int, step: int) -> None:
    with pytest.raises(ValueError, match=r"there is none|never reach"):
        Sizes(begin, end, factor, step).all()


@pytest.mark.parametrize(("backend", "options", "expected"), [
    ("gloo", OPTIONS, (8, 256, 8192, 262144, 8388608)), ("nccl", OPTIONS, (2**20, 2**25, 2**30)),
    ("nccl", {key: value for key, value in OPTIONS.items() if not key.startswith("gpu")}, (8, 256, 8192, 262144, 8388608)),
])
def test_sizes_of_a_step(backend: str, options: dict[str, float], expected: tuple[int, ...]) -> None:
    assert sizes_of(SuiteStep("collectives", 60.0, options=options, words=WORDS), backend) == expected


# -- which cases


def test_operations_have_formulas_and_places() -> None:
    assert set(OPS) <= set(collectives())
    assert all(places for places in PLACES.values())
    assert set(OPS) >= REDUCING


def test_a_sweep_is_every_combination() -> None:
    cases = sweep(OPS, ("float32", "int8"), ("sum", "max"), (8, 16), Case("", ()))
    keys = [(case.op, case.dtype, case.redop, case.in_place) for case in cases]
    assert len(set(keys)) == len(keys)
    assert {case.op for case in cases} == set(OPS)
    assert [key for key in keys if key[0] == "reduce_scatter"] == [
        ("reduce_scatter", dtype, redop, place) for dtype in ("float32", "int8") for redop in ("sum", "max") for place in (False, True)
    ]
    # what does not reduce is not run once per reduction
    assert [key for key in keys if key[0] == "alltoall"] == [("alltoall", "float32", "sum", False), ("alltoall", "int8", "sum", False)]
    assert {case.sizes for case in cases} == {(8, 16)}


def test_a_survey_runs_all_sizes_once_and_the_rest_on_one() -> None:
    cases = survey(OPS, tuple(DTYPES), REDOPS, (8, 2**18, 2**23), Case("", (), iterations=9))
    main = [case for case in cases if len(case.sizes) == 3]
    assert {(case.op, case.in_place) for case in main} == {(op, place) for op, places in PLACES.items() for place in places}
    assert {(case.dtype, case.redop, case.iterations) for case in main} == {("float32", "sum", 9)}
    rest = [case for case in cases if len(case.sizes) == 1]
    assert {case.sizes for case in rest} == {(2**18,)}
    assert {(case.op, case.dtype) for case in rest if case.redop == "sum"} == {(op, dtype) for op in OPS for dtype in list(DTYPES)[1:]}
    assert {(case.op, case.redop) for case in rest if case.redop != "sum"} == {(op, redop) for op in REDUCING for redop in REDOPS[1:]}
    assert {(case.warmup, case.iterations) for case in rest} == {(0, 1)}


def test_a_survey_of_large_sizes_takes_the_smallest_for_the_rest() -> None:
    assert {case.sizes for case in survey(OPS, ("float32", "int8"), ("sum",), (2**24, 2**30), Case("", ())) if len(case.sizes) == 1} == {(2**24,)}


def test_the_program_of_a_suite_begins_with_the_all_reduce_and_fits_its_deadline() -> None:
    program = program_of(SuiteStep("collectives", 120.0, options=OPTIONS, words={**WORDS, "ops": ("broadcast", "all_reduce")}), "gloo")
    assert [(case.op, case.dtype) for case in program.cases[:2]] == [("all_reduce", "float32"), ("broadcast", "float32")]
    assert 0 < program.until < program.deadline == 120.0
    assert sum(case.budget * len(case.sizes) for case in program.cases) <= program.until / 3 + 1e-6


def test_the_command_runs_what_it_was_asked_and_no_more() -> None:
    program = program_of(SuiteStep("collectives", 120.0, options={**OPTIONS, "every": 1, "root": 2}, words={**WORDS, "ops": ("broadcast",)}), "gloo")
    assert [(case.op, case.dtype, case.root, len(case.sizes)) for case in program.cases] == [("broadcast", dtype, 2, 5) for dtype in WORDS["dtypes"]]


# -- events


def members(*hosts: str, nproc: int = 1, backend: str = "gloo") -> list[Member]:
    nobody: Any = None
    return [Member(Session(host, Target(host, host), {}, nobody), host, "eth0", nproc, "python3", backend) for host in hosts]


def size(bytes_: int, seconds: float, wrong: int = 0, ranks: int = 4) -> SizeResult:
    return SizeResult(bytes_, (seconds,), wrong, (seconds,) * ranks, bytes_ // 16)


CASES = (
    Case("all_reduce", (10**6, 10**8)), Case("all_gather", (10**6, 10**8), in_place=False), Case("all_gather", (10**6, 10**8)),
    Case("broadcast", (10**8,), root=1), Case("all_reduce", (10**6,), dtype="int32", redop="avg"),
)
PROGRAM = Program(CASES, 60.0, 10.0)
FLOORS = (
    Floor("network.all_reduce", 0.5 * GB, "B/s", "mean", "policy", "2026-08", 50 * GB, "wire", match=(("collective", "all_reduce"),)),
    Floor("network.all_gather", 0.4 * GB, "B/s", "mean", "theirs", "2026-08", 50 * GB, "wire", match=(("collective", "all_gather"),)),
)
FLEET = Fleet("tcp", "", 0, True, FLOORS, {})


def result(**changes: Any) -> GangResult:
    """Four ranks at 1 GB/s busbw all-reduce; all_gather faster in place; integers cannot be averaged."""
    cases = {
        0: (size(10**6, 0.0015), size(10**8, 0.15)), 1: (size(10**6, 0.001), size(10**8, 0.1)), 2: (size(10**6, 0.001), size(10**8, 0.075)), 3: (size(10**8, 0.2),),
    }
    output = {"sizes": cases[0], "cases": cases, "unsupported": {4: "Float can't be cast to Int"}, **changes}
    return GangResult(GroupOutput(**output), 4)


def test_events_hold_rows_by_size_and_place_in_base_units() -> None:
    events = sweep_events(members("n1", "n2", "n3", "n4"), PROGRAM, result(), FLEET)
    assert [(event["op"], event["dtype"], event["redop"], event["root"]) for event in events] == [
        ("all_reduce", "float32", "sum", -1), ("all_gather", "float32", "", -1), ("broadcast", "float32", "", 1), ("all_reduce", "int32", "avg", -1),
    ]
    first, gather, broadcast, refused = events
    assert (first["hosts"], first["ranks"], first["backend"], first["nproc"]) == (["n1", "n2", "n3", "n4"], 4, "gloo", 1)
    assert [(row["bytes"], row["in_place"]) for row in gather["rows"]] == [(10**6, False), (10**6, True), (10**8, False), (10**8, True)]
    # by hand: 1e8 B in 0.15 s are 0.667 GB/s, times 2 x 3/4; 1e8 B in 0.1 s are 1 GB/s, times 3/4; in 0.2 s 0.5 GB/s, times 1
    assert (first["rows"][1]["algbw"], first["rows"][1]["busbw"]) == pytest.approx((GB / 1.5, GB))
    assert (gather["rows"][2]["algbw"], gather["rows"][2]["busbw"]) == pytest.approx((GB, 0.75 * GB))
    assert (broadcast["rows"][0]["algbw"], broadcast["rows"][0]["busbw"]) == pytest.approx((0.5 * GB, 0.5 * GB))
    assert (first["floor"], gather["floor"], broadcast["floor"]) == (0.5 * GB, 0.4 * GB, None)
    assert gather["source"] == "theirs (all_gather, 2026-08)"
    assert [event["in_place"] for event in events] == [True, False, True, False]  # all rows are: a chart may draw them as one line
    assert refused["rows"] == []
    assert refused["note"] == "not possible with gloo: Float can't be cast to Int"
    json.dumps(events, allow_nan=False)


def test_every_row_keeps_each_ranks_time() -> None:
    lines = [{"kind": "result", "rank": rank, "case": 0, "bytes": 800, "count": 200, "seconds": [0.1 * (rank + 1)] * 2, "wrong": 0} for rank in range(3)]
    output = group_output({"n": "".join(f"NODECTL {json.dumps(line)}\n" for line in lines)}, 3)
    (event,) = sweep_events(members("n1", "n2", "n3"), Program((Case("all_reduce", (800,)),), 1.0, 1.0), GangResult(output, 3), FLEET)
    (row,) = event["rows"]
    assert row["ranks"] == pytest.approx([0.1, 0.2, 0.3])
    assert row["time"] == pytest.approx(0.3)


# -- what is judged


def checks(found: GangResult, program: Program = PROGRAM, floors: tuple[Floor, ...] = ()) -> dict[str, tuple[str, str]]:
    reading = sweep_reading(members("n1", "n2", "n3", "n4"), program, found, FLEET)
    return {check.name: (check.verdict, check.reason) for check in judge(reading.measurements, floors, reading.expectations) if check.host == "n1"}


def test_all_well() -> None:
    found = checks(result())
    assert {name: verdict for name, (verdict, _) in found.items()} == {
        "network.all_reduce.types": "pass", "network.all_gather.values": "pass", "network.all_gather": "pass", "network.broadcast.values": "pass",
        "network.broadcast": "pass",
    }


def damaged(case: int, *sizes: SizeResult) -> GangResult:
    return result(cases={**result().output.cases, case: sizes})


# result; check, verdict, words
BAD = [
    (damaged(1, size(10**6, 0.001, wrong=3), size(10**8, 0.1)), "network.all_gather.values", "fail", "3 wrong values with float32"),
    (damaged(0, size(10**6, 0.001, wrong=1), size(10**8, 0.15)), "network.all_reduce.types", "fail", "1 wrong values with sum of float32"),
    (damaged(3, size(10**8, 100.0)), "network.broadcast", "fail", "the operation itself is broken"),
    (damaged(3), "network.broadcast", "unknown", "no size was measured"),
    (damaged(3), "network.broadcast.values", "unknown", "float32: no size was measured"),
    (damaged(2), "network.all_gather.values", "unknown", "float32"),
    (result(unsupported={3: "no backend for it"}, cases={0: result().output.cases[0]}), "network.broadcast", "unknown", "gloo cannot do it: no backend for it"),
    (result(sizes=(), cases={}, skipped=("no time is left",)), "network.broadcast", "unknown", "no time is left"),
]


@pytest.mark.parametrize(("found", "name", "verdict", "words"), BAD)
def test_what_is_wrong_is_named(found: GangResult, name: str, verdict: str, words: str) -> None:
    assert checks(found)[name][0] == verdict
    assert words in checks(found)[name][1]


def test_of_two_sweeps_the_faster_figure_counts_and_wrong_values_of_either() -> None:
    people = members("n1", "n2", "n3", "n4")
    slow, good = (sweep_reading(people, PROGRAM, one, FLEET) for one in (damaged(3, size(10**8, 100.0)), result()))
    spoiled = sweep_reading(people, PROGRAM, damaged(1, size(10**6, 0.001, wrong=2), size(10**8, 0.1)), FLEET)

    def verdicts(reading: Any) -> dict[str, str]:
        return {check.name: check.verdict for check in judge(reading.measurements, (), reading.expectations) if check.host == "n1"}

    assert verdicts(slow)["network.broadcast"] == "fail"
    assert set(verdicts(better(slow, good)).values()) == {"pass"}
    assert set(verdicts(better(good, slow)).values()) == {"pass"}
    assert verdicts(better(slow, slow))["network.broadcast"] == "fail"
    assert verdicts(better(slow, spoiled)) == {**dict.fromkeys(verdicts(good), "pass"), "network.all_gather.values": "fail"}
    assert verdicts(better(spoiled, good))["network.all_gather.values"] == "fail"


def test_the_bar_is_a_share_of_the_all_reduce() -> None:
    reading = sweep_reading(members("n1", "n2", "n3", "n4"), PROGRAM, result(), FLEET)
    (bar,) = [expectation for expectation in reading.expectations if expectation.metric == "network.broadcast"]
    assert bar.value == pytest.approx(LEAST_SHARE * GB)


def test_a_floor_that_names_the_operation_counts_too() -> None:
    assert checks(result(), floors=FLOORS)["network.all_gather"][0] == "pass"
    high = Floor("network.all_gather", 2 * GB, "B/s", "mean", "theirs", "2026-08", 50 * GB, "wire", match=(("collective", "all_gather"),))
    assert checks(result(), floors=(high,))["network.all_gather"][0] == "fail"


def test_what_cannot_be_done_is_said_once_per_operation() -> None:
    assert refusals(members("n1"), PROGRAM, result()) == ["gloo cannot do all_reduce with avg of int32 (Float can't be cast to Int): not measured"]
    assert refusals(members("n1"), PROGRAM, result(unsupported={})) == []


# -- through the stage

TEXT = """
[[step]]
kind = "route"
deadline = 20
[[step]]
kind = "torch"
deadline = 20
[[step]]
kind = "collectives"
deadline = 60
ops = ["all_reduce", "alltoall"]
dtypes = ["float32", "int32"]
redops = ["sum", "avg"]
begin = "1 KiB"
end = "4 MiB"
gpu_begin = "1 MiB"
gpu_end = "1 GiB"
factor = 4
iterations = 3
warmup = 1
timeout = 10
"""


def trial(*odd: FakeNode) -> tuple[dict[str, str], Seen, FakeFleet]:
    nodes = {name: FakeNode(name) for name in ("n1", "n2", "n3")} | {node.name: node for node in odd}
    fleet, seen = FakeFleet(*nodes.values()), Seen()
    return dict(verify([node_of(node) for node in nodes.values()], suite_of(TEXT, "sweep"), fleet, seen)), seen, fleet


def test_a_healthy_fleet_passes_with_one_start_for_everything() -> None:
    verdicts, seen, fleet = trial()
    assert set(verdicts.values()) == {"pass"}, seen.reasons("n1")
    assert len(fleet.groups) == 1
    assert [event.data["op"] for event in seen.of("sweep")] == ["all_reduce", "alltoall", "all_reduce", "alltoall", "all_reduce"]
    assert seen.check("n2", "network.traffic").data["value"] == pytest.approx(1.0)
    assert seen.check("n2", "network.alltoall").data["step"] == "collectives"


# what is odd about n3; verdict of n3, words; verdict of the others
ODD = [
    (FakeNode("n3", carried=0.1), "fail", "network.traffic: measured 0.1", "pass"),
    (FakeNode("n3", dies_in_groups_of=3), "fail", "it broke the group", "pass"),
    (FakeNode("n3", gone_at=("workload", 1)), "unknown", "no byte for 20 s", "pass"),
    (FakeNode("n3", corrupts=True), "fail", "wrong values", "fail"),
    (FakeNode("n3", answers={"probe_traffic": Outcome(failed=True, msg="no sysfs")}), "unknown", "counters could not be read", "pass"),
    (FakeNode("n3", answers={"probe_traffic": Outcome(values={"ports": 5})}), "unknown", "counters could not be read", "pass"),
]


@pytest.mark.parametrize(("node", "verdict", "words", "others"), ODD)
def test_odd_nodes(node: FakeNode, verdict: str, words: str, others: str) -> None:
    verdicts, seen, _ = trial(node)
    assert verdicts == {"n1": others, "n2": others, "n3": verdict}, (seen.reasons("n1"), seen.reasons("n3"))
    assert words in seen.reasons("n3")


def test_a_single_rank_has_nothing_to_sweep() -> None:
    fleet, seen = FakeFleet(FakeNode("n1")), Seen()
    assert verify([node_of(FakeNode("n1"))], suite_of(TEXT, "sweep"), fleet, seen) == {"n1": "pass"}
    assert seen.of("sweep") == []
