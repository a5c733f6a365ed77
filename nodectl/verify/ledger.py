"""What a verification has come to so far, said as events at the moment it is known: checks by node, who is gone, what was done.

Node checks run in threads, so all that they share is behind one lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodectl.verify.judging.floor_load import Floor
from nodectl.verify.judging.judge import GOOD, judge, node_verdict, reasons, said
from nodectl.verify.judging.measurement import Check, Verdict, Waiver, check_data
from nodectl.verify.judging.reading import Reading, absent, reading_of
from nodectl.verify.session import Gone
from nodectl.wire.event import Event

Emit = Callable[[Event], None]


@dataclass(frozen=True)
class Terms:
    """What the site says about judging, beside each node's variables.

    ``floors`` are its own, which count beside the shipped ones; ``waivers`` count up to their last day, ``today`` being an ISO date ("": none counts).
    """

    floors: Sequence[Floor] = ()
    waivers: Sequence[Waiver] = ()
    today: str = ""


NO_TERMS = Terms()


class Ledger:
    """``terms`` hold all floors, the shipped ones too."""

    def __init__(self, hosts: Sequence[str], terms: Terms, emit: Emit) -> None:
        self.hosts = tuple(hosts)
        self.terms = terms
        self._emit = emit
        self._lock = threading.Lock()
        self._checks: dict[str, list[Check]] = {host: [] for host in hosts}
        self._covered: dict[str, set[str]] = {host: set() for host in hosts}
        self._gone: dict[str, Gone] = {}
        self._refused: set[str] = set()
        # Which time of how many the step under way is done. Set between steps, when no thread is at work.
        self.repetition = (1, 1)

    # -- who is there

    def alive(self) -> list[str]:
        return [host for host in self.hosts if host not in self._gone and host not in self._refused]

    def passing(self) -> list[str]:
        """Nodes that may take part in groups: nothing against them so far that the user has not excused. A figure that only lacks a floor is not
        against a node; what its group reaches is worth knowing too."""
        return [host for host in self.alive() if node_verdict([check for check in self._checks[host] if not check.unfloored]) in GOOD]

    def lost(self, host: str) -> bool:
        return host in self._gone

    def lose(self, host: str, kind: str, gone: Gone) -> None:
        """The node is out: said once, with an unknown check for what it was asked."""
        with self._lock:
            first = host not in self._gone
            self._gone.setdefault(host, gone)
        if first:
            event = {"reason": gone.reason, "why": gone.why or gone.kind, "hint": gone.hint, "task": f"verify: {kind}"}
            self.say(f"host.{gone.kind}", host, event)
            self.judged(absent(kind, host, gone.kind, f"{gone.kind}: {gone.reason}"), kind)

    def lose_all(self, gone: Mapping[str, Gone], kind: str) -> None:
        for host, reason in gone.items():
            self.lose(host, kind, reason)

    def refuse(self, host: str, problems: Sequence[str]) -> None:
        """A node whose settings cannot be understood is not measured against them."""
        for problem in problems:
            self._refused.add(host)
            self.judged(absent("settings", host, "hosts.yaml", problem), "settings")

    # -- results

    def judge(self, reading: Reading) -> list[Check]:
        return judge(reading.measurements, self.terms.floors, reading.expectations, self.terms.waivers, self.terms.today)

    def judged(self, reading: Reading, kind: str) -> None:
        """Into the journal with exactly what the judge was given, so that it can be judged again without a node."""
        if not reading.measurements:
            return
        given = reading.to_json()
        self.say("reading", "", {"step": kind, "repetition": list(self.repetition), **given})
        for check in self.judge(reading_of(given)):
            if said(check, self.repetition):
                with self._lock:
                    self._checks[check.host].append(check)
                    self._covered[check.host].add(kind)
                self.say("check", check.host, check_data(check, kind))

    def cover(self, hosts: Sequence[str], kind: str) -> None:
        """The step was done for these hosts, also where it had nothing to measure (one node has no pairs)."""
        with self._lock:
            for host in hosts:
                self._covered[host].add(kind)

    def conclude(self, host: str, kinds: Sequence[str]) -> None:
        """A step of the suite that a node went through without a trace makes it unknown, never a pass."""
        if node_verdict(self._checks[host]) in GOOD:
            for kind in [one for one in kinds if one not in self._covered[host]]:
                self.judged(absent(kind, host, "nodectl", "was not run on this node"), kind)

    def verdict(self, host: str) -> Verdict:
        """The worst of its checks, said with its reasons."""
        verdict = node_verdict(self._checks[host])
        self.say("verdict", host, {"verdict": verdict, "reasons": reasons(self._checks[host])})
        return verdict

    def checks(self) -> list[Check]:
        return [check for host in self.hosts for check in self._checks[host]]

    # -- events

    def tell(self, text: str) -> None:
        self.say("progress", "", {"stage": "verify", "text": text})

    def warn(self, text: str) -> None:
        self.say("warning", "", {"text": text, "origin": None})

    def say(self, kind: str, host: str, data: Mapping[str, Any]) -> None:
        self._emit(Event(kind, time.time(), host, dict(data)))
