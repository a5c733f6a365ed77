"""The verification stage: the steps of a suite in their order; then one verdict per node.

Every step has a deadline, every question to a node ends at it, and a node that is lost takes nothing with it but its own verdict.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import asdict, replace

from nodectl.transport.channel import Connections
from nodectl.verify.answer import Garbled
from nodectl.verify.bounds import longest, step_bound
from nodectl.verify.group.group_steps import GROUPS
from nodectl.verify.inputs import inputs
from nodectl.verify.judging.floor_load import floor_to_json, shipped_floors
from nodectl.verify.judging.measurement import Verdict, Waiver
from nodectl.verify.judging.reading import unknown
from nodectl.verify.kinds import KINDS
from nodectl.verify.ledger import NO_TERMS, Emit, Ledger, Terms
from nodectl.verify.machine import machine_of
from nodectl.verify.members import node_data, sku_of
from nodectl.verify.node.check import Peers
from nodectl.verify.node.fleet_checks import COMPARE
from nodectl.verify.node.node_checks import CHECKS
from nodectl.verify.session import Gone
from nodectl.verify.settings import mistakes
from nodectl.verify.suite_load import Suite, SuiteStep
from nodectl.verify.trial import Node, Trial, forks, trial_of
from nodectl.verify.waivers import meet, unused


def verify(nodes: Sequence[Node], suite: Suite, connections: Connections, emit: Emit, terms: Terms = NO_TERMS) -> dict[str, Verdict]:
    """The verdict of every node; emits suite, reading, check, node, verdict, progress, and host.lost or host.unreachable for who is gone.

    Bounded by the suite's deadlines whatever the nodes do. Raises FloorError when the shipped floors are wrong (a bug of ours).
    """
    ledger = Ledger([node.host for node in nodes], replace(terms, floors=(*shipped_floors(), *terms.floors)), emit)
    return run(trial_of(nodes, connections, ledger), suite)


def run(trial: Trial, suite: Suite) -> dict[str, Verdict]:
    ledger = trial.ledger
    _open(trial, suite)
    for host, node in trial.nodes.items():
        ledger.refuse(host, mistakes(node.variables))
    mounts = max((len(trial.nodes[host].variables.get("file_mounts") or {}) for host in ledger.alive()), default=0)
    disks = max((len(trial.nodes[host].variables.get("scratch_devices") or [0]) for host in ledger.alive()), default=1)
    count = f"{len(trial.nodes)} node{'s' if len(trial.nodes) != 1 else ''}"
    ledger.tell(f"suite {suite.name} on {count} (bounded by {longest(suite, mounts, disks=disks, nodes=len(trial.nodes)) / 60:.0f} min if every wait ran out)")
    for step in suite.steps:
        _do(trial, step, step_bound(step, mounts, disks, len(trial.nodes)))
    _describe(trial)
    verdicts = {host: _conclude(trial, host, suite) for host in trial.nodes}
    for text in unused(_about(ledger.terms.waivers, trial.nodes, suite), ledger.checks()):
        ledger.warn(text)
    return verdicts


def _about(waivers: Sequence[Waiver], nodes: Container[str], suite: Suite) -> list[Waiver]:
    """Waivers that this run could have needed: of its nodes, and of checks that its suite makes."""
    names = [name for step in suite.steps for name in (step.kind, *KINDS[step.kind].checks)]
    return [one for one in waivers if any(host in nodes for host in one.hosts) and any(meet(one.check, name) for name in names)]


def _open(trial: Trial, suite: Suite) -> None:
    """Said before the first question: what everything will be judged by."""
    terms = trial.ledger.terms
    trial.ledger.say("suite", "", {
        "name": suite.name, "text": suite.text, "floors": [floor_to_json(floor) for floor in terms.floors],
        "waivers": [asdict(waiver) for waiver in terms.waivers], "today": terms.today,
        "settings": {host: inputs(node.variables) for host, node in trial.nodes.items()},
    })


def _do(trial: Trial, step: SuiteStep, bound: float) -> None:
    ledger = trial.ledger
    for number in range(1, step.repeat + 1):
        if not ledger.alive():
            return
        ledger.repetition = (number, step.repeat)
        which = f" ({number} of {step.repeat})" if step.repeat > 1 else ""
        hosts = ledger.alive()
        ledger.say("progress", "", {"stage": "verify", "text": f"{step.kind}{which}: {_named(hosts)}", "hosts": hosts, "bound": bound})
        if step.kind in GROUPS:
            GROUPS[step.kind](trial, step)
        else:
            _each(trial, step)
            _compare(trial, step)


def _named(hosts: Sequence[str]) -> str:
    """A line of a log holds a dozen names, not a thousand."""
    return ", ".join(hosts) if len(hosts) <= 12 else f"{', '.join(hosts[:10])} and {len(hosts) - 10} more"


def _each(trial: Trial, step: SuiteStep) -> None:
    """Node by node, all at once."""
    alive = trial.ledger.alive()
    with forks(len(alive), "verify") as pool:
        for job in [pool.submit(_one, trial, host, step) for host in alive]:
            job.result()


def _one(trial: Trial, host: str, step: SuiteStep) -> None:
    try:
        reading = CHECKS[step.kind](trial.sessions[host], step, trial.facts[host], Peers(trial.addresses(host)))
    except Gone as gone:
        trial.ledger.lose(host, step.kind, gone)
        return
    except Garbled as garbled:
        reading = unknown(step.kind, (host,), step.kind, str(garbled))
    trial.ledger.judged(reading, step.kind)
    trial.ledger.cover([host], step.kind)


def _compare(trial: Trial, step: SuiteStep) -> None:
    """What can only be seen over all nodes."""
    if step.kind in COMPARE:
        for reading in COMPARE[step.kind]({host: trial.facts[host] for host in trial.ledger.alive()}, step):
            trial.ledger.judged(reading, step.kind)


def _describe(trial: Trial) -> None:
    """What schedulers want to know of the nodes; asked last, because nothing here is judged by it."""
    def ask(host: str) -> None:
        names = trial.facts[host].gpu_names
        try:
            trial.facts[host].machine = machine_of(trial.sessions[host], names, sku_of(names))
        except Gone as gone:
            trial.ledger.lose(host, "describe", gone)

    if alive := trial.ledger.alive():
        with forks(len(alive), "describe") as pool:
            list(pool.map(ask, alive))


def _conclude(trial: Trial, host: str, suite: Suite) -> Verdict:
    ledger = trial.ledger
    ledger.conclude(host, [step.kind for step in suite.steps])
    if host in ledger.alive():
        ledger.say("node", host, node_data(trial.nodes[host].target, trial.members([host])[0], trial.facts[host]))
    return ledger.verdict(host)
