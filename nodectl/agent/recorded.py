"""Where a probe looks at hardware: this machine, or a recorded tree that stands in for one.

Under a recorded tree nothing of the real machine shows through: files come from below it, programs from its ``bin`` only.
"""

from __future__ import annotations

import os
from typing import Callable, List, Optional, TypeVar

from nodectl.agent.contract import Failed
from nodectl.agent.facts.bounded import bounded
from nodectl.agent.facts.platform import text
from nodectl.agent.processes import Completed
from nodectl.agent.system import System
from nodectl.wire.params import Param

PARAM = Param("path", "/ or a recorded tree with sys/, proc/, etc/ and bin/ (a rehearsal: everything found is then simulated)", default="/")


T = TypeVar("T")


class Tree:
    """Files and programs below ``root``."""

    def __init__(self, system: System, root: str) -> None:
        self.system = system
        self.root = root
        self.simulated = os.path.normpath(root) != "/"

    def path(self, place: str) -> str:
        return os.path.join(self.root, place)

    def text(self, place: str) -> str:
        """A small file without blanks around it; "" where it cannot be read."""
        return text(self.path(place))

    def number(self, place: str) -> Optional[int]:
        """A whole number in any of C's spellings; None where there is none."""
        return whole(self.text(place))

    def names(self, place: str) -> List[str]:
        folder = self.path(place)
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def exists(self, place: str) -> bool:
        return os.path.exists(self.path(place))

    def linked(self, place: str) -> str:
        """The name of what a link leads to; "" where there is none."""
        path = self.path(place)
        return os.path.basename(os.path.realpath(path)) if os.path.exists(path) else ""

    def within(self, what: str, ask: Callable[[], T], timeout: float) -> T:
        """The answer of ``ask``. Reading a file of a driver that hangs cannot be interrupted: its thread is left behind, and Failed raised."""
        nothing: List[T] = []
        answer, problem = bounded(what, lambda: [ask()], nothing, timeout)
        if problem:
            raise Failed(problem)
        return answer[0]

    def program(self, name: str) -> Optional[str]:
        if not self.simulated:
            return self.system.which(name)
        path = os.path.join(self.root, "bin", name)
        return path if os.access(path, os.X_OK) else None

    def run(self, name: str, arguments: List[str], timeout: float) -> Completed:
        """Detached, and left behind when it does not end in time. Raises Failed: not there, did not end, or ended with an error."""
        program = self.program(name)
        if program is None:
            raise Failed(f"{name} is not installed")
        done = self.system.run([program, *arguments], timeout=timeout)
        if done.rc != 0:
            said = " ".join((done.stdout + " " + done.stderr).split())[:200]
            raise Failed(f"{name} failed with exit code {done.rc}: {said or 'it said nothing'}")
        return done


def whole(value: str) -> Optional[int]:
    """ "8", "0x1f" as a number; None for anything else."""
    try:
        return int(value, 0)
    except ValueError:
        return None
