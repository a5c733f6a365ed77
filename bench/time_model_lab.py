"""Predicted beside measured step times on lab hosts: `python -m bench.time_model_lab --lab DIR [--rates 100,200,400] [--out FILE]`.

The links of two hosts are shaped to known rates. For each rate nodectl measures the network with its own collectives, the time model says what a step
of a small DDP and of a small FSDP job will take, and the job is run over gloo. The compute of a step is measured once, without a network. The lab must
have torch (`nodectl lab up` finds it). Predictions must be within 20 % of the median step.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from nodectl.advise.figure import Figure
from nodectl.advise.model import Places, estimate
from nodectl.advise.network import Network, measured_latency, measured_rate
from nodectl.advise.storage import Place
from nodectl.advise.workload import Workload
from nodectl.advise.workload_load import load_workload
from nodectl.diagnostics.model import Collector
from nodectl.lab import faults
from nodectl.lab.plan import HOST_INTERFACE, LAB_USER, TORCH_PYTHON
from nodectl.lab.state import LabState, load
from nodectl.transport.channel import Limits, Target
from nodectl.transport.pool import Pool
from nodectl.verify.group.gang import Case, Member, Program, run_program
from nodectl.verify.session import Session

TOLERANCE = 0.20
# 4 layers of 2048 x 2048 in fp32: 67 MB of weights, so that a step is seconds of a 100 Mb/s link and not latency.
LAYERS, HIDDEN, BATCH, STEPS = 4, 2048, 16, 4
MODES = ("ddp", "fsdp")
SIZES = (4096, HIDDEN * HIDDEN * 4)
OPS = ("all_reduce", "all_gather", "reduce_scatter")
DEADLINE = 240.0
PORT = 29877
_WORKLOAD = """\
name: small {mode}
gpu: H100
steps: {steps}
model: {{parameters: {parameters}, layers: {layers}, hidden: {hidden}, weights: fp32}}
parallelism: {{nodes: 2, gpus_per_node: 1, data: {mode}}}
batch: {{samples_per_step: 32, tokens_per_sample: 1}}
compute: {{seconds_per_step: {compute}}}
"""


class Row(NamedTuple):
    """Seconds of a step; ``rate`` in bits per second is what the links were shaped to, ``busbw`` (B/s) what nodectl measured."""

    mode: str
    rate: float
    busbw: float
    predicted: float
    low: float
    high: float
    measured: float

    @property
    def off(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def good(self) -> bool:
        return abs(self.predicted - self.measured) <= TOLERANCE * self.measured + 1e-9


def workload(mode: str, compute: float) -> Workload:
    text = _WORKLOAD.format(mode=mode, steps=STEPS, parameters=LAYERS * HIDDEN * HIDDEN, layers=LAYERS, hidden=HIDDEN, compute=compute)
    found = Collector()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        work = load_workload(file.name, found)
    if work is None:
        raise RuntimeError(str(list(found)))
    return work


def predict(mode: str, compute: float, network: Network) -> Figure:
    """Storage plays no part: nothing is read or saved."""
    still = Figure("storage", 1e15, "B/s", "not used", "assumed")
    place = Place("none", still, still, still, True)
    work = workload(mode, compute)
    return estimate(work, network, Places(place, place, place)).step


def network_of(busbw: dict[str, float], smallest: float, nodes: int) -> Network:
    """``busbw`` by operation (B/s): gloo does some of them by a detour, so each is measured."""

    def rate(op: str) -> Figure:
        return measured_rate(f"rate of a node ({op})", Figure(f"bus bandwidth of {op}", busbw[op], "B/s", "measured by nodectl", "measured"), nodes, nodes)

    took, node = Figure("time of the smallest message", smallest, "s", "measured by nodectl", "measured"), rate("all_reduce")
    return Network("measured", node, node, measured_latency(took, 2 * (nodes - 1)), operations=tuple((op, rate(op)) for op in OPS))


class Hosts:
    """Two hosts of the lab, asked through the agent as verification does."""

    def __init__(self, state: LabState, pool: Pool) -> None:
        options = {"userknownhostsfile": str(state.known_hosts), "identitiesonly": "yes"}
        self.members = []
        for name in state.names[:2]:
            target = Target(name, state.host(name).address, user=LAB_USER, key_file=str(state.key), options=options)
            session = Session(name, target, {}, pool)
            self.members.append(Member(session, target.address, HOST_INTERFACE, 1, TORCH_PYTHON, "gloo", {}))
        self.source = (Path(__file__).parent / "jobs/step_time.py").read_text("utf-8")

    def network(self) -> Network:
        result = run_program(self.members, Program(tuple(Case(op, SIZES, warmup=1, iterations=4, keep=True) for op in OPS), DEADLINE, 60.0))
        if not result.complete:
            raise RuntimeError(result.why())
        ranks = len(self.members)
        busbw = {op: result.output.cases[number][-1].bandwidth(op, ranks, "median").busbw for number, op in enumerate(OPS)}
        return network_of(busbw, median(result.output.cases[0][0].seconds), ranks)

    def steps(self, mode: str) -> float:
        """Median seconds of a step; the slower rank's, which is what a step takes."""
        hosts = self.members if mode != "compute" else self.members[:1]
        with ThreadPoolExecutor(len(hosts)) as pool:
            found = list(pool.map(lambda index: self._rank(mode, index, len(hosts)), range(len(hosts))))
        return float(median(max(pair) for pair in zip(*found, strict=True)))

    def _rank(self, mode: str, rank: int, world: int) -> list[float]:
        order = {
            "mode": mode, "layers": LAYERS, "hidden": HIDDEN, "batch": BATCH, "steps": STEPS, "rank": rank, "world": world, "port": PORT,
            "address": self.members[0].address,
        }
        arguments = {
            "python": TORCH_PYTHON, "source": self.source, "argv": [json.dumps(order)], "env": {"GLOO_SOCKET_IFNAME": HOST_INTERFACE}, "timeout": DEADLINE,
        }
        values: dict[str, Any] = self.members[rank].session.ask("workload", arguments, DEADLINE + 30).values
        lines = [line for line in str(values.get("stdout", "")).splitlines() if line.startswith("{")]
        if values.get("rc") != 0 or not lines:
            raise RuntimeError(f"{mode} on {self.members[rank].host}: {str(values.get('stderr', ''))[-500:]}")
        return list(json.loads(lines[-1])["seconds"])


@contextmanager
def shaped(state: LabState, rate: int) -> Iterator[None]:
    """Links of both hosts at ``rate`` Mb/s."""
    for name in state.names[:2]:
        faults.apply(state, name, "slow-link", f"{rate}mbit")
    try:
        yield
    finally:
        for name in state.names[:2]:
            faults.lift(state, name, "slow-link")


def rows(state: LabState, rates: Sequence[int]) -> Iterator[Row]:
    pool = Pool(Limits())
    try:
        hosts = Hosts(state, pool)
        compute = hosts.steps("compute")
        for rate in rates:
            with shaped(state, rate):
                network = hosts.network()
                for mode in MODES:
                    step = predict(mode, compute, network)
                    yield Row(mode, rate * 1e6, network.node.value, step.value, step.low, step.high, hosts.steps(mode))
    finally:
        pool.close()


def table(found: Sequence[Row]) -> str:
    lines = ["| job | links shaped to | all-reduce measured | predicted step | measured step | off by | within 20 % |", "|---|---|---|---|---|---|---|"]
    lines += [
        f"| {row.mode.upper()} | {row.rate / 1e6:.0f} Mb/s | {row.busbw * 8 / 1e6:.0f} Mb/s | {row.predicted:.2f} s ({row.low:.2f} to {row.high:.2f}) "
        f"| {row.measured:.2f} s | {row.off:+.0%} | {'yes' if row.good else 'NO'} |"
        for row in found
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab", required=True, type=Path, help="folder of a lab with at least two hosts that is up")
    parser.add_argument("--rates", default="100,200,400", help="Mb/s, separated by commas")
    parser.add_argument("--out", type=Path, help="also write the table there")
    options = parser.parse_args(argv)
    state = load(options.lab)
    if state is None or len(state.names) < 2:
        parser.error(f"no lab with two hosts is up in {options.lab}")
    found = list(rows(state, [int(rate) for rate in options.rates.split(",")]))
    text = table(found)
    sys.stdout.write(text + "\n")
    if options.out:
        options.out.write_text(text + "\n")
    return 0 if all(row.good for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
