"""What a module is. Two kinds, told apart by the functions they have.

A *state* module (file, apt, mount …) is read, diff, write, read again:

    SPEC: Spec
    def read(system: System, args: Args) -> State                                   what is there now
    def diff(args: Args, state: State) -> Change                                    pure; an empty Change = nothing to do
    def write(system: System, args: Args, state: State, change: Change) -> None     make it so
    def values(args: Args, state: State, change: Change) -> Args                    optional: return values beyond changed

The runner stops after ``diff`` in check mode; after ``write`` it reads again, and whatever ``diff`` then still finds is a
failure ("did not take"). So success is proven by the outcome, never by an exit code.

An *act* module (command, stat, setup, wait_for, probes) does one thing:

    SPEC: Spec
    def act(system: System, args: Args, check: bool) -> Outcome
"""

from __future__ import annotations

from typing import Any, Dict

Args = Dict[str, Any]
State = Dict[str, Any]


class Failed(Exception):
    """The node says no. The text is shown to a person; ``values`` become return values of the failed step (rc, stderr, …)."""

    def __init__(self, msg: str, **values: Any) -> None:
        super().__init__(msg)
        self.msg = msg
        self.values = values
