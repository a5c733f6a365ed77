"""A role's declared arguments are checked on each host before the first task of the role that really runs there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.engine.cursor import Position
from nodectl.engine.runtime import PlayScope, Runtime
from nodectl.lang.argument_specs import check
from nodectl.lang.role import Role


def check_arguments(run: Runtime, scope: PlayScope, host: str, position: Position, variables: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of the role that the task belongs to, or "". Asked once per host and use of the role."""
    role = position.task.role
    state = run.state(host)
    if role is None or not role.argument_specs or any(role is done for done in state.validated):
        return ""
    state.validated.append(role)
    return _problems(run, role, variables)


def _problems(run: Runtime, role: Role, variables: Mapping[str, Any]) -> str:
    problems = check(role, run.variables.lazily(variables))
    return f"arguments of role {role.name}: " + "; ".join(problem.message for problem in problems) if problems else ""
