"""Tasks and blocks as values. Keywords hold what was written: a text may be a template, evaluated per host by the engine.

What a block or an import gives to the tasks inside it (when, tags, become, vars, environment …) has been pushed down
by the loader: a Task is complete in itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from nodectl.lang.role import Role
from nodectl.wire.origin import Origin

Template = Any  # a JSON-like value in which texts may be Jinja templates


@dataclass(frozen=True)
class LoopControl:
    loop_var: str = "item"
    index_var: str = ""
    label: Template = None
    pause: float = 0.0
    extended: bool = False
    all_items: bool = True
    break_when: tuple[Template, ...] = ()


@dataclass(frozen=True)
class Become:
    """``enabled`` None means not said at this level: the inventory and the command line decide."""

    enabled: Template = None
    user: Template = None
    method: Template = None
    flags: Template = None


@dataclass(frozen=True)
class Reach:
    """The keywords connection, remote_user and port: they say how a host is reached where its variables do not."""

    connection: Template = None
    user: Template = None
    port: Template = None


@dataclass(frozen=True)
class Inherited:
    """What a play, a block, a role or an import gives to the tasks inside it. None means not said at this level."""

    when: tuple[Template, ...] = ()
    tags: frozenset[str] = frozenset()
    scope: tuple[dict[str, Template], ...] = ()
    become: Become = Become()
    reach: Reach = Reach()
    environment: tuple[Template, ...] = ()
    notify: tuple[Template, ...] = ()
    ignore_errors: Template = None
    ignore_unreachable: Template = None
    no_log: Template = None
    delegate_to: Template = None
    run_once: bool | None = None
    any_errors_fatal: bool | None = None
    check_mode: Template = None
    diff: Template = None
    timeout: Template = None
    throttle: Template = None
    delegate_facts: Template = None
    module_defaults: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Task:
    """One task. ``module`` is the short canonical name (apt, not ansible.builtin.apt); ``args`` are unevaluated.

    ``origin`` is the place of the task's first key; ``origins`` maps "args.NAME" and keyword names to theirs.
    ``loop`` is None, or the list/template to loop over; ``loop_kind`` is "loop" or the with_ lookup ("items", "dict", …).
    ``inherited`` is set on include_tasks and include_role only: what the tasks they bring get from the blocks around.
    ``seconds`` is `async`: run apart from the line to the node, for so long at most; ``poll`` is how often it is asked about.
    ``module_defaults`` are those around the task, outermost first; they are in ``args`` already. ``listen`` is only set on handlers.
    ``scope`` are the variables of enclosing blocks, imports and includes, outermost first.
    """

    module: str
    args: dict[str, Template]
    origin: Origin
    name: Template = ""
    origins: dict[str, Origin] = field(default_factory=dict)
    role: Role | None = None
    when: tuple[Template, ...] = ()
    loop: Template = None
    loop_kind: str = "loop"
    loop_control: LoopControl = LoopControl()
    register: str = ""
    scope: tuple[dict[str, Template], ...] = ()
    vars: dict[str, Template] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    become: Become = Become()
    reach: Reach = Reach()
    environment: tuple[Template, ...] = ()
    ignore_errors: Template = False
    ignore_unreachable: Template = False
    changed_when: tuple[Template, ...] | None = None
    failed_when: tuple[Template, ...] | None = None
    notify: tuple[Template, ...] = ()
    listen: tuple[str, ...] = ()
    until: tuple[Template, ...] = ()
    retries: Template = None
    delay: Template = None
    seconds: Template = None
    poll: Template = None
    delegate_to: Template = None
    run_once: bool = False
    check_mode: Template = None
    diff: Template = None
    no_log: Template = False
    timeout: Template = None
    throttle: Template = None
    delegate_facts: Template = False
    module_defaults: tuple[Any, ...] = ()
    any_errors_fatal: bool = False
    apply_tags: frozenset[str] = frozenset()
    inherited: Inherited | None = None


@dataclass(frozen=True)
class Block:
    """block/rescue/always. A plain list of tasks from an import is spliced in by the loader and makes no Block.

    The tasks of one use of a role are a Block of their own, whose ``role`` it is: at its end the role has run.
    """

    body: tuple[Node, ...]
    rescue: tuple[Node, ...]
    always: tuple[Node, ...]
    origin: Origin
    name: str = ""
    role: Role | None = None


Node = Task | Block


def tasks_of(nodes: Iterable[Node]) -> Iterator[Task]:
    """All tasks of a tree in the order of the text: body, rescue, always."""
    for node in nodes:
        if isinstance(node, Block):
            yield from tasks_of((*node.body, *node.rescue, *node.always))
        else:
            yield node


IncludeKind = Literal["include_tasks", "include_role"]
