"""Runs cases: packs those that may share a run, breaks the hosts, verifies once, mends the hosts, and keeps what came out."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.run import Run, nodectl
from tests.conftest import Lab
from tests.faults.case import Applied, Case, suite_text

# Figures of the last run of each case, for docs/faults.md: written only where a person asks for it.
MEASURED = Path(__file__).parent / "measured.json"


@dataclass
class Batch:
    """Cases of one verify run; each has a bad host of its own, except where a fault is everywhere."""

    cases: list[Case] = field(default_factory=list)

    def takes(self, case: Case, hosts: int) -> bool:
        """One host at least stays as it is."""
        first = self.cases[0]
        return bool(case.share) and case.share == first.share and not case.everywhere and not first.everywhere and len(self.cases) + 1 < hosts

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of all cases in an order that suits each of them."""
        merged: list[str] = []
        for case in self.cases:
            place = 0
            for step in case.steps:
                if step in merged:
                    place = merged.index(step) + 1
                else:
                    merged.insert(place, step)
                    place += 1
        return tuple(merged)

    @property
    def change(self) -> dict[str, dict[str, Any]]:
        return {kind: options for case in self.cases for kind, options in case.change.items()}

    @property
    def variables(self) -> dict[str, Any]:
        return {name: value for case in self.cases for name, value in case.variables.items()}

    @property
    def login(self) -> int:
        """The longest of their bounds; 0 where none has one of its own."""
        return max(case.login for case in self.cases)


def _on_all(batch: Batch) -> dict[Applied, None]:
    return dict.fromkeys(fault for case in batch.cases for fault in case.faults if fault.on == "all")


def pack(cases: list[Case], hosts: int) -> list[Batch]:
    """Cases in their order, those that may share a run together."""
    batches: list[Batch] = []
    for case in cases:
        fitting = next((batch for batch in batches if batch.takes(case, hosts)), None)
        if fitting is None:
            batches.append(Batch([case]))
        else:
            fitting.cases.append(case)
    return batches


@dataclass
class Tried:
    """What came out of one batch. ``bad`` is the host of each case by its name ("" for a case that is everywhere)."""

    run: Run
    bad: dict[str, str]
    lifted: float

    def healthy(self, hosts: tuple[str, ...]) -> list[str]:
        return [host for host in hosts if host not in self.bad.values()]


class Driver:
    """One lab whose hosts were prepared once."""

    def __init__(self, lab: Lab, folder: Path, cases: list[Case]) -> None:
        self.lab = lab
        self.folder = folder
        self.batches = pack(cases, len(lab.names))
        self._tried: dict[int, Tried] = {}

    def named(self, case: Case) -> list[str]:
        """The hosts that must show the fault: the bad one, or everyone, or nobody where all must go well all the same."""
        if not case.everywhere:
            return [self.tried(case).bad[case.name]]
        return list(self.lab.names) if case.expect.everyone else []

    def exit_code(self, case: Case) -> int:
        """Of the whole run: 4 where a node is out of reach, 3 where one does not pass."""
        cases = next(batch.cases for batch in self.batches if case in batch.cases)
        if any(one.expect.status != "ok" for one in cases):
            return 4
        return 0 if all(one.expect.verdict == "pass" for one in cases) else 3

    def tried(self, case: Case) -> Tried:
        """The run of the batch that holds this case; the first to ask pays for it."""
        number = next(index for index, batch in enumerate(self.batches) if case in batch.cases)
        if number not in self._tried:
            self._tried[number] = self._try(self.batches[number], self.folder / f"{number:02}-{case.name}")
        return self._tried[number]

    def _try(self, batch: Batch, folder: Path) -> Tried:
        bad = self._bad(batch)
        try:
            self._break(batch, bad)
            run = self.verify(folder, batch.steps, batch.change, batch.variables, batch.login)
        finally:
            began = time.monotonic()
            self._mend()
        return Tried(run, bad, time.monotonic() - began)

    def _mend(self) -> None:
        """Every fault is lifted, the last one first. What stands on all hosts stays while the next batch wants it too: it is no fault by itself."""
        number = len(self._tried) + 1
        wanted = _on_all(self.batches[number]) if number < len(self.batches) else {}
        for fault in reversed(list(self.lab.state.faults)):
            if Applied(fault.fault, fault.value, "all") not in wanted:
                self.lab.lift(fault.host, fault.fault)

    def _bad(self, batch: Batch) -> dict[str, str]:
        """Other hosts from batch to batch, so that who was broken has to pass later. The first host, which holds the rendezvous of every group, is bad
        only where a run is full and in cases that ask for it: a group without its rendezvous is a case of its own."""
        names, number = self.lab.names, self.batches.index(batch)
        first = batch.cases[0]
        others = names[1:]
        if first.share:
            places = others if len(batch.cases) < len(others) else names
            return {case.name: places[(number + index) % len(places)] for index, case in enumerate(batch.cases)}
        return {case.name: "" if case.everywhere else names[0] if case.first else others[number % len(others)] for case in batch.cases}

    def _break(self, batch: Batch, bad: dict[str, str]) -> None:
        """What is on all hosts first and once: a bad host may have another value of the same."""
        standing = {(fault.host, fault.fault, fault.value) for fault in self.lab.state.faults}
        for fault in _on_all(batch):
            for host in self.lab.names:
                if (host, fault.name, fault.value) not in standing:
                    self.lab.fault(host, fault.name, fault.value)
        for case in batch.cases:
            for fault in case.faults:
                if fault.on != "all":
                    self.lab.fault("" if fault.on == "store" else bad[case.name], fault.name, fault.value)

    def verify(self, folder: Path, steps: tuple[str, ...], change: dict[str, dict[str, Any]], variables: dict[str, Any], login: int = 0) -> Run:
        folder.mkdir(parents=True)
        suite = folder / "suite.toml"
        suite.write_text(suite_text(steps, change))
        extra = [*(["-e", json.dumps(variables)] if variables else []), *(["--timeout", str(login)] if login else [])]
        return nodectl(folder / "run", "verify", str(self.lab.hosts_yaml), "--suite", str(suite), *extra)


def worse(run: Run, host: str) -> dict[str, str]:
    """Name and reason of each check of the host that is no pass."""
    return {check["name"]: f"{check['verdict']}: {check['reason']}" for check in run.host(host)["checks"] if check["verdict"] != "pass"}
