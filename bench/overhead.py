"""What do our own checks cost the figure? `python -m bench.overhead --lab DIR [--hosts 2] [--blocks 30] [--write]`.

The all-reduce as nodectl's workload measures it, values checked before and after, and a bare torch loop in the same ranks, over the same size and
number of runs, in alternating order, so that whatever else the machine does hits both. The figure of nodectl must be at least 0.95 of the bare
loop's, by the medians of all blocks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from bench.lab_group import connected, lab_at
from bench.marked import written
from nodectl.verify.group.gang import Member, rank_env, workload_source
from nodectl.verify.judging.formulas import bandwidth
from nodectl.verify.parse.workload import records

LEAST = 0.95
SIZES = (1 << 20, 8 << 20)
# A block of both is below a second on idle cores, so that a burst of other load hits few of them.
ITERATIONS, WARMUP = 10, 2
TIMEOUT = 540.0
BEGIN, END = "<!-- bench/overhead.py -->\n", "<!-- end of bench/overhead.py -->\n"
PAGE = Path(__file__).parents[1] / "docs" / "truth.md"
# Runs behind the workload's own text, in its process: `measure` is what every sweep runs.
DRIVER = """
def bare(size, iterations, warmup):
    buffer = torch.zeros(size // 4)
    for _ in range(warmup):
        dist.all_reduce(buffer)
    dist.barrier()
    began = time.perf_counter()
    for _ in range(iterations):
        dist.all_reduce(buffer)
    return (time.perf_counter() - began) / iterations

config = json.loads(sys.argv[1])
rank = Rank(config, 0)
rank.join()
for block in range(config["blocks"]):
    for case in config["cases"]:
        size = case["sizes"][0]
        for mine in ((True, False) if block % 2 else (False, True)):
            if mine:
                rank.measure(block, case, Operation(case, size, rank.rank, rank.world, rank.device))
            else:
                say("bare", rank=rank.rank, case=block, bytes=size, seconds=[bare(size, case["iterations"], case["warmup"])])
dist.barrier()
sys.stdout.flush()
os._exit(0)
"""


class Pair(NamedTuple):
    """busbw (B/s) of one size in one block, by nodectl and by the bare loop."""

    size: int
    ours: float
    bare: float


def pairs(members: Sequence[Member], blocks: int) -> list[Pair]:
    port = int(members[0].session.ask("probe_free_port", {"address": members[0].address}, 20.0).values["port"])
    case = {"op": "all_reduce", "dtype": "float32", "redop": "sum", "root": 0, "in_place": True, "warmup": WARMUP, "iterations": ITERATIONS, "budget": TIMEOUT}
    config = {
        "backend": "gloo", "master": members[0].address, "port": port, "nodes": len(members), "nproc": 1, "timeout": 120, "init_timeout": 60, "blocks": blocks,
        "cases": [{**case, "sizes": [size]} for size in SIZES],
    }
    source = workload_source("collective").replace('if __name__ == "__main__":', "if False:") + DRIVER

    def one(rank: int) -> list[dict[str, Any]]:
        argv = [json.dumps({**config, "node_rank": rank})]
        order = {"python": members[rank].python, "source": source, "argv": argv, "timeout": TIMEOUT, "env": rank_env(members[rank])}
        outcome = members[rank].session.ask("workload", order, TIMEOUT)
        if outcome.failed or outcome.values.get("rc") != 0:
            raise RuntimeError(f"the ranks of {members[rank].host} ended early: {outcome.msg} {outcome.values.get('stderr', '')!s}"[-400:])
        return records(str(outcome.values["stdout"]))

    with ThreadPoolExecutor(len(members)) as pool:
        said = list(pool.map(one, range(len(members))))
    return paired([line for lines in said for line in lines], len(members))


def paired(lines: Sequence[Mapping[str, Any]], world: int) -> list[Pair]:
    """Of each block and size the slowest rank's mean, on both sides."""
    times: dict[tuple[int, int, str], float] = {}
    for line in lines:
        if line["kind"] in ("result", "bare"):
            key = (line["case"], line["bytes"], line["kind"])
            times[key] = max(times.get(key, 0.0), statistics.mean(line["seconds"]))
    blocks = sorted({(block, size) for block, size, _ in times})
    return [Pair(size, *(bandwidth("all_reduce", size, world, times[block, size, kind]).busbw for kind in ("result", "bare"))) for block, size in blocks]


class Row(NamedTuple):
    size: int
    ours: float
    bare: float
    ratio: float

    @property
    def share(self) -> float:
        return self.ours / self.bare


def rows(found: Sequence[Pair]) -> list[Row]:
    """Per size the medians of both sides, and the median of the blocks' own ratios."""
    result = []
    for size in SIZES:
        mine = [pair for pair in found if pair.size == size]
        ratios = [pair.ours / pair.bare for pair in mine]
        result.append(Row(size, statistics.median(pair.ours for pair in mine), statistics.median(pair.bare for pair in mine), statistics.median(ratios)))
    return result


def table(found: Sequence[Row], hosts: int, runs: int) -> str:
    head = f"| all-reduce over {hosts} hosts, medians of {runs} blocks | nodectl | bare torch loop | share | share of single blocks | at least 0.95 |"
    lines = [head, "|---|---|---|---|---|---|"]
    for row in found:
        shown = f"| {row.size >> 20} MiB | {row.ours / 1e6:.1f} MB/s | {row.bare / 1e6:.1f} MB/s | {row.share:.3f} "
        lines.append(f"{shown}| {row.ratio:.3f} | {'yes' if row.share >= LEAST else 'NO'} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lab", type=Path, required=True)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="put the table into docs/truth.md")
    asked = parser.parse_args()
    state = lab_at(asked.lab)
    hosts = state.names[: asked.hosts]
    with connected(state, hosts) as members:
        found = rows(pairs(members, asked.blocks))
    text = table(found, len(hosts), asked.blocks)
    print(text, end="")
    if asked.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), BEGIN, END, text), "utf-8")
    return 0 if all(row.share >= LEAST for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
