"""What do our own checks cost the figure? `python -m bench.overhead --lab DIR [--hosts 2] [--runs 9] [--write]`.

The all-reduce as nodectl measures it, and a bare torch loop over the same hosts, size and number of runs, one after the other in alternating
order, so that whatever else the machine does hits both. The figure of nodectl must be at least 0.95 of the bare loop's, by the median of all runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.lab_group import connected, lab_at
from nodectl.verify.formulas import bandwidth
from nodectl.verify.gang import Case, Member, Program, rank_env, run_program

LEAST = 0.95
SIZES = (1 << 20, 8 << 20)
# Enough that the start of a group is lost in them, and a pair of runs stays below 20 s on two cores.
ITERATIONS, WARMUP = 40, 5
TIMEOUT = 120.0
BEGIN, END = "<!-- bench/overhead.py -->\n", "<!-- end of bench/overhead.py -->\n"
PAGE = Path(__file__).parents[1] / "docs" / "truth.md"
BARE = """
import datetime, json, sys, time
import torch, torch.distributed as dist
c = json.loads(sys.argv[1])
wait = datetime.timedelta(seconds=60)
store = dist.TCPStore(c["master"], c["port"], c["world"], c["rank"] == 0, timeout=wait)
dist.init_process_group("gloo", store=store, rank=c["rank"], world_size=c["world"], timeout=wait)
found = []
for size in c["sizes"]:
    buffer = torch.zeros(size // 4)
    for _ in range(c["warmup"]):
        dist.all_reduce(buffer)
    dist.barrier()
    began = time.perf_counter()
    for _ in range(c["iterations"]):
        dist.all_reduce(buffer)
    found.append((time.perf_counter() - began) / c["iterations"])
dist.barrier()
print("BARE " + json.dumps(found), flush=True)
import os
os._exit(0)
"""


class Pair(NamedTuple):
    """busbw (B/s) of one size, by nodectl and by the bare loop, measured one after the other."""

    size: int
    ours: float
    bare: float


def ours(members: Sequence[Member]) -> list[float]:
    case = Case("all_reduce", SIZES, warmup=WARMUP, iterations=ITERATIONS, budget=TIMEOUT, keep=True)
    result = run_program(members, Program((case,), TIMEOUT, 60.0))
    if not result.complete:
        raise RuntimeError(result.why())
    return [size.bandwidth("all_reduce", result.ranks, "mean").busbw for size in result.output.sizes]


def bare(members: Sequence[Member]) -> list[float]:
    port = int(members[0].session.ask("probe_free_port", {"address": members[0].address}, 20.0).values["port"])
    world = len(members)

    def one(rank: int) -> list[float]:
        config = {"master": members[0].address, "port": port, "world": world, "rank": rank, "sizes": SIZES, "warmup": WARMUP, "iterations": ITERATIONS}
        order = {"python": members[rank].python, "source": BARE, "argv": [json.dumps(config)], "timeout": TIMEOUT, "env": rank_env(members[rank])}
        outcome = members[rank].session.ask("workload", order, TIMEOUT)
        lines = [line for line in str(outcome.values.get("stdout", "")).splitlines() if line.startswith("BARE ")]
        if not lines:
            raise RuntimeError(f"the bare loop ended without a figure: {outcome.values.get('stderr', outcome.msg)!s}"[-400:])
        return [float(time) for time in json.loads(lines[0][5:])]

    with ThreadPoolExecutor(world) as pool:
        times = list(pool.map(one, range(world)))
    # The slowest rank's mean, as on our side.
    return [bandwidth("all_reduce", size, world, max(column)).busbw for size, column in zip(SIZES, zip(*times, strict=True), strict=True)]


def pairs(members: Sequence[Member], runs: int) -> list[Pair]:
    found = []
    for number in range(runs):
        if number % 2:
            mine, plain = ours(members), bare(members)
        else:
            plain, mine = bare(members), ours(members)
        found += [Pair(*row) for row in zip(SIZES, mine, plain, strict=True)]
        print(f"run {number + 1} of {runs}: " + ", ".join(f"{pair.ours / pair.bare:.2f}" for pair in found[-len(SIZES) :]), file=sys.stderr)
    return found


class Row(NamedTuple):
    size: int
    ours: float
    bare: float
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.ours / self.bare


def rows(found: Sequence[Pair]) -> list[Row]:
    """Per size the medians of both sides, and the lowest and highest of the single ratios."""
    result = []
    for size in SIZES:
        mine = [pair for pair in found if pair.size == size]
        ratios = [pair.ours / pair.bare for pair in mine]
        result.append(Row(size, statistics.median(pair.ours for pair in mine), statistics.median(pair.bare for pair in mine), min(ratios), max(ratios)))
    return result


def table(found: Sequence[Row], hosts: int, runs: int) -> str:
    head = f"| all-reduce over {hosts} hosts, medians of {runs} | nodectl | bare torch loop | share | single runs | at least 0.95 |"
    lines = [head, "|---|---|---|---|---|---|"]
    for row in found:
        shown = f"| {row.size >> 20} MiB | {row.ours / 1e6:.1f} MB/s | {row.bare / 1e6:.1f} MB/s | {row.share:.3f} "
        lines.append(f"{shown}| {row.low:.2f} to {row.high:.2f} | {'yes' if row.share >= LEAST else 'NO'} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lab", type=Path, required=True)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="put the table into docs/truth.md")
    asked = parser.parse_args()
    state = lab_at(asked.lab)
    hosts = state.names[: asked.hosts]
    with connected(state, hosts) as members:
        found = rows(pairs(members, asked.runs))
    text = table(found, len(hosts), asked.runs)
    print(text, end="")
    if asked.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}", "utf-8")
    return 0 if all(row.share >= LEAST for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
