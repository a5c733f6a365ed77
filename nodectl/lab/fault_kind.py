"""What a fault is: what it needs, what it does, how it is undone. Shared by all files that bring faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nodectl.lab import hosts
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState

Act = Callable[[LabState, LabHost, str], None]


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault. ``value`` says what the value is, "" when the fault takes none; ``default`` is used where none is given.

    ``simulated``: a stand-in gives the answers of broken hardware that this machine has not. ``in_tree``: it lives in the host's own
    tree and processes alone, so a fresh tree is without it.
    """

    name: str
    about: str
    value: str
    apply: Act
    lift: Act
    default: str = ""
    of_host: bool = True
    simulated: bool = False
    in_tree: bool = False


def require_running(state: LabState, host: LabHost) -> None:
    """Raises LabProblem for a host that is off."""
    if not hosts.leader(state, host.name):
        raise LabProblem(f"host {host.name} is off: lift its fault `down` first")


def whole_number(text: str, what: str, least: int, most: int) -> int:
    """The number in ``text``, which may end with %. Raises LabProblem with the range that is accepted."""
    digits = text.strip().removesuffix("%").strip()
    if not digits.isdecimal() or not least <= int(digits) <= most:
        raise LabProblem(f"{text!r} is not {what}: expected a whole number from {least} to {most}")
    return int(digits)
