"""Start one workload on a group of nodes at once and put together what came back. No node can hold up the others for longer than the deadline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.parse.workload import GroupOutput, group_output
from nodectl.verify.session import Gone, Session
from nodectl.verify.suite_load import SuiteStep
from nodectl.wire.outcome import Outcome

# Ranks that never come must be noticed well before the step's deadline, so that the ranks that wait can say who is missing.
# Importing torch on two cores takes 2 to 10 s when all hosts of a lab start at once.
INIT_TIMEOUT = 40.0
PORT_DEADLINE = 10.0
# Of all measuring time of one size; two sizes and the checks of values fit into the shipped deadlines.
BUDGET = 10.0
# Of a step's deadline, what a sweep may begin new sizes in: the rest is for starting, and for the size that is under way then.
SWEEP_SHARE = 0.6
_TAKEN = ("EADDRINUSE", "address already in use", "Address already in use")


@dataclass(frozen=True)
class Member:
    """A node's place in groups: the address its peers reach it at, the interface on that way, its ranks and its interpreter."""

    session: Session
    address: str
    interface: str
    nproc: int
    python: str
    backend: str
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return self.session.host


@dataclass(frozen=True)
class Case:
    """One operation on some sizes, as workloads/collective.py takes it. ``budget`` are the seconds that the timed runs of one size may take;
    ``keep`` brings every iteration's time back instead of their mean."""

    op: str
    sizes: tuple[int, ...]
    dtype: str = "float32"
    redop: str = "sum"
    root: int = 0
    in_place: bool = True
    warmup: int = 1
    iterations: int = 20
    budget: float = BUDGET
    keep: bool = False


@dataclass(frozen=True)
class Program:
    """What one start of a group does. ``deadline`` bounds all of it, ``timeout`` one operation, ``until`` is when no new size begins (s; 0:
    never); ``pace`` are rounds of fixed work that show which rank is slow."""

    cases: tuple[Case, ...]
    deadline: float
    timeout: float
    pace: int = 0
    until: float = 0.0


def all_reduce_program(step: SuiteStep, sizes: Sequence[int]) -> Program:
    """All-reduce of ``sizes`` (bytes), every iteration kept."""
    case = Case("all_reduce", tuple(sizes), warmup=int(step.option("warmup")), iterations=int(step.option("iterations")), keep=True)
    return Program((case,), step.deadline, step.option("timeout"))


@dataclass(frozen=True)
class GangResult:
    """``gone`` are nodes lost on the way; ``blamed`` are nodes that answered, but whose ranks ended by themselves (reason each);
    ``errors`` are what the others then saw. With none of the three, ``output`` holds all sizes."""

    output: GroupOutput
    ranks: int
    gone: Mapping[str, Gone] = field(default_factory=dict)
    blamed: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return not (self.gone or self.blamed or self.errors)

    def why(self) -> str:
        """One sentence on what went wrong: the likeliest cause first."""
        lost = [f"{host} was lost ({gone.reason})" for host, gone in self.gone.items()]
        died = [f"{host}: {reason}" for host, reason in self.blamed.items()]
        seen = [f"{host} saw: {reason}" for host, reason in self.errors.items()]
        return "; ".join(lost + died + seen[:2])


def run_gang(members: Sequence[Member], step: SuiteStep, sizes: Sequence[int]) -> GangResult:
    """All-reduce over ``members``."""
    return run_program(members, all_reduce_program(step, sizes))


def run_program(members: Sequence[Member], program: Program) -> GangResult:
    """``program`` over ``members``, the first one holding the rendezvous. A port that was taken meanwhile is tried once more."""
    result = _attempt(members, program)
    if any(word in reason for reason in (*result.errors.values(), *result.blamed.values()) for word in _TAKEN):
        result = _attempt(members, program)
    return result


def _attempt(members: Sequence[Member], program: Program) -> GangResult:
    master = members[0]
    ranks = sum(member.nproc for member in members)
    try:
        chosen = master.session.ask("probe_free_port", {"address": master.address}, PORT_DEADLINE)
    except Gone as gone:
        return GangResult(GroupOutput(), ranks, {master.host: gone})
    try:
        port = _port(chosen)
    except Garbled as garbled:
        return GangResult(GroupOutput(), ranks, blamed={master.host: str(garbled)})
    with ThreadPoolExecutor(len(members), thread_name_prefix="gang") as pool:
        orders = [_order(members, index, port, program) for index in range(len(members))]
        jobs = [pool.submit(_one, member, order, program.deadline) for member, order in zip(members, orders, strict=True)]
        results = {member.host: job.result() for member, job in zip(members, jobs, strict=True)}
    return _together(members, results, ranks)


def _port(outcome: Outcome) -> int:
    """Raises Garbled, also where the node said that it has none."""
    if outcome.failed:
        raise Garbled(outcome.msg)
    port = int(Answer("probe_free_port", outcome.values).number("port", 1))
    if port > 65535:
        raise Garbled(f"probe_free_port gave {port}; expected a TCP port")
    return port


def _one(member: Member, order: Mapping[str, Any], deadline: float) -> Outcome | Gone:
    try:
        return member.session.ask("workload", order, deadline)
    except Gone as gone:
        return gone


def _order(members: Sequence[Member], index: int, port: int, program: Program) -> dict[str, Any]:
    member = members[index]
    config = {
        "backend": member.backend, "master": members[0].address, "port": port, "node_rank": index, "nodes": len(members), "nproc": member.nproc,
        "timeout": program.timeout, "init_timeout": min(INIT_TIMEOUT, program.deadline / 2), "until": program.until, "pace": program.pace,
        "cases": [asdict(case) for case in program.cases],
    }
    return {
        "python": member.python, "source": workload_source("collective"), "argv": [json.dumps(config)], "timeout": program.deadline,
        "env": {**member.env, **rank_env(member)},
    }


def rank_env(member: Member) -> dict[str, str]:
    """What every rank of this node needs: the interface by name, exactly; never what a host name resolves to."""
    # Warnings of c10d (an address without a name) would push the cause out of the end of stderr.
    env = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": member.interface, "TORCH_CPP_LOG_LEVEL": "ERROR"}
    if member.backend == "nccl":
        # "=" is NCCL's exact form: without it the name is a prefix. The log goes to stderr and shows which network was used.
        env.update(NCCL_SOCKET_IFNAME=f"={member.interface}", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", NCCL_DEBUG_FILE="/dev/stderr")
    return env


def workload_source(name: str) -> str:
    """The text of a shipped workload: data here, code only on the node."""
    return (Path(__file__).parents[1] / "workloads" / f"{name}.py").read_text("utf-8")


def _together(members: Sequence[Member], results: Mapping[str, Outcome | Gone], ranks: int) -> GangResult:
    gone = {host: result for host, result in results.items() if isinstance(result, Gone)}
    answered = {host: result for host, result in results.items() if isinstance(result, Outcome)}
    output = group_output({host: str(outcome.values.get("stdout", "")) for host, outcome in answered.items()}, ranks)
    blamed: dict[str, str] = {}
    errors: dict[str, str] = {}
    first = 0
    for member in members:
        mine = range(first, first + member.nproc)
        first += member.nproc
        if member.host in answered:
            _sort(member.host, answered[member.host], [output.errors[rank] for rank in mine if rank in output.errors], blamed, errors)
    logs = {host: str(outcome.values.get("stderr", "")) for host, outcome in answered.items()}
    return GangResult(output, ranks, gone, blamed, errors, logs)


def _sort(host: str, outcome: Outcome, said: Sequence[str], blamed: dict[str, str], errors: dict[str, str]) -> None:
    """A rank that ends with a torch error of its own lost its peer: a victim. One that ends without a word is the cause."""
    if outcome.failed:
        blamed[host] = outcome.msg
    elif outcome.values.get("timed_out"):
        errors[host] = "its ranks did not end within the deadline and were ended"
    elif outcome.values.get("rc") != 0 and said:
        errors[host] = said[0]
    elif outcome.values.get("rc") != 0:
        last = (str(outcome.values.get("stderr", "")).strip().splitlines() or ["nothing was printed"])[-1]
        blamed[host] = f"its ranks ended with {_code(outcome.values.get('rc'))}: {last[:300]}"


def _code(rc: object) -> str:
    number = int(rc) if isinstance(rc, int) else 1
    return f"signal {-number}" if number < 0 else f"exit code {number}"
