"""One host's way through the task tree: blocks, rescue, always, and tasks that an include put in at run time.

A position's ``path`` is a tuple of integers that orders positions of different hosts: the linear strategy always works on the
smallest one. A block at index i of path P gives its body P+(i, 0), its rescue P+(i, 1) and its always P+(i, 2), so hosts in a
rescue wait until the others have ended the body; what an include at P+(i,) brings in stands at P+(i, k), k counting its items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nodectl.lang.role import Role
from nodectl.lang.task import Block, Node, Task

Path = tuple[int, ...]
BODY, RESCUE, ALWAYS = 0, 1, 2


class Inclusion(NamedTuple):
    """What one item of an include brings in. ``params`` are the include's variables, ``role`` the included role."""

    nodes: tuple[Node, ...]
    params: Mapping[str, Any]
    role: Role | None = None


class Position(NamedTuple):
    """The next task of a host, the include parameters in force (outermost first merged) and the roles included around it."""

    path: Path
    task: Task
    params: Mapping[str, Any] = {}
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why a host failed: becomes ansible_failed_task and ansible_failed_result in a rescue. ``rescuable`` False: stopped from outside."""

    task: Task
    result: dict[str, Any]
    rescuable: bool = True


@dataclass
class _Frame:
    nodes: Sequence[Node]
    path: Path
    params: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[Role, ...] = ()
    block: Block | None = None
    part: int = BODY
    index: int = 0
    failure: Failure | None = None

    def rescues(self) -> bool:
        return self.block is not None and self.part == BODY and bool(self.block.rescue)


class RolesRun:
    """Which roles of a play one host has gone through to their end, with at least one task that was not skipped."""

    def __init__(self) -> None:
        self._began: list[Role] = []
        self._ended: list[Role] = []

    def ran(self, role: Role | None) -> None:
        """A task of ``role`` ran."""
        if role is not None and not any(role is one for one in self._began):
            self._began.append(role)

    def end(self, role: Role | None) -> None:
        if role is not None and any(role is one for one in self._began):
            self._ended.append(role)

    def needless(self, role: Role | None) -> bool:
        """Whether a role of this use ran already, and need not run again."""
        return role is not None and not role.allow_duplicates and any(role.use == one.use for one in self._ended)


class Cursor:
    """``skip`` leaves out tasks of the outermost level (handlers that nobody notified); ``roles`` is kept over all sections of a play."""

    def __init__(self, nodes: Sequence[Node], skip: Callable[[Task], bool] | None = None, roles: RolesRun | None = None) -> None:
        self._frames = [_Frame(nodes, ())]
        self._skip = skip
        self._roles = roles or RolesRun()
        self._ended_roles: list[Role] = []
        self.failure: Failure | None = None

    def position(self) -> Position | None:
        """The task to run next, or None at the end. Asking twice gives the same answer."""
        while self._frames:
            frame = self._frames[-1]
            if frame.index >= len(frame.nodes):
                self._leave()
                continue
            node = frame.nodes[frame.index]
            if isinstance(node, Block):
                self._enter(frame, node)
            elif self._passes_over(node):
                frame.index += 1
            else:
                return Position((*frame.path, frame.index), node, frame.params, frame.roles)
        return None

    def advance(self) -> None:
        self._frames[-1].index += 1

    def ran(self, task: Task) -> None:
        """The task at the cursor was not skipped."""
        self._roles.ran(task.role)

    def insert(self, inclusions: Sequence[Inclusion]) -> None:
        """The include at the cursor is done; go through what it brought in, then on."""
        frame = self._frames[-1]
        base = (*frame.path, frame.index)
        frame.index += 1
        for number, part in reversed(list(enumerate(inclusions))):
            roles = (part.role, *frame.roles) if part.role else frame.roles
            self._frames.append(_Frame(part.nodes, (*base, number), {**frame.params, **part.params}, roles))

    def will_rescue(self) -> bool:
        """Would a failure now be caught by a rescue of an enclosing block?"""
        return any(frame.rescues() for frame in self._frames)

    def fail(self, failure: Failure) -> bool:
        """Unwind to the next rescue or always. True when a rescue took over."""
        while self._frames:
            frame = self._frames.pop()
            if frame.block is None:
                continue
            if failure.rescuable and frame.rescues():
                self._turn(frame, RESCUE, frame.block.rescue, None)
                return True
            if frame.part != ALWAYS and frame.block.always:
                self._turn(frame, ALWAYS, frame.block.always, failure)
                return False
        self.failure = failure
        return False

    def end(self) -> None:
        """Nothing more to do for this host, not even always: meta end_host, a lost line."""
        self._frames.clear()

    def end_role(self, role: Role | None) -> None:
        if role is not None:
            self._ended_roles.append(role)

    def _passes_over(self, task: Task) -> bool:
        if task.role is not None and any(task.role is ended for ended in self._ended_roles):
            return True
        return self._skip is not None and len(self._frames) == 1 and self._skip(task)

    def _enter(self, frame: _Frame, block: Block) -> None:
        path = (*frame.path, frame.index, BODY)
        frame.index += 1
        if self._roles.needless(block.role):
            return
        self._frames.append(_Frame(block.body, path, frame.params, frame.roles, block))

    def _turn(self, frame: _Frame, part: int, nodes: Sequence[Node], failure: Failure | None) -> None:
        self._frames.append(_Frame(nodes, (*frame.path[:-1], part), frame.params, frame.roles, frame.block, part, failure=failure))

    def _leave(self) -> None:
        frame = self._frames.pop()
        if frame.block is None:
            return
        if frame.part != ALWAYS and frame.block.always:
            self._turn(frame, ALWAYS, frame.block.always, None)
        elif frame.failure is not None:
            self.fail(frame.failure)
        else:
            self._roles.end(frame.block.role)
