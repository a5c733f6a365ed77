"""The verification stage: node checks, pairs, group, storage; then one verdict per node.

Every step has a deadline, every question to a node ends at it, and a node that is lost takes nothing with it but its own verdict.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nodectl.transport.channel import BecomeTarget, Connections, Target
from nodectl.verify.answer import Garbled
from nodectl.verify.bounds import ATTEMPTS, longest
from nodectl.verify.check import Peers
from nodectl.verify.fleet_checks import clocks, duplicates, same
from nodectl.verify.floor_load import Floor, load_floors
from nodectl.verify.gang import GangResult, Member, run_gang
from nodectl.verify.judge import GOOD, judge, node_verdict, reasons
from nodectl.verify.measurement import Check, Measurement, Verdict, Waiver
from nodectl.verify.members import NodeFacts, fleet_of, members_of, node_data
from nodectl.verify.network_checks import Fleet, group_reading, measure_pairs, node_reading, pairs_reading, sizes_of, speed
from nodectl.verify.node_checks import CHECKS
from nodectl.verify.reading import Reading, absent, reading_of, unknown
from nodectl.verify.session import Gone, Session
from nodectl.verify.settings import mistakes
from nodectl.verify.suite_load import Suite, SuiteStep
from nodectl.wire.event import Event

Emit = Callable[[Event], None]
# Nodes asked at the same time. A question is one waiting thread here and one process there; 64 threads are no load.
FORKS = 64


@dataclass(frozen=True)
class Node:
    """One node to verify. ``variables`` are merged and templated; ``become`` is how its root is reached, None where it is not."""

    host: str
    target: Target
    variables: Mapping[str, Any]
    become: BecomeTarget | None = None


@dataclass(frozen=True)
class Terms:
    """What the site says about judging, beside each node's variables.

    ``floors`` are its own, which count beside the shipped ones; ``waivers`` count up to their last day, ``today`` being an ISO date ("": none counts).
    """

    floors: Sequence[Floor] = ()
    waivers: Sequence[Waiver] = ()
    today: str = ""


NO_TERMS = Terms()


def verify(nodes: Sequence[Node], suite: Suite, connections: Connections, emit: Emit, terms: Terms = NO_TERMS) -> dict[str, Verdict]:
    """The verdict of every node; emits suite, reading, check, node, verdict, progress, and host.lost or host.unreachable for who is gone.

    Bounded by the suite's deadlines whatever the nodes do. Raises FloorError when the shipped floors are wrong (a bug of ours).
    """
    shipped = load_floors(Path(__file__).parent / "floors")
    return _Stage(nodes, suite, connections, emit, replace(terms, floors=(*shipped, *terms.floors))).run()


class _Stage:
    """State of one verification. Node checks run in threads, so all that they share is behind one lock."""

    def __init__(self, nodes: Sequence[Node], suite: Suite, connections: Connections, emit: Emit, terms: Terms) -> None:
        self.nodes = {node.host: node for node in nodes}
        self.sessions = {node.host: Session(node.host, node.target, node.variables, connections, node.become) for node in nodes}
        self.suite = suite
        self.emit = emit
        self.terms = terms
        self.facts = {node.host: NodeFacts() for node in nodes}
        self.checks: dict[str, list[Check]] = {node.host: [] for node in nodes}
        self.covered: dict[str, set[str]] = {node.host: set() for node in nodes}
        self.gone: dict[str, Gone] = {}
        self.refused: set[str] = set()
        self.best_pairs: dict[str, float] = {}
        self.lock = threading.Lock()

    def run(self) -> dict[str, Verdict]:
        self.say("suite", "", {
            "name": self.suite.name, "text": self.suite.text, "floors": [asdict(floor) for floor in self.terms.floors],
            "waivers": [asdict(waiver) for waiver in self.terms.waivers], "today": self.terms.today,
        })
        for host, node in self.nodes.items():
            self.refuse(host, mistakes(node.variables))
        mounts = max((len(self.nodes[host].variables.get("file_mounts") or {}) for host in self.alive()), default=0)
        count = f"{len(self.nodes)} node{'s' if len(self.nodes) != 1 else ''}"
        self.tell(f"suite {self.suite.name} on {count} (bounded by {longest(self.suite, mounts) / 60:.0f} min if every wait ran out)")
        special = {"node_all_reduce": self.node_all_reduce, "pairs": self.pairs, "all_reduce": self.all_reduce}
        for step in self.suite.steps:
            if not self.alive():
                break
            self.tell(f"{step.kind}: {', '.join(self.alive())}")
            if step.kind in special:
                special[step.kind](step)
            else:
                self.each(step)
                self.compare(step)
        return {host: self.conclude(host) for host in self.nodes}

    # -- who is there

    def alive(self) -> list[str]:
        return [host for host in self.nodes if host not in self.gone and host not in self.refused]

    def passing(self) -> list[str]:
        """Nodes that may take part in groups: nothing against them so far."""
        return [host for host in self.alive() if node_verdict(self.checks[host]) in GOOD]

    def lose(self, host: str, kind: str, gone: Gone) -> None:
        """The node is out: said once, with an unknown check for what it was asked."""
        with self.lock:
            first = host not in self.gone
            self.gone.setdefault(host, gone)
        if first:
            event = {"reason": gone.reason, "why": gone.why or gone.kind, "hint": gone.hint, "task": f"verify: {kind}"}
            self.say(f"host.{gone.kind}", host, event)
            self.judged(absent(kind, host, gone.kind, f"{gone.kind}: {gone.reason}"), kind)

    def refuse(self, host: str, problems: Sequence[str]) -> None:
        """A node whose settings cannot be understood is not measured against them."""
        if problems:
            self.refused.add(host)
            for problem in problems:
                self.judged(absent("settings", host, "hosts.yaml", problem), "settings")

    # -- node by node

    def each(self, step: SuiteStep) -> None:
        alive = self.alive()
        with ThreadPoolExecutor(min(FORKS, len(alive)), thread_name_prefix="verify") as pool:
            for job in [pool.submit(self.one, host, step) for host in alive]:
                job.result()

    def one(self, host: str, step: SuiteStep) -> None:
        try:
            reading = CHECKS[step.kind](self.sessions[host], step, self.facts[host], Peers(self.addresses(host)))
        except Gone as gone:
            self.lose(host, step.kind, gone)
            return
        except Garbled as garbled:
            reading = unknown(step.kind, (host,), step.kind, str(garbled))
        self.judged(reading, step.kind)
        self.cover([host], step.kind)

    def addresses(self, host: str) -> tuple[str, ...]:
        """Where the other nodes are reached, nearest in the inventory first."""
        return tuple(str(node.variables.get("fabric_address") or node.target.address) for name, node in self.nodes.items() if name != host)

    def compare(self, step: SuiteStep) -> None:
        """What can only be seen over all nodes."""
        facts = {host: self.facts[host] for host in self.alive()}
        if step.kind == "route":
            mtus = {host: float(one.mtu) for host, one in facts.items() if one.mtu}
            self.judged(same("network.mtu", "count", "route to the peers", mtus, "small messages pass and large ones hang"), step.kind)
            self.judged(duplicates({host: one.address for host, one in facts.items() if one.address}), step.kind)
        elif step.kind == "clock":
            self.judged(clocks({host: one.clock for host, one in facts.items() if one.clock}, step.option("max_offset")), step.kind)
        elif step.kind == "fabric":
            kinds: dict[str, float | str] = {host: one.fabric for host, one in facts.items() if one.fabric}
            self.judged(same("fabric.same", "text", "fabric_facts", kinds, "NCCL hangs when nodes choose different networks"), step.kind)
        elif step.kind == "torch":
            counts = {host: float(one.gpus) for host, one in facts.items() if one.torch}
            self.judged(same("torch.gpus", "count", "torch.cuda.device_count", counts, "a job of equal nodes cannot use them"), step.kind)

    # -- groups

    def members(self, hosts: Sequence[str]) -> list[Member]:
        return members_of([(self.sessions[host], self.facts[host]) for host in hosts])

    def fleet(self, hosts: Sequence[str]) -> Fleet:
        return fleet_of([(self.sessions[host], self.facts[host]) for host in hosts], self.terms.floors)

    def node_all_reduce(self, step: SuiteStep) -> None:
        self.cover(list(self.nodes), step.kind)
        inside = [member for member in self.members(self.passing()) if member.backend == "nccl" and member.nproc > 1]
        if not inside:
            return
        with ThreadPoolExecutor(min(FORKS, len(inside)), thread_name_prefix="node") as pool:
            results = list(pool.map(lambda member: run_gang([member], step, step.gpu_sizes), inside))
        for member, result in zip(inside, results, strict=True):
            self.lose_all(result.gone, step.kind)
            if member.host not in result.gone:
                self.judged(node_reading(member, result, self.fleet([member.host])), step.kind)

    def pairs(self, step: SuiteStep) -> None:
        hosts = self.passing()
        if len(hosts) < 2:
            self.cover(hosts, step.kind)
            return
        members, fleet = self.members(hosts), self.fleet(hosts)
        outcome = measure_pairs(members, step, fleet, self.tell)
        self.lose_all(outcome.gone, step.kind)
        for path in outcome.paths:
            self.say("warning", "", {"text": path, "origin": None})
        self.best_pairs = {host: finding.best for host, finding in outcome.findings.items() if finding.best is not None}
        left = [host for host in hosts if host not in self.gone]
        if len(left) > 1:
            self.judged(pairs_reading(outcome, members, step, fleet), step.kind)
        self.cover(left, step.kind)

    def all_reduce(self, step: SuiteStep) -> None:
        """Over all nodes that pass. Whoever breaks the group is taken out, so that the others can be handed off."""
        for attempt in range(1, ATTEMPTS + 1):
            hosts = self.passing()
            if len(hosts) < 2:
                self.cover(hosts, step.kind)
                return
            members = self.members(hosts)
            self.tell(f"all-reduce over {', '.join(hosts)}")
            result = run_gang(members, step, sizes_of(step, members))
            self.lose_all(result.gone, step.kind)
            blamed = self.blame(members, result, step.kind)
            if result.complete or not (result.gone or blamed) or attempt == ATTEMPTS:
                left = [member for member in members if member.host not in self.gone and member.host not in blamed]
                self.group(left, result, step)
                return

    def group(self, members: Sequence[Member], result: GangResult, step: SuiteStep) -> None:
        """Judge the group. A figure below its bar is measured once more and the better one counts: other load passes, a bad switch does not."""
        hosts = [member.host for member in members]
        reading = group_reading(members, result, self.fleet(hosts), self.best_pairs)
        if any(check.verdict == "fail" and check.name == "network.all_reduce" for check in self.judge(reading)):
            self.tell(f"all-reduce over {', '.join(hosts)} once more: it was below its bar")
            second = run_gang(members, step, sizes_of(step, members))
            self.lose_all(second.gone, step.kind)
            if second.complete and speed(second) > speed(result):
                reading = group_reading(members, second, self.fleet(hosts), self.best_pairs)
        self.judged(reading.without(self.gone), step.kind)

    def blame(self, members: Sequence[Member], result: GangResult, kind: str) -> set[str]:
        """Nodes that broke the group although they answer: ranks that died, or never reached the rendezvous."""
        if result.complete:
            return set()
        why = dict(result.blamed)
        first = 0
        for member in members:
            mine = set(range(first, first + member.nproc))
            first += member.nproc
            if mine & result.output.missing and member.host not in result.gone and member.host not in why and member is not members[0]:
                why[member.host] = f"its ranks never reached the rendezvous at {members[0].address}: {result.errors.get(member.host, 'no reason was given')}"
        for host, reason in why.items():
            broke = Measurement("network.all_reduce.ranks", False, "bool", (host,), "torch.distributed", detail=f"it broke the group: {reason}")
            reading = Reading()
            reading.must_be_true(broke, "its ranks take part to the end")
            self.judged(reading, kind)
        return set(why)

    def lose_all(self, gone: Mapping[str, Gone], kind: str) -> None:
        for host, reason in gone.items():
            self.lose(host, kind, reason)

    # -- results

    def judge(self, reading: Reading) -> list[Check]:
        return judge(reading.measurements, self.terms.floors, reading.expectations, self.terms.waivers, self.terms.today)

    def judged(self, reading: Reading, kind: str) -> None:
        """Into the journal with what the judge was given, so that it can be judged again without a node."""
        if not reading.measurements:
            return
        given = reading.to_json()
        self.say("reading", "", {"step": kind, **given})
        for check in self.judge(reading_of(given)):
            with self.lock:
                self.checks[check.host].append(check)
                self.covered[check.host].add(kind)
            data = asdict(check)
            del data["host"]
            self.say("check", check.host, {"step": kind, **data})

    def cover(self, hosts: Sequence[str], kind: str) -> None:
        """The step was done for these hosts, also where it had nothing to measure (one node has no pairs)."""
        with self.lock:
            for host in hosts:
                self.covered[host].add(kind)

    def conclude(self, host: str) -> Verdict:
        """The worst of its checks. A step that a node went through without a trace makes it unknown, never a pass."""
        if node_verdict(self.checks[host]) in GOOD:
            for kind in [step.kind for step in self.suite.steps if step.kind not in self.covered[host]]:
                self.judged(absent(kind, host, "nodectl", "was not run on this node"), kind)
        verdict = node_verdict(self.checks[host])
        if host in self.alive():
            self.say("node", host, node_data(self.nodes[host].target, self.members([host])[0], self.facts[host]))
        self.say("verdict", host, {"verdict": verdict, "reasons": reasons(self.checks[host])})
        return verdict

    def tell(self, text: str) -> None:
        self.say("progress", "", {"stage": "verify", "text": text})

    def say(self, kind: str, host: str, data: Mapping[str, Any]) -> None:
        self.emit(Event(kind, time.time(), host, dict(data)))
