"""Groups whose ranks also do the fixed work of pace_checks: the slow rank is seen while something else is measured."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from nodectl.verify.gang import GangResult, Member, Program, all_reduce_program, run_program
from nodectl.verify.network_checks import Fleet
from nodectl.verify.pace_checks import ROUNDS, Run, pace_reading, ratios, slow
from nodectl.verify.reading import Reading
from nodectl.verify.suite_load import SuiteStep


class PaceWatch:
    """``gang`` measures one group as gang.run_gang does, and keeps what its ranks said of the fixed work. Safe to call from many threads."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._lock = threading.Lock()

    def gang(self, members: Sequence[Member], step: SuiteStep, sizes: Sequence[int]) -> GangResult:
        return self._run(members, replace(all_reduce_program(step, sizes), pace=ROUNDS))

    def _run(self, members: Sequence[Member], program: Program) -> GangResult:
        result = run_program(members, program)
        with self._lock:
            self.runs.append((tuple(members), result))
        return result

    def suspects(self) -> list[str]:
        """Hosts whose ranks were slow in every run so far."""
        return slow(ratios(self.runs))

    def again(self, members: Sequence[Member], step: SuiteStep) -> GangResult:
        """The fixed work once more, all at once and nothing else: other load passes, a rank that is held back is slow again."""
        return self._run(members, Program((), step.deadline, step.option("timeout"), ROUNDS))

    def reading(self, members: Sequence[Member], fleet: Fleet) -> Reading:
        return pace_reading(members, self.runs, fleet)
