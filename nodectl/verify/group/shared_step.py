"""The step `shared`: a file mount is one place for all nodes. Some write a name, the others must see it soon."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.group.shared_checks import Look, shared_reading
from nodectl.verify.session import Gone
from nodectl.verify.suite_load import SuiteStep
from nodectl.verify.trial import Trial, forks

# So many nodes write: what one of them fails to upload is told from what one reader fails to see.
WRITERS = 3
# Seconds for writing or removing one small file; the wait for its upload is among them.
BRIEF = 15.0
PROBE = "probe_shared_mount"
PREFIX = ".nodectl-shared-"


def shared(trial: Trial, step: SuiteStep) -> None:
    """Each mount that several nodes have from the same source and may write."""
    ledger = trial.ledger
    for (path, _source), hosts in _places(trial).items():
        if len(hosts) > 1:
            _one(trial, step, path, [host for host in hosts if not ledger.lost(host)])
    ledger.cover(ledger.alive(), step.kind)


def _places(trial: Trial) -> dict[tuple[str, str], list[str]]:
    """Hosts by mount point and source, of mounts that answer. Copies are each node's own, and what is only read stays as it was."""
    found: dict[tuple[str, str], list[str]] = {}
    for host in trial.ledger.alive():
        for path, given in (trial.sessions[host].variables.get("file_mounts") or {}).items():
            spec = given if isinstance(given, Mapping) else {"source": given}
            own = str(spec.get("mode", "MOUNT")) == "COPY" or str(spec.get("profile", "")).lower().endswith("_ro")
            if path in trial.facts[host].usable_mounts and not own:
                found.setdefault((str(path), str(spec.get("source"))), []).append(host)
    return found


def _one(trial: Trial, step: SuiteStep, path: str, hosts: Sequence[str]) -> None:
    """Files are removed whatever happens. A mount without a cache may refuse to be written: such a node only looks."""
    token = secrets.token_hex(6)
    names = {host: f"{PREFIX}{token}-{number}" for number, host in enumerate(hosts[:WRITERS])}
    try:
        said = _ask(trial, step, BRIEF, {host: {"path": path, "write": name} for host, name in names.items()})
        writers = [host for host, missing in said.items() if isinstance(missing, list)]
        if not writers:
            return
        orders = {host: {"path": path, "look": [names[writer] for writer in writers if writer != host], "within": step.option("within")} for host in hosts}
        looked = _ask(trial, step, step.deadline, {host: order for host, order in orders.items() if not trial.ledger.lost(host)})
        whose = {name: host for host, name in names.items()}
        missing = {host: [whose[name] for name in found if name in whose] for host, found in looked.items() if isinstance(found, list)}
        errors = {host: found for host, found in looked.items() if isinstance(found, str)}
        trial.ledger.judged(shared_reading(Look(path, step.option("within"), writers, missing, errors)), step.kind)
    finally:
        _ask(trial, step, BRIEF, {host: {"path": path, "remove": name} for host, name in names.items() if not trial.ledger.lost(host)})


def _ask(trial: Trial, step: SuiteStep, deadline: float, orders: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str] | str]:
    """Names that each host misses, or why it does not say. Hosts that are lost meanwhile are left out."""
    with forks(max(len(orders), 1), "shared") as pool:
        jobs = {host: pool.submit(trial.sessions[host].ask, PROBE, order, deadline) for host, order in orders.items()}
    found: dict[str, list[str] | str] = {}
    for host, job in jobs.items():
        try:
            outcome = job.result()
            found[host] = outcome.msg if outcome.failed else Answer(PROBE, outcome.values).texts("missing")
        except Gone as gone:
            trial.ledger.lose(host, step.kind, gone)
        except Garbled as garbled:
            found[host] = str(garbled)
    return found
