"""Does fio through nodectl say how fast a disk is? `python -m bench.truth_storage --lab DIR [--host n1] [--rates 20,50,100] [--out FILE]`.

The disks of a lab host are throttled to known rates by its control group (blkio or io.max), and `probe_fio` measures them as
verification does. Sequential and random figures are compared with the rate: they must be within 10 % of it. The lab must be up
and its scratch disk mounted (`nodectl lab up`, `nodectl bootstrap`). Every figure needs proof by the device's counters.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nodectl.lab import faults
from nodectl.lab.plan import LAB_USER
from nodectl.lab.state import LabState, load
from nodectl.transport.channel import Limits, Target
from nodectl.transport.pool import Pool
from nodectl.wire.step import Step

TOLERANCE = 0.10
WAYS = ("write", "read", "randread", "randwrite")
# Of a random request: large enough that the rate in bytes is the bound and not the number of requests.
RANDOM_BS = "64KiB"
# Long enough for the throttle's own period of 0.1 s to average out; a file laid out at 20 MB/s in three seconds.
SECONDS, SIZE = 5.0, "64MiB"
DEADLINE = 300.0

Ask = Callable[[dict[str, Any]], dict[str, Any]]


class Row(NamedTuple):
    """``rate`` is the truth, ``measured`` what fio said, both in B/s; ``proof`` as probe_fio names it."""

    rate: float
    way: str
    measured: float
    proof: str

    @property
    def off(self) -> float:
        return self.measured / self.rate - 1

    @property
    def good(self) -> bool:
        return abs(self.measured - self.rate) <= TOLERANCE * self.rate and self.proof == "device"


def rows(ask: Ask, throttle: Callable[[int], None], rates: Sequence[int]) -> Iterator[Row]:
    """One row per rate (MB/s) and kind of access. Raises RuntimeError where a figure could not be had."""
    for rate in rates:
        throttle(rate)
        order = {"path": "/scratch", "ways": list(WAYS), "size": SIZE, "runtime": SECONDS, "random_bs": RANDOM_BS, "timeout": DEADLINE}
        ways = ask(order)
        for way in WAYS:
            if ways[way].get("error"):
                raise RuntimeError(f"{way} at {rate} MB/s: {ways[way]['error']}")
            yield Row(rate * 1e6, way, float(ways[way]["bytes_per_second"]), str(ways[way]["proof"]))


def table(found: Sequence[Row]) -> str:
    lines = ["| throttled to | access | fio through nodectl | off by | proof | within 10 % |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.rate / 1e6:.0f} MB/s | {row.way} | {row.measured / 1e6:.1f} MB/s | {row.off:+.1%} | {row.proof or 'none'} | {'yes' if row.good else 'NO'} |"
        for row in found
    ]
    return "\n".join(lines)


@contextmanager
def asking(state: LabState, host: str) -> Iterator[Ask]:
    """probe_fio on a host of the lab, as the account that trains."""
    options = {"userknownhostsfile": str(state.known_hosts), "identitiesonly": "yes"}
    target = Target(host, state.host(host).address, user=LAB_USER, key_file=str(state.key), options=options)
    pool, numbers = Pool(Limits()), itertools.count(1)

    def ask(order: dict[str, Any]) -> dict[str, Any]:
        outcome = pool.channel(target).submit(Step(next(numbers), "probe_fio", order)).result(DEADLINE + 60)
        if outcome.failed:
            raise RuntimeError(outcome.msg)
        return dict(outcome.values["ways"])

    try:
        yield ask
    finally:
        pool.close()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab", required=True, type=Path, help="folder of a lab that is up")
    parser.add_argument("--host", default="n1")
    parser.add_argument("--rates", default="20,50,100", help="MB/s, separated by commas")
    parser.add_argument("--out", type=Path, help="also write the table there")
    options = parser.parse_args(argv)
    state = load(options.lab)
    if state is None:
        parser.error(f"no lab is up in {options.lab}")

    def throttle(rate: int) -> None:
        faults.apply(state, options.host, "disk-slow", f"{rate}MB/s")

    try:
        with asking(state, options.host) as ask:
            found = list(rows(ask, throttle, [int(rate) for rate in options.rates.split(",")]))
    finally:
        faults.lift(state, options.host, "disk-slow")
    text = table(found)
    sys.stdout.write(text + "\n")
    if options.out:
        options.out.write_text(text + "\n")
    return 0 if all(row.good for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
