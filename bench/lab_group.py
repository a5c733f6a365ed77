"""Hosts of a running lab as a group that measures: what the network's benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nodectl.lab import faults
from nodectl.lab.plan import LAB_USER, TORCH_PYTHON
from nodectl.lab.state import LabState, load
from nodectl.transport.channel import Limits, Target
from nodectl.transport.pool import Pool
from nodectl.verify.group.gang import Member
from nodectl.verify.session import Session

# Of each lab host, on the lab's bridge.
INTERFACE = "eth0"


def lab_at(folder: Path) -> LabState:
    """The lab that runs there. Raises SystemExit."""
    state = load(folder)
    if state is None or state.phase != "up":
        raise SystemExit(f"no lab is up in {folder}: nodectl lab up --hosts 3 --dir {folder}")
    return state


def target_of(state: LabState, host: str) -> Target:
    options = {"userknownhostsfile": str(state.known_hosts), "identitiesonly": "yes"}
    return Target(host, state.host(host).address, user=LAB_USER, key_file=str(state.key), options=options)


@contextmanager
def connected(state: LabState, hosts: Sequence[str]) -> Iterator[list[Member]]:
    pool = Pool(Limits())
    try:
        yield [
            Member(Session(host, target_of(state, host), {}, pool), state.host(host).address, INTERFACE, 1, TORCH_PYTHON, "gloo") for host in hosts
        ]
    finally:
        pool.close()


@contextmanager
def shaped(state: LabState, hosts: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """A function that shapes the links of all ``hosts`` to a rate such as "100mbit"; lifted at the end."""

    def shape(rate: str) -> None:
        for host in hosts:
            faults.apply(state, host, "slow-link", rate)

    try:
        yield shape
    finally:
        for host in hosts:
            faults.lift(state, host, "slow-link")
