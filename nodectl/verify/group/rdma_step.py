"""Step `rdma`: ib_write_bw both ways and ib_write_lat between nodes, rail by rail, and whose fault it is where one is slow."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodectl.verify.group.hunt import Bars, Diagnosis, hunt
from nodectl.verify.group.isolate import RELATIVE, PairResult
from nodectl.verify.group.pairs import Pair
from nodectl.verify.group.rdma_checks import WRITE_BW, WRITE_LAT, Measured, Rail, Site, floor_of, rail_reading, rails_of, site_of
from nodectl.verify.group.rdma_pair import SMALLEST, End, Load, Result, measure
from nodectl.verify.judging.reading import unknown
from nodectl.verify.members import sku_of
from nodectl.verify.session import Gone
from nodectl.verify.suite_load import SuiteStep
from nodectl.verify.trial import Trial, forks

# Less than this is no time for a measurement: what is left of a pair's deadline is then spent, and its other rails stay unmeasured.
LEAST = 5.0


@dataclass
class Found:
    """What was measured so far. Pairs of a round run in threads; each writes under keys of its own, and lists are only appended to."""

    gone: dict[str, Gone] = field(default_factory=dict)
    latencies: dict[tuple[str, str], float] = field(default_factory=dict)
    errors: dict[tuple[str, str], str] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)


def rdma(trial: Trial, step: SuiteStep) -> None:
    """Only nodes whose fabric has RDMA devices; on the others there is nothing to measure."""
    ledger = trial.ledger
    hosts = [host for host in ledger.passing() if trial.facts[host].fabric not in ("", "tcp")]
    rails = _rails(trial, hosts, step)
    measured = [host for host in rails if rails[host]]
    if len(measured) > 1:
        _measure(trial, {host: rails[host] for host in measured}, step)
    ledger.cover([host for host in ledger.hosts if not ledger.lost(host)], step.kind)


def _rails(trial: Trial, hosts: Sequence[str], step: SuiteStep) -> dict[str, list[Rail]]:
    """Rails by host. A node that cannot say, or has none that could be used, gets an unknown check."""
    if not hosts:
        return {}
    with forks(len(hosts), "rdma") as pool:
        found = list(pool.map(lambda host: _asked(trial, host, step), hosts))
    return {host: rails for host, rails in zip(hosts, found, strict=True) if rails is not None}


def _asked(trial: Trial, host: str, step: SuiteStep) -> list[Rail] | None:
    variables = trial.nodes[host].variables
    order = {"subnets": list(variables.get("fabric_subnets") or []), "exclude": list(variables.get("fabric_exclude") or [])}
    try:
        outcome = trial.sessions[host].ask("probe_hca", order, step.deadline)
    except Gone as gone:
        trial.ledger.lose(host, step.kind, gone)
        return None
    rails = [] if outcome.failed else rails_of(outcome.values, variables.get("rdma_gid_index"))
    if not rails:
        why = outcome.msg if outcome.failed else "no RDMA port is usable and ACTIVE"
        trial.ledger.judged(unknown("rdma.write_bw", (host,), "probe_hca", why), step.kind)
    return rails


def _measure(trial: Trial, rails: Mapping[str, list[Rail]], step: SuiteStep) -> None:
    ledger, found = trial.ledger, Found()
    hosts = list(rails)
    sites = {host: site_of(trial.nodes[host].variables) for host in hosts}
    hardware = all(rail.hardware for one in rails.values() for rail in one)
    bars = Bars({host: floor_of(rails[host], sites[host]) for host in hosts}, None if hardware else RELATIVE)

    def round_of(number: int, what: str, pairs: Sequence[Pair]) -> list[PairResult]:
        ledger.tell(f"rdma {what}, round {number}: {len(pairs)} pairs at once")
        return _Round(trial, rails, step, found, number).run(pairs)

    _, diagnosis = hunt(hosts, int(step.option("rounds")), bars, round_of, lambda host: host not in found.gone)
    ledger.lose_all(found.gone, step.kind)
    for text in (*diagnosis.paths, *diagnosis.shared):
        ledger.warn(text)
    for host in hosts:
        if host not in found.gone:
            _judge(trial, host, rails[host], diagnosis, sites[host], found, step)


def _judge(trial: Trial, host: str, rails: Sequence[Rail], diagnosis: Diagnosis, site: Site, found: Found, step: SuiteStep) -> None:
    version = found.versions[0] if found.versions else ""
    for rail in rails:
        load = load_of(rail, step)
        measured = Measured(load.size, load.queue_pairs, version, sku_of(trial.facts[host].gpu_names), found.latencies, found.errors)
        trial.ledger.judged(rail_reading(host, rail, diagnosis, site, measured), step.kind)


@dataclass(frozen=True)
class _Round:
    """One round: all pairs at once, each pair's rails one after another."""

    trial: Trial
    rails: Mapping[str, list[Rail]]
    step: SuiteStep
    found: Found
    number: int

    def run(self, pairs: Sequence[Pair]) -> list[PairResult]:
        if not pairs:
            return []
        with forks(len(pairs), "rdma") as pool:
            results = list(pool.map(self.pair, pairs))
        return [result for one in results for result in one if not self.found.gone.keys() & set(result.pair)]

    def pair(self, pair: Pair) -> list[PairResult]:
        """The step's deadline is for all rails of the pair: one at a time, for a port is measured at its own rate."""
        until = time.monotonic() + self.step.deadline
        results = []
        for mine, theirs in zip(*(self.rails[host] for host in pair), strict=False):
            if mine.problem or theirs.problem or self.found.gone.keys() & set(pair):
                continue
            first, second = (End(self.trial.sessions[host], self.trial.facts[host].address, rail) for host, rail in zip(pair, (mine, theirs), strict=True))
            result = self.rail(first, second, until)
            results += [result] if result else []
        return results

    def rail(self, first: End, second: End, until: float) -> PairResult | None:
        """Both directions, then latency. None where no time was left, or a node went."""
        pair, name = (first.session.host, second.session.host), first.rail.name
        ways: list[float] = []
        for client, server in ((first, second), (second, first)):
            result = self.once(WRITE_BW, client, server, until)
            if result is None:
                return None
            if result.figure.value is None:
                self.say(WRITE_BW, first, second, None, result.figure.error)
                return PairResult(pair, None, result.figure.error, name)
            ways.append(result.figure.value)
        self.say(WRITE_BW, first, second, min(ways), "")
        self.latency(first, second, until)
        return PairResult(pair, min(ways), "", name, (ways[0], ways[1]))

    def latency(self, first: End, second: End, until: float) -> None:
        """A node's latency is that of its best pair: the other end, or what lies between, may be the slow one."""
        result = self.once(WRITE_LAT, first, second, until)
        if result is None:
            return
        value = result.figure.value
        self.say(WRITE_LAT, first, second, value, result.figure.error)
        for end in (first, second):
            key = (end.session.host, end.rail.name)
            if value is not None:
                self.found.latencies[key] = min(value, self.found.latencies.get(key, value))

    def once(self, tool: str, client: End, server: End, until: float) -> Result | None:
        """None where there is nothing to conclude: no time was left, or a node was lost."""
        left = until - time.monotonic()
        keys = [(end.session.host, end.rail.name) for end in (client, server)]
        if left < LEAST:
            self.found.errors.update(dict.fromkeys(keys, "not measured: the step's deadline was spent before it was its turn"))
            return None
        result = measure(tool, client, server, self.load(client, server), left)
        self.found.gone.update(result.gone or {})
        self.found.versions += [result.version] if result.version else []
        if result.figure.error:
            self.found.errors.update(dict.fromkeys(keys, result.figure.error))
        return None if result.gone else result

    def load(self, client: End, server: End) -> Load:
        return load_of(client.rail if not client.rail.hardware else server.rail, self.step)

    def say(self, tool: str, first: End, second: End, value: float | None, error: str) -> None:
        bandwidth = tool == WRITE_BW
        self.trial.ledger.say("pair", "", {
            "hosts": [first.session.host, second.session.host], "rail": first.rail.name, "tool": tool, "value": value, "error": error,
            "bytes": self.load(first, second).size if bandwidth else SMALLEST, "unit": "B/s" if bandwidth else "s", "round": self.number,
        })  # fmt: skip


def load_of(rail: Rail, step: SuiteStep) -> Load:
    """Software that plays a device moves a few MB/s, where hardware fills its link in a second."""
    which = "" if rail.hardware else "soft_"
    return Load(int(step.option(f"{which}size")), int(step.option(f"{which}iterations")), int(step.option("queue_pairs")))
