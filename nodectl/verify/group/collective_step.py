"""The step `collectives`: a sweep over all operations, with the wires watched while it runs."""

from __future__ import annotations

from collections.abc import Sequence

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.group.collectives_checks import better, program_of, refusals, sweep_events, sweep_reading
from nodectl.verify.group.gang import GangResult, Member, run_program
from nodectl.verify.group.gather import gather
from nodectl.verify.group.network_checks import NETWORKS
from nodectl.verify.group.wire_checks import Traffic, Wires, between, log_reading, traffic_of, traffic_reading
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.session import Gone
from nodectl.verify.suite_load import SuiteStep
from nodectl.verify.trial import Trial, forks

# A few small files of /sys.
COUNTERS_DEADLINE = 10.0
# The same, and the driver's list of GPUs.
FABRIC_DEADLINE = 30.0


def collectives(trial: Trial, step: SuiteStep) -> None:
    """Over all nodes that pass: the sweep's tables, values and speed of every operation, and what carried the bytes."""
    ledger = trial.ledger
    before: dict[str, Traffic] = {}

    def measure(members: Sequence[Member]) -> GangResult:
        before.update(_traffic(trial, members, step.kind))
        return run_program(members, program_of(step, members[0].backend))

    found = gather(trial, step.kind, "collectives", measure, least=1)
    if found is None:
        _nothing(trial, step)
        return
    members, result, fleet = found.all, found.result, trial.fleet([member.host for member in found.all])
    program = program_of(step, members[0].backend)
    for data in sweep_events(members, program, result, fleet):
        ledger.say("sweep", "", data)
    for text in (*refusals(members, program, result), *result.output.skipped):
        ledger.warn(text)
    reading = sweep_reading(members, program, result, fleet)
    if result.complete:
        after = _traffic(trial, members, step.kind)
        sent = {host: between(early, after[host]) for host, early in before.items() if host in after}
        reading.join([traffic_reading(members, result, fleet, sent), log_reading(members, result, fleet, _wires(trial, members, fleet.fabric))])
        reading = _again(trial, members, step, reading)
    there = {member.host for member in found.members if not ledger.lost(member.host)}
    ledger.judged(reading.without([member.host for member in members if member.host not in there]), step.kind)


def _again(trial: Trial, members: Sequence[Member], step: SuiteStep, reading: Reading) -> Reading:
    """An operation below its bar is measured once more, with all others, and the better figure counts."""
    ledger = trial.ledger
    slow = sorted({check.name for check in ledger.judge(reading) if check.verdict == "fail" and check.unit == "B/s"})
    if not slow or any(ledger.lost(member.host) for member in members):
        return reading
    ledger.tell(f"collectives once more: {', '.join(slow)} below its bar")
    program = program_of(step, members[0].backend)
    second = run_program(members, program)
    ledger.lose_all(second.gone, step.kind)
    return better(reading, sweep_reading(members, program, second, trial.fleet([member.host for member in members]))) if second.complete else reading


def _nothing(trial: Trial, step: SuiteStep) -> None:
    """One rank has nobody to exchange anything with. A suite goes on; who asked for a sweep and nothing else must not take that for a pass."""
    if step.options.get("every"):
        hosts = tuple(trial.ledger.passing())
        trial.ledger.judged(unknown("collectives", hosts, "torch.distributed", "fewer than two ranks are left: there is nothing to sweep"), step.kind)


def _traffic(trial: Trial, members: Sequence[Member], kind: str) -> dict[str, Traffic]:
    """The counters of each node now. A node that does not say them is left out: the check then says so."""
    found: dict[str, Traffic] = {}
    with forks(len(members), "counters") as pool:
        jobs = {member.host: pool.submit(member.session.ask, "probe_traffic", {}, COUNTERS_DEADLINE) for member in members}
    for host, job in jobs.items():
        try:
            outcome = job.result()
            if not outcome.failed:
                found[host] = traffic_of(outcome.values)
        except Gone as gone:
            trial.ledger.lose(host, kind, gone)
        except Garbled as garbled:
            trial.ledger.warn(f"{host}: {garbled}")
    return found


def _wires(trial: Trial, members: Sequence[Member], fabric: str) -> dict[str, Wires]:
    """Which HCAs are usable and whether GPUDirect is there, of nodes where NCCL has a fabric to use."""
    if members[0].backend != "nccl" or fabric not in NETWORKS:
        return {}
    with forks(len(members), "wires") as pool:
        return dict(zip([member.host for member in members], pool.map(_wires_of, members), strict=True))


def _wires_of(member: Member) -> Wires:
    """With the reason where the node does not say it."""
    variables = member.session.variables
    arguments = {"subnets": list(variables.get("fabric_subnets") or []), "exclude": list(variables.get("fabric_exclude") or [])}
    try:
        outcome = member.session.ask("fabric_facts", arguments, FABRIC_DEADLINE)
        said = Answer("fabric_facts", outcome.facts).part("nodectl_fabric")
        hcas = frozenset(str(hca.get("name")) for hca in said.parts("hcas") if hca.get("usable") is True)
        return Wires(hcas, any(said.part("gpudirect").values.values()))
    except Gone as gone:
        return Wires(error=gone.reason)
    except Garbled as garbled:
        return Wires(error=str(garbled))
