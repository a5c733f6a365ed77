"""A group is formed again without whoever broke it, three times at most; and one start does what its program says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from nodectl.transport.channel import Target
from nodectl.verify.bounds import ATTEMPTS
from nodectl.verify.group import gang
from nodectl.verify.group.gang import Case, GangResult, Member, Program, all_reduce_program, run_program
from nodectl.verify.group.gather import gather
from nodectl.verify.ledger import NO_TERMS, Ledger
from nodectl.verify.members import NodeFacts
from nodectl.verify.parse.workload import GroupOutput
from nodectl.verify.session import Gone, Session
from nodectl.verify.suite_load import SuiteStep
from nodectl.verify.trial import Trial
from nodectl.wire.event import Event
from nodectl.wire.outcome import Outcome

NOBODY: Any = None


class Told:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def texts(self) -> list[str]:
        return [str(event.data["text"]) for event in self.events if event.kind == "progress"]


def trial(*hosts: str, gpus: int = 0) -> tuple[Trial, Told]:
    """Nodes against which there is nothing: each has passed one check."""
    told = Told()
    ledger = Ledger(hosts, NO_TERMS, told)
    for host in hosts:
        ledger.judged(fine(host), "torch")
    sessions = {host: Session(host, Target(host, host), {}, NOBODY) for host in hosts}
    return Trial({}, sessions, {host: NodeFacts(address=host, interface="eth0", gpus=gpus) for host in hosts}, ledger), told


def fine(host: str) -> Any:
    from nodectl.verify.judging.measurement import Measurement
    from nodectl.verify.judging.reading import Reading

    reading = Reading()
    reading.must_be_true(Measurement("torch.import", True, "bool", (host,), "x"), "why")
    return reading


class Groups:
    """Stands where a group runs: each time the next result, of whoever is in it."""

    def __init__(self, *results: GangResult) -> None:
        self.results = list(results)
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, members: Sequence[Member]) -> GangResult:
        self.asked.append(tuple(member.host for member in members))
        return self.results.pop(0)


WELL = GangResult(GroupOutput(), 3)
LOST = GangResult(GroupOutput(), 3, gone={"n2": Gone("lost", "no byte")})
DIED = GangResult(GroupOutput(), 3, blamed={"n2": "signal 9"}, errors={"n1": "peer closed"})
SILENT = GangResult(GroupOutput(missing=frozenset([1])), 3, errors={"n1": "wait timeout", "n2": "no route"})
UNCLEAR = GangResult(GroupOutput(), 3, errors={"n1": "peer closed", "n3": "peer closed"})

# results; groups that were formed, who is left, whether the last was complete
GATHERED: list[tuple[list[GangResult], list[str], list[str], bool]] = [
    ([WELL], ["n1 n2 n3"], ["n1", "n2", "n3"], True),
    ([LOST, WELL], ["n1 n2 n3", "n1 n3"], ["n1", "n3"], True),
    ([DIED, WELL], ["n1 n2 n3", "n1 n3"], ["n1", "n3"], True),
    ([SILENT, WELL], ["n1 n2 n3", "n1 n3"], ["n1", "n3"], True),
    ([UNCLEAR], ["n1 n2 n3"], ["n1", "n2", "n3"], False),
]


@pytest.mark.parametrize(("results", "groups", "left", "complete"), GATHERED)
def test_who_breaks_the_group_is_taken_out(results: list[GangResult], groups: list[str], left: list[str], complete: bool) -> None:
    there, told = trial("n1", "n2", "n3")
    measure = Groups(*results)
    found = gather(there, "all_reduce", "all-reduce", measure)
    assert found is not None
    assert [" ".join(hosts) for hosts in measure.asked] == groups
    assert [member.host for member in found.members] == left
    assert found.result.complete is complete
    assert told.texts() == [f"all-reduce over {', '.join(group.split())}" for group in groups]


def test_the_holder_of_the_rendezvous_is_not_blamed_for_a_rank_that_never_came() -> None:
    there, _ = trial("n1", "n2")
    found = gather(there, "all_reduce", "all-reduce", Groups(GangResult(GroupOutput(missing=frozenset([0])), 2, errors={"n2": "refused"})))
    assert found is not None
    assert [member.host for member in found.members] == ["n1", "n2"]


def test_three_attempts_and_no_more() -> None:
    there, _ = trial(*(f"n{number}" for number in range(1, 7)))
    measure = Groups(*(GangResult(GroupOutput(), 6, blamed={f"n{number}": "died"}) for number in range(1, 7)))
    found = gather(there, "all_reduce", "all-reduce", measure)
    assert len(measure.asked) == ATTEMPTS
    assert found is not None
    assert [member.host for member in found.members] == ["n4", "n5", "n6"]


@pytest.mark.parametrize(("hosts", "gpus", "least", "formed"), [
    (("n1",), 0, 2, False), (("n1",), 8, 2, False), (("n1",), 8, 1, True), (("n1",), 1, 1, False), (("n1",), 0, 1, False), (("n1", "n2"), 0, 2, True),
])
def test_a_group_needs_two_ranks(hosts: tuple[str, ...], gpus: int, least: int, formed: bool) -> None:
    there, _ = trial(*hosts, gpus=gpus)
    measure = Groups(WELL)
    assert (gather(there, "collectives", "collectives", measure, least) is not None) is formed
    assert bool(measure.asked) is formed


# -- programs


class Answers:
    """Connections to nodes that end at once; keeps what they were told."""

    def __init__(self) -> None:
        self.orders: list[dict[str, Any]] = []

    def channel(self, _target: Target, _become: Any = None) -> Any:
        outer = self

        class Channel:
            def submit(self, step: Any, _blobs: Any = None) -> Any:
                class Pending:
                    def result(self, _timeout: float | None = None) -> Outcome:
                        if step.module == "probe_free_port":
                            return Outcome(values={"port": 29500})
                        outer.orders.append(dict(step.args))
                        return Outcome(values={"rc": 0, "stdout": "", "stderr": "", "timed_out": False})

                return Pending()

        return Channel()


def test_a_program_reaches_every_node_as_it_is() -> None:
    answers = Answers()
    members = [Member(Session(host, Target(host, host), {}, answers), host, "eth0", 2, "python3", "gloo") for host in ("n1", "n2")]  # type: ignore[arg-type]
    cases = (Case("all_gather", (8, 16), in_place=False, budget=0.5), Case("reduce", (64,), dtype="int8", redop="max", root=3, iterations=7, warmup=2))
    result = run_program(members, Program(cases, 90.0, 12.0, pace=5, until=54.0))
    assert result.ranks == 4
    configs = sorted((json.loads(order["argv"][0]) for order in answers.orders), key=lambda config: int(config["node_rank"]))
    assert [config["node_rank"] for config in configs] == [0, 1]
    for config in configs:
        assert (config["timeout"], config["until"], config["pace"], config["init_timeout"], config["nproc"]) == (12.0, 54.0, 5, gang.INIT_TIMEOUT, 2)
        assert config["cases"] == [
            {"op": "all_gather", "sizes": [8, 16], "dtype": "float32", "redop": "sum", "root": 0, "in_place": False, "warmup": 1, "iterations": 20, "budget": 0.5, "keep": False},
            {"op": "reduce", "sizes": [64], "dtype": "int8", "redop": "max", "root": 3, "in_place": True, "warmup": 2, "iterations": 7, "budget": gang.BUDGET, "keep": False},
        ]
    assert all(order["timeout"] == 90.0 for order in answers.orders)


def test_the_all_reduce_of_a_step_keeps_every_iteration() -> None:
    step = SuiteStep("pairs", 60.0, (8,), (16,), {"iterations": 5.0, "warmup": 2.0, "timeout": 9.0, "rounds": 1.0})
    program = all_reduce_program(step, (8, 64))
    assert program == Program((Case("all_reduce", (8, 64), warmup=2, iterations=5, keep=True),), 60.0, 9.0)
