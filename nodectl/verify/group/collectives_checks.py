"""Sweeps over all collectives: from a group's result to the `sweep` events and to what is judged of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nodectl.verify.group.gang import BUDGET, SWEEP_SHARE, Case, GangResult, Member, Program
from nodectl.verify.group.network_checks import Fleet
from nodectl.verify.group.operations import REDUCING, ROOTED, Sizes
from nodectl.verify.group.sweep_plan import survey, sweep
from nodectl.verify.judging.floor_load import best_floor
from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.judging.units import human
from nodectl.verify.parse.workload import SizeResult
from nodectl.verify.suite_load import SuiteStep

# An operation that works carries a tenth of the all-reduce's busbw at least: that much is left where each GPU has one adapter and every byte
# crosses it (alltoall, sendrecv between nodes of 8 GPUs), while the all-reduce uses all adapters and the links inside. Half of it for noise.
LEAST_SHARE = 0.05


def program_of(step: SuiteStep, backend: str) -> Program:
    """What a step `collectives` runs. In a suite: every operation on all sizes, other data types and reductions on one; case 0 is the all-reduce,
    which the others are compared with. The command `collective` sets the option ``every``: each combination on each size, and no more."""
    sizes = sizes_of(step, backend)
    ops, dtypes, redops = (step.words[name] for name in ("ops", "dtypes", "redops"))
    like = Case("all_reduce", sizes, root=int(step.options.get("root", 0)), warmup=int(step.option("warmup")), iterations=int(step.option("iterations")))
    if step.options.get("every"):
        cases = sweep(ops, dtypes, redops, sizes, like)
    else:
        cases = survey(("all_reduce", *(op for op in ops if op != "all_reduce")), dtypes, redops, sizes, like)
    runs = sum(len(case.sizes) for case in cases)
    # All timed runs together stay within a third of the time in which sizes are begun; the rest is for warm-up and values.
    budget = min(BUDGET, step.deadline * SWEEP_SHARE / 3 / runs)
    return Program(tuple(replace(case, budget=budget) for case in cases), step.deadline, step.option("timeout"), until=step.deadline * SWEEP_SHARE)


def sizes_of(step: SuiteStep, backend: str) -> tuple[int, ...]:
    """``gpu_begin`` and ``gpu_end`` where the step has them and NCCL runs."""
    gpu = "gpu_" if backend == "nccl" and "gpu_begin" in step.options else ""
    return Sizes(int(step.option(f"{gpu}begin")), int(step.option(f"{gpu}end")), int(step.option("factor")), int(step.options.get("step", 0))).all()


# -- events


def sweep_events(members: Sequence[Member], program: Program, result: GangResult, fleet: Fleet) -> list[dict[str, Any]]:
    """The data of one `sweep` event per operation, data type, reduction and root; rows of both places, by size. What could not be done has
    no rows and a ``note``."""
    groups: dict[tuple[str, str, str, int], list[int]] = {}
    for number, case in enumerate(program.cases):
        groups.setdefault((case.op, case.dtype, case.redop if case.op in REDUCING else "", case.root if case.op in ROOTED else -1), []).append(number)
    return [_event(key, numbers, members, program, result, fleet) for key, numbers in groups.items()]


def _event(
    key: tuple[str, str, str, int], numbers: Sequence[int], members: Sequence[Member], program: Program, result: GangResult, fleet: Fleet,
) -> dict[str, Any]:
    op, dtype, redop, root = key
    rows = [_row(op, size, result.ranks, program.cases[number].in_place) for number in numbers for size in result.output.cases.get(number, ())]
    rows.sort(key=lambda row: (row["bytes"], row["in_place"]))
    largest = max((row["bytes"] for row in rows), default=0)
    floor = best_floor(fleet.floors, f"network.{op}", conditions(fleet, op, len(members), largest, result.ranks))
    notes = dict.fromkeys(result.output.unsupported[number] for number in numbers if number in result.output.unsupported)
    in_place, note = bool(rows) and all(row["in_place"] for row in rows), "; ".join(f"not possible with {members[0].backend}: {note}" for note in notes)
    return {
        "hosts": [member.host for member in members], "op": op, "dtype": dtype, "redop": redop, "root": root, "backend": members[0].backend,
        "ranks": result.ranks, "nproc": members[0].nproc, "in_place": in_place, "floor": floor.floor if floor else None,
        "source": floor.cite() if floor else "", "rows": rows, "note": note,
    }  # fmt: skip


def _row(op: str, size: SizeResult, ranks: int, in_place: bool) -> dict[str, Any]:
    found = size.bandwidth(op, ranks, "mean") if ranks > 1 else None
    return {
        "bytes": size.bytes, "count": size.count, "time": size.time("mean"), "algbw": found.algbw if found else None, "busbw": found.busbw if found else None,
        "wrong": size.wrong, "in_place": in_place, "ranks": list(size.ranks),
    }


def conditions(fleet: Fleet, op: str, nodes: int, size: int, ranks: int) -> dict[str, Any]:
    """What floors are chosen by, for another operation than the all-reduce."""
    return {**fleet.conditions(nodes, size, ranks), "collective": op}


# -- what is judged


def sweep_reading(members: Sequence[Member], program: Program, result: GangResult, fleet: Fleet) -> Reading:
    """Values and speed of every operation; of the all-reduce the values only, because its speed is another step's."""
    reading = Reading()
    for op in dict.fromkeys(case.op for case in program.cases):
        numbers = [number for number, case in enumerate(program.cases) if case.op == op]
        name = "network.all_reduce.types" if op == "all_reduce" else f"network.{op}.values"
        reading.join([_values(name, op, numbers, members, program, result, fleet)])
        if op != "all_reduce" and program.cases[0].op == "all_reduce":
            reading.join([_speed(op, numbers[0], members, result, fleet)])
    return reading


def _values(
    name: str, op: str, numbers: Sequence[int], members: Sequence[Member], program: Program, result: GangResult, fleet: Fleet,
) -> Reading:
    hosts, method = tuple(member.host for member in members), f"torch.distributed {op}, {members[0].backend}"
    asked = [number for number in numbers if number not in result.output.unsupported]
    missing = [number for number in asked if not result.output.cases.get(number)]
    if not asked:
        return Reading()
    if missing:
        why = result.why() or "; ".join(result.output.skipped) or "no size was measured"
        return unknown(name, hosts, method, f"{', '.join(_named(program.cases[number]) for number in missing)}: {why}")
    wrong = {number: sum(size.wrong for size in result.output.cases[number]) for number in asked}
    detail = ", ".join(f"{count} wrong values with {_named(program.cases[number])}" for number, count in wrong.items() if count) or "0 wrong values"
    done = ", ".join(dict.fromkeys(_named(program.cases[number]) for number in asked))
    reading = Reading()
    about = conditions(fleet, op, len(members), result.output.cases[asked[0]][-1].bytes, result.ranks)
    measured = Measurement(name, not any(wrong.values()), "bool", hosts, method, about, f"checked: {done}", simulated=fleet.simulated, detail=detail)
    reading.must_be_true(measured, "each value is what the ranks' patterns give")
    return reading


def _named(case: Case) -> str:
    return f"{case.redop} of {case.dtype}" if case.op in REDUCING else case.dtype


def _speed(op: str, number: int, members: Sequence[Member], result: GangResult, fleet: Fleet) -> Reading:
    """busbw of the largest size, against the floors that name this operation and against the all-reduce over the same wires."""
    hosts, method = tuple(member.host for member in members), f"torch.distributed {op}, {members[0].backend}"
    sizes, reference = result.output.cases.get(number, ()), result.output.sizes
    if number in result.output.unsupported:
        return unknown(f"network.{op}", hosts, method, f"{members[0].backend} cannot do it: {result.output.unsupported[number]}")
    if not sizes or not reference:
        return unknown(f"network.{op}", hosts, method, result.why() or "; ".join(result.output.skipped) or "no size was measured")
    bar = LEAST_SHARE * reference[-1].bandwidth("all_reduce", result.ranks, "mean").busbw
    busbw = sizes[-1].bandwidth(op, result.ranks, "mean").busbw
    raw = "; ".join(f"{size.bytes} B: {human(size.bandwidth(op, result.ranks, 'mean').busbw, 'B/s')}" for size in sizes)
    about = {**conditions(fleet, op, len(members), sizes[-1].bytes, result.ranks), "statistic": "mean"}
    reading = Reading()
    why = f"{LEAST_SHARE:.0%} of the all-reduce's busbw over the same wires: below it the operation itself is broken"
    expected = Expectation(f"network.{op}", "at_least", bar, "B/s", why, source="this fleet")
    reading.add(Measurement(f"network.{op}", busbw, "B/s", hosts, method, about, raw, simulated=fleet.simulated), expected)
    return reading


def better(first: Reading, second: Reading) -> Reading:
    """Of two sweeps the faster figure of each operation, with its bar: other load passes, a broken operation does not. Wrong values of either count."""
    again = {one.name: one for one in second.measurements}
    taken = {one.name for one in first.measurements if one.name in again and _replaces(one, again[one.name])}
    kept = [again[one.name] if one.name in taken else one for one in first.measurements]
    bars = [one for one in first.expectations if one.metric not in taken] + [one for one in second.expectations if one.metric in taken]
    return Reading(kept, bars)


def _replaces(first: Measurement, second: Measurement) -> bool:
    if first.unit == "bool":
        return second.value is False
    return isinstance(first.value, float) and isinstance(second.value, float) and second.value > first.value


def refusals(members: Sequence[Member], program: Program, result: GangResult) -> list[str]:
    """One sentence per operation on what the backend cannot do of what was asked."""
    by_op: dict[str, list[str]] = {}
    for number, reason in sorted(result.output.unsupported.items()):
        if number < len(program.cases):
            case = program.cases[number]
            by_op.setdefault(case.op, []).append(f"{_named(case)} ({reason})")
    return [f"{members[0].backend} cannot do {op} with {', '.join(dict.fromkeys(what))}: not measured" for op, what in by_op.items()]
