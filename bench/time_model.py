"""Predicted beside published: `python -m bench.time_model`. Prints the tables of docs/time-model.md; a test keeps both equal.

The study is "Network and Storage Benchmarks for LLM Training on the Cloud" (Maknee, 2025-09-11; SkyPilot examples): Gemma 3 12B on 2 nodes
with 8 H100, GPT-OSS-120B on 4 nodes with 8 H200. Compute is calibrated on one row: Gemma's step over InfiniBand. Everything else follows
from the shipped workloads, the named assumptions and the study's table of storage tiers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from nodectl.advise import tiers
from nodectl.advise.figure import Figure
from nodectl.advise.model import Estimate, Places, estimate
from nodectl.advise.network import Network, Transfer, seconds
from nodectl.advise.storage import Place, batch_seconds, load_seconds, save_seconds
from nodectl.advise.volumes import transfers
from nodectl.advise.workload import Workload
from nodectl.advise.workload_load import load_workload
from nodectl.diagnostics.model import Collector

# The row that compute is calibrated on: average step of Gemma 3 12B over InfiniBand (s).
CALIBRATED = 4.4
# bf16 weights and two bf16 moments: 436 s at 100 MB/s and node, the study's slowest save, carry no more than 87 GB.
STATE_BYTES = 6.0
# Batches are of 100 samples; Open-R1's traces are 20 to 100 kB of text. An object store answers a request in 0.1 s.
SAMPLE_BYTES, REQUESTS_PER_S = 50e3, 10.0


class Row(NamedTuple):
    """``kind``: s or x (a ratio). ``bound`` is how near a prediction must come; 0 where none is promised."""

    what: str
    published: float
    predicted: float
    kind: str = "s"
    bound: float = 0.0
    note: str = ""

    @property
    def off(self) -> float:
        return self.predicted / self.published - 1

    @property
    def good(self) -> bool:
        return not self.bound or abs(self.off) <= self.bound


class Study(NamedTuple):
    gemma: Workload
    moe: Workload
    ethernet: Network
    infiniband: Network
    places: tuple[Place, ...]


def workload(name: str) -> Workload:
    found = Collector()
    work = load_workload(name, found)
    if work is None:
        raise RuntimeError(str(list(found)))
    return work


def study() -> Study:
    """Gemma's compute is what makes its step over InfiniBand 4.4 s; the mixture's follows by parameters."""
    ethernet, _, infiniband = tiers.networks("H100")
    gemma = workload("12b")
    state = Figure("bytes of a checkpoint", gemma.parameters.value * STATE_BYTES, "B", "12.2e9 parameters * 6 bytes", "assumed")
    gemma = replace(gemma, checkpoint_size=state, sample_size=None)
    sent = sum(seconds(one, infiniband).value for one in transfers(gemma))
    compute = CALIBRATED - sent * (1 - gemma.overlap.value)
    gemma = replace(gemma, seconds=Figure("compute of a step", compute, "s", "calibrated: Gemma over InfiniBand, 4.4 s", "assumed"))
    moe = workload("120b-moe")
    # Each GPU the same number of tokens, and every expert computed for every token, as Hugging Face's code of the model does while training.
    scaled = compute * moe.parameters.value / gemma.parameters.value
    moe = replace(moe, sample_size=None, seconds=Figure("compute of a step", scaled, "s", "calibrated: Gemma's, by parameters", "assumed"))
    return Study(gemma, moe, ethernet, infiniband, tuple(tiers.places()))


def _step(work: Workload, network: Network, place: Place) -> float:
    return estimate(work, network, Places(place, place, place)).step.value


def _bare(work: Workload) -> Workload:
    """Without checkpoints: the study's steps do not hold them."""
    return replace(work, interval=work.steps + 1)


def network_rows(given: Study) -> Iterator[Row]:
    """Table 4.2 of the facts."""
    place, gemma, moe = given.places[0], _bare(given.gemma), _bare(given.moe)
    slow, fast = _step(gemma, given.ethernet, place), _step(gemma, given.infiniband, place)
    yield Row("Gemma 12B, step, Ethernet", 39.8, slow)
    yield Row("Gemma 12B, step, InfiniBand", CALIBRATED, fast, note="calibrated on this row")
    yield Row("Gemma 12B, Ethernet to InfiniBand", 9.0, slow / fast, "x", 0.25)
    yield Row("Gemma 12B, 80 steps, Ethernet", 53 * 60, 80 * slow)
    yield Row("Gemma 12B, 80 steps, InfiniBand", 5.9 * 60, 80 * fast, note="7 min in the text; 80 * 4.4 s are 5.9")
    wide_slow, wide_fast = _step(moe, given.ethernet, place), _step(moe, given.infiniband, place)
    yield Row("GPT-OSS-120B, step, Ethernet", 420.0, wide_slow)
    yield Row("GPT-OSS-120B, step, InfiniBand", 40.3, wide_fast)
    yield Row("GPT-OSS-120B, Ethernet to InfiniBand", 10.4, wide_slow / wide_fast, "x", 0.25)
    yield Row("profile, one step, Ethernet", 40.0, slow)
    yield Row("profile, one step, InfiniBand", 4.0, fast)
    first = next(one for one in transfers(gemma) if one.op == "reduce_scatter")
    layer = Transfer(first.op, first.group, first.size, 1, first.why)
    long, short = seconds(layer, given.ethernet).value, seconds(layer, given.infiniband).value
    yield Row("first ReduceScatter of backward, Ethernet", 0.258, long)
    yield Row("first ReduceScatter of backward, InfiniBand", 0.021, short, note="the profile's 21 ms hold the wait for the slowest rank")


# Seconds of (100 samples, model load, checkpoint) by tier.
PHASES = {
    "local NVMe": (3.47, 23.3, 178.0), "shared filesystem": (4.29, 30.1, 382.0), "object store, MOUNT": (73.1, 50.6, 436.0),
    "object store, MOUNT_CACHED": (7.77, 104.0, 212.0),
}


def phase_rows(given: Study, fixed: bool) -> Iterator[Row]:
    """Table 4.4. By rates alone, or with ``fixed`` costs beside them that are taken from the row of local NVMe (a second calibration)."""
    work = replace(given.gemma, sample_size=Figure("bytes of a sample", SAMPLE_BYTES, "B", "assumed", "assumed"))
    hundred = replace(work, samples=Figure("samples", 100.0 * work.layout.nodes, "count", "100 for each node", "workload"))
    local = given.places[0]
    extra = [PHASES[local.name][n] - value for n, value in enumerate(_phase(work, hundred, local))] if fixed else [0.0, 0.0, 0.0]
    for place in given.places:
        predicted = _phase(work, hundred, place)
        for name, published, value, more in zip(("100 samples", "model load", "checkpoint"), PHASES[place.name], predicted, extra, strict=True):
            note = "fixed cost taken from this row" if fixed and place is local else ""
            yield Row(f"{place.name}: {name}", published, value + more, note=note)


def _phase(work: Workload, hundred: Workload, place: Place) -> list[float]:
    files = Figure("requests", REQUESTS_PER_S, "1/s", "assumed", "assumed") if place.name == "object store, MOUNT" else None
    batch = batch_seconds(hundred, replace(place, files=files))
    return [batch.value if batch else 0.0, load_seconds(work, place).value, save_seconds(work, place).value]


def end_rows(given: Study) -> Iterator[Row]:
    """Table 4.5: 80 steps with one checkpoint and one model load."""
    mount, cached = given.places[2], given.places[3]
    slow = estimate(given.gemma, given.ethernet, Places(mount, mount, mount))
    fast = estimate(given.gemma, given.infiniband, Places(cached, cached, cached))
    published_slow, published_fast = (3752.5, 3212.0, 436.0, 104.5), (637.7, 321.0, 213.0, 103.7)
    for found, name, published in ((slow, "S3 and Ethernet", published_slow), (fast, "MOUNT_CACHED and InfiniBand", published_fast)):
        for what, value, truth in zip(("total", "training", "checkpoint", "model load"), _parts(found), published, strict=True):
            yield Row(f"{name}: {what}", truth, value)
    yield Row("end to end, unoptimised to optimised", 5.88, slow.run.value / fast.run.value, "x", 0.25)


def _parts(found: Estimate) -> list[float]:
    steps = found.work.steps
    return [found.run.value, found.run_gpu.value + found.run_net.value, found.saving.value * steps, found.load.value]


def table(rows: Sequence[Row]) -> str:
    lines = ["| | published | predicted | off by | |", "|---|---|---|---|---|"]
    for row in rows:
        unit = "x" if row.kind == "x" else " s"
        bound = f"within {row.bound:.0%}: {'yes' if row.good else 'NO'}" if row.bound else row.note
        lines.append(f"| {row.what} | {row.published:.4g}{unit} | {row.predicted:.4g}{unit} | {row.off:+.0%} | {bound} |")
    return "\n".join(lines)


def tables() -> dict[str, str]:
    """By title, as docs/time-model.md holds them."""
    given = study()
    return {
        "Network": table(list(network_rows(given))), "Phases, by rates alone": table(list(phase_rows(given, False))),
        "Phases, with fixed costs from the row of local NVMe": table(list(phase_rows(given, True))), "End to end": table(list(end_rows(given))),
    }


def promised() -> list[Row]:
    given = study()
    return [row for row in (*network_rows(given), *end_rows(given)) if row.bound]


def main() -> int:
    for title, text in tables().items():
        sys.stdout.write(f"### {title}\n\n{text}\n\n")
    return 0 if all(row.good for row in promised()) else 1


if __name__ == "__main__":
    sys.exit(main())
