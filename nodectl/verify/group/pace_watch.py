"""Groups whose ranks also do the fixed work of pace_checks: the slow rank is seen while something else is measured."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from nodectl.verify.group.gang import GangResult, Member, Program, all_reduce_program, run_program
from nodectl.verify.group.network_checks import Fleet
from nodectl.verify.group.pace_checks import LOOKS, MOST_TIMES, ROUNDS, SUSPICIOUS, Run, least, pace_reading, ratios
from nodectl.verify.judging.reading import Reading
from nodectl.verify.suite_load import SuiteStep


class PaceWatch:
    """``gang`` measures one group as gang.run_gang does, and keeps what its ranks said of the fixed work. Safe to call from many threads."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.looks: list[Run] = []
        self._lock = threading.Lock()

    def gang(self, members: Sequence[Member], step: SuiteStep, sizes: Sequence[int]) -> GangResult:
        result = run_program(members, replace(all_reduce_program(step, sizes), pace=ROUNDS))
        with self._lock:
            self.runs.append((tuple(members), result))
        return result

    def suspects(self) -> list[str]:
        """Hosts that need another look: suspicious so far, and slow in every look at all nodes."""
        if len(self.looks) >= LOOKS:
            return []
        bar = MOST_TIMES if self.looks else SUSPICIOUS
        return [host for host, ratio in self._found().items() if ratio > bar]

    def look(self, members: Sequence[Member], step: SuiteStep) -> GangResult:
        """The fixed work once more, all at once and nothing else: other load passes, a rank that is held back is slow again."""
        result = run_program(members, Program((), step.deadline, step.option("timeout"), ROUNDS))
        self.looks.append((tuple(members), result))
        return result

    def reading(self, members: Sequence[Member], fleet: Fleet) -> Reading:
        return pace_reading(members, self._found(), self.looks or self.runs, fleet)

    def _found(self) -> dict[str, float]:
        """Looks at all nodes are worth more than pairs, whose rounds differ in what else ran."""
        first = ratios(self.runs)
        return {**first, **least([ratios([one]) for one in self.looks])} if self.looks else first
