"""One batch of hosts through one play."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from nodectl.engine import vars_files
from nodectl.engine.cursor import Cursor, Failure, RolesRun
from nodectl.engine.execute import INCLUDES, TaskRun
from nodectl.engine.meta import run_meta
from nodectl.engine.node import place_of
from nodectl.engine.preflight import percentage_of, task_titles
from nodectl.engine.results import Done, Effects, failed, shown
from nodectl.engine.runtime import PlayScope, Runtime, text_of
from nodectl.engine.state import HostState
from nodectl.engine.strategy import Group, free, linear
from nodectl.engine.tags import selected
from nodectl.lang.task import Node, Task
from nodectl.lang.template_error import TemplateError
from nodectl.lang.unsafe import mark_unsafe
from nodectl.transport.channel import Lost
from nodectl.wire.params import Param, Wrong, convert

# Modules that work once for all hosts, whatever the task says; as in Ansible their result is the first host's alone.
ONCE = frozenset(["add_host"])


class Batch:
    """Runs the sections of a play on the hosts of ``scope``. ``start_at`` is shared by the whole run: [name] until it was found.

    ``ended`` are hosts that meta tasks took out of this play; ``broken`` says why the failure budget ended it.
    """

    def __init__(self, run: Runtime, scope: PlayScope, pool: Executor, start_at: list[str]) -> None:
        self.run = run
        self.scope = scope
        self.ended: set[str] = set()
        self.play_ended = False
        self.broken = ""
        self.hosts = list(scope.live)
        self._pool = pool
        self._start_at = start_at
        self._unwound: set[str] = set()
        self._gates: dict[int, AbstractContextManager[Any]] = {}
        self._gating = threading.Lock()
        self._free = scope.play.strategy != "linear"
        self._thread = threading.get_ident()
        args = {"gather_subset": list(scope.play.gather_subset)} if scope.play.gather_subset else {}
        self._facts = Task("setup", args, scope.play.origin, name="Gathering Facts", tags=frozenset(["always"]), reach=scope.play.reach)

    # -- the way through

    def through(self) -> None:
        """Facts, the sections, and the handlers at the end of each."""
        play = self.scope.play
        gathers = play.gather_facts is not False
        vars_files.load(self, final=not gathers)
        if gathers:
            self.section([self._facts], self._active())
            vars_files.load(self, final=True)
        for number, section in enumerate(play.sections, 1):
            if not self.play_ended:
                self.section(section.nodes, self._active())
                self._flush_section(last=number == len(play.sections))

    def _flush_section(self, last: bool) -> None:
        forced = self.scope.play.force_handlers or self.run.options.force_handlers
        hosts = [host for host in self.hosts if host not in self.ended and (forced or host in self.scope.live)]
        self.flush(hosts, adopt=last)

    def _active(self) -> list[str]:
        return [host for host in self.scope.live if host not in self.ended]

    def section(self, nodes: Sequence[Node], hosts: Sequence[str], *, handlers: bool = False) -> dict[str, Failure]:
        """All of ``nodes`` on ``hosts``; the failures that no rescue caught, by host."""
        cursors = {host: self._cursor(nodes, host, handlers) for host in hosts}

        def group(one: Group) -> None:
            self._group(one, cursors, handlers)

        if self._free and not self._inside():
            free(cursors, group, self._each)
        else:
            linear(cursors, group)
        return {host: cursor.failure for host, cursor in cursors.items() if cursor.failure is not None}

    def flush(self, hosts: Sequence[str], *, adopt: bool = True) -> dict[str, Failure]:
        """Run the handlers that are notified on ``hosts``; ``adopt``: those that an earlier run left undone too."""
        states = [self._state(host) for host in hosts]
        for state in states:
            if adopt:
                owed = self.run.owed.of(place_of(self.run, state.name), state.name, self.run.states, self.scope.handlers)
                state.pending.update(dict.fromkeys(owed))
        waiting = [state.name for state in states if state.pending and state.status not in ("unreachable", "lost")]
        return self.section(self.scope.handlers.tasks, waiting, handlers=True) if waiting else {}

    def settle(self) -> None:
        """At the play's end, however it ended: what was notified and did not run stays owed, and is told. A task that was under way and
        whose end nobody heard may have changed what it notifies of."""
        for host in self.hosts:
            state = self._state(host)
            left = list(dict.fromkeys([*state.pending, *self.run.owed.expected(host)]))
            state.pending.clear()
            if left:
                self.run.emit("handlers.pending", host, handlers=left)

    def _cursor(self, nodes: Sequence[Node], host: str, handlers: bool) -> Cursor:
        if not handlers:
            return Cursor(nodes, roles=self.scope.roles_run.setdefault(host, RolesRun()))
        pending, key_of = self._state(host).pending, self.scope.handlers.key_of
        return Cursor(nodes, skip=lambda task: key_of(task) not in pending)

    def _inside(self) -> bool:
        """In a worker thread (free): whatever is started from there must not wait for another worker."""
        return threading.get_ident() != self._thread

    def _each(self, work: Callable[[str], None], hosts: Sequence[str]) -> None:
        for future in as_completed([self._pool.submit(work, host) for host in hosts]):
            future.result()

    def _state(self, host: str) -> HostState:
        return self.run.state(host)

    # -- one task on some hosts

    def _group(self, group: Group, cursors: dict[str, Cursor], handlers: bool) -> None:
        task = group.task
        if self.broken and not handlers and self._unwind(group, cursors):
            return
        if not self._wanted(task, handlers):
            for host in group.members:
                cursors[host].advance()
        elif task.module == "meta":
            run_meta(self, group, cursors)
        elif (task.run_once or task.module in ONCE) and not self._free:
            self._once(group, cursors, handlers)
        else:
            self._everywhere(group, cursors, handlers)

    def _wanted(self, task: Task, handlers: bool) -> bool:
        """Handlers run whatever the tags, as in Ansible."""
        if handlers:
            return True
        if self._start_at and task is not self._facts:
            if self._start_at[0] not in task_titles(task):
                return False
            self._start_at.clear()
        return selected(task.tags | self.scope.play.tags, self.run.options.tags, self.run.options.skip_tags)

    def _everywhere(self, group: Group, cursors: dict[str, Cursor], handlers: bool) -> None:
        self._tell_start(group.task, handlers)
        runs = {host: TaskRun(self.run, self.scope, host, place, handlers) for host, place in group.members.items()}
        gate = self._gate(group)
        if self._inside():
            for host, one in runs.items():
                with gate:
                    done = one.run()
                self._finish(group, host, done, cursors, handlers)
        else:
            waiting: dict[Future[Done], str] = {self._pool.submit(_behind, gate, one.run): host for host, one in runs.items()}
            for future in as_completed(waiting):
                self._finish(group, waiting[future], future.result(), cursors, handlers)
        self._check_budget(group.task)

    def _gate(self, group: Group) -> AbstractContextManager[Any]:
        """throttle: so many hosts at a time are at this task; the gate is the task's, because with `free` hosts come to it one by one."""
        task, host = group.task, next(iter(group.members))
        if task.throttle is None:
            return nullcontext()
        with self._gating:
            if id(task) not in self._gates:
                number = self._throttle(task, self.run.variables.of_task(self.scope, host, group.members[host]))
                self._gates[id(task)] = threading.Semaphore(number) if number > 0 else nullcontext()
            return self._gates[id(task)]

    def _throttle(self, task: Task, variables: Mapping[str, Any]) -> int:
        """0 is no limit, as in Ansible; what cannot be read is the safe end of what it may have meant."""
        try:
            return max(0, int(convert(Param("int"), self.run.templar.render(task.throttle, variables))))
        except (TemplateError, Wrong) as error:
            self.run.emit("warning", text=f"throttle cannot be read ({error}): one host at a time", origin=str(task.origin))
            return 1

    def _once(self, group: Group, cursors: dict[str, Cursor], handlers: bool) -> None:
        """On the first host for which the condition holds; its result goes to all."""
        self._tell_start(group.task, handlers)
        for number, (host, place) in enumerate(group.members.items(), 1):
            done = TaskRun(self.run, self.scope, host, place, handlers).run()
            if done.gone and number < len(group.members):
                self._finish(group, host, done, cursors, handlers)
                continue
            if done.status != "skipped" or number == len(group.members):
                self._share(group, host, done, cursors, handlers)
                return

    def _share(self, group: Group, host: str, done: Done, cursors: dict[str, Cursor], handlers: bool) -> None:
        others = [name for name in group.members if name != host and not self._state(name).gone]
        if done.status == "skipped" and len(others) > 0:
            text = f"{done.name or group.task.module}: runs once, but its condition holds on no host; it ran on none"
            self.run.emit("warning", text=text, origin=str(done.origin))
        for other in others:
            if group.task.module not in ONCE:
                done.effects.give_to(self._state(other))
            self._move_on_once(group, other, host, done, cursors[other])
        self._finish(group, host, done, cursors, handlers)

    def _move_on_once(self, group: Group, other: str, host: str, done: Done, cursor: Cursor) -> None:
        if done.status == "failed" or done.gone:
            rescued = cursor.will_rescue()
            cursor.fail(Failure(group.task, done.result))
            if not rescued:
                self.stop(other, f"'{done.name or group.task.module}' runs once for all hosts, and failed on {host}")
        elif done.inclusions:
            cursor.insert(done.inclusions)
        else:
            cursor.advance()

    def _tell_start(self, task: Task, handlers: bool) -> None:
        # The name as the first host sees it would be a guess for the others: names with templates are shown as written.
        role = task.role.name if task.role else ""
        self.run.emit("task.start", play=self.scope.play.name, task=str(task.name), role=role, origin=str(task.origin), module=task.module, handler=handlers)

    # -- what came of it

    def _finish(self, group: Group, host: str, done: Done, cursors: dict[str, Cursor], handlers: bool) -> None:
        state, cursor = self._state(host), cursors[host]
        done.effects.give_to(state)
        for other, effects in done.effects.elsewhere.items():
            effects.give_to(self._state(other))
        self._note_owed(state, done, "" if not handlers or done.status == "failed" else self.scope.handlers.key_of(group.task))
        if done.gone is not None:
            self._lose(host, done, cursor)
            return
        if done.status != "skipped":
            cursor.ran(group.task)
        rescued = done.status == "failed" and cursor.will_rescue()
        self._tell_end(group.task, host, done, handlers, "rescued" if rescued else done.status)
        if done.status == "failed":
            self._fail(group.task, host, done, cursor, rescued)
        elif done.inclusions:
            cursor.insert(done.inclusions)
        else:
            cursor.advance()

    def _note_owed(self, state: HostState, done: Done, ran: str) -> None:
        """``ran``: the handler that this was and that is not owed any more. Nobody knows what a lost host did: it keeps what was expected."""
        owed, host = self.run.owed, state.name
        fresh = [key for key in done.notified if key not in state.pending]
        if fresh:
            state.pending.update(dict.fromkeys(fresh))
            owed.owe(place_of(self.run, host), host, fresh)
        if not isinstance(done.gone, Lost):
            owed.settle(host, list(state.pending))
        if ran and not done.gone:
            state.pending.pop(ran, None)
            owed.done(place_of(self.run, host), host, ran)

    def _fail(self, task: Task, host: str, done: Done, cursor: Cursor, rescued: bool) -> None:
        state = self._state(host)
        failed_task = {"name": done.name, "action": task.module, "args": mark_unsafe(task.args), "origin": str(done.origin)}
        Effects({"ansible_failed_task": failed_task, "ansible_failed_result": done.result}).give_to(state)
        cursor.fail(Failure(task, done.result))
        if not rescued:
            state.status = "failed"
            self.scope.leave(host)

    def _lose(self, host: str, done: Done, cursor: Cursor) -> None:
        """The line to the host is gone: no rescue and no always could run there."""
        assert done.gone is not None
        state = self._state(host)
        lost = isinstance(done.gone, Lost)
        state.status = "lost" if lost else "unreachable"
        kind = "lost" if isinstance(done.gone, Lost) else done.gone.why
        where = {"task": done.name, "origin": str(done.origin)}
        data = {"reason": done.gone.reason, "why": kind, "hint": done.gone.hint, **where}
        self.run.emit("host.lost" if lost else "host.unreachable", host, **data)
        cursor.end()
        self.scope.leave(host)

    def _tell_end(self, task: Task, host: str, done: Done, handlers: bool, status: str) -> None:
        self.run.emit(
            "task.end", host, play=self.scope.play.name, task=done.name or text_of(self.run, task.name, {}), role=task.role.name if task.role else "",
            origin=str(done.origin), module=task.module, status=status, result=shown(done.result, done.no_log), diff=done.diff, seconds=done.seconds,
            handler=handlers, include=task.module in INCLUDES,
        )

    # -- the failure budget

    def fail_here(self, task: Task, host: str, msg: str, cursor: Cursor) -> None:
        """A failure of the task's own text, outside any module."""
        done = Done(failed(msg), "failed", task.origin, str(task.name))
        rescued = cursor.will_rescue()
        self._tell_end(task, host, done, False, "rescued" if rescued else "failed")
        self._fail(task, host, done, cursor, rescued)

    def stop(self, host: str, reason: str, *, for_good: bool = True) -> None:
        """Take a host out of this play, or of the run, although nothing failed on it."""
        state = self._state(host)
        if state.status == "ok":
            state.status = "stopped"
        state.benched = for_good
        self.run.emit("host.stopped", host, reason=reason)
        self.scope.leave(host)

    def _check_budget(self, task: Task) -> None:
        """any_errors_fatal and max_fail_percentage: the other hosts end too; what they have in always still runs."""
        reason = self._over_budget(task)
        if not reason or self.broken:
            return
        self.broken = reason
        for host in self.scope.live:
            self.stop(host, reason)

    def _unwind(self, group: Group, cursors: dict[str, Cursor]) -> bool:
        """The first time that a stopped host comes here: on to what it has in always. True when somebody was moved."""
        here = [host for host in group.members if host not in self._unwound and self._state(host).benched]
        for host in here:
            self._unwound.add(host)
            cursors[host].fail(Failure(group.task, {"msg": self.broken, "failed": True}, rescuable=False))
        return bool(here)

    def _over_budget(self, task: Task) -> str:
        gone = sum(self._state(host).status in ("failed", "unreachable", "lost") for host in self.hosts)
        if not gone:
            return ""
        if task.any_errors_fatal or self.scope.play.any_errors_fatal:
            return "any_errors_fatal: another host failed"
        allowed = percentage_of(self.run, self.scope.play)
        if allowed is not None and 100.0 * gone / len(self.hosts) > allowed:
            return f"max_fail_percentage: {gone} of {len(self.hosts)} hosts failed, more than {allowed:g} %"
        return ""


def _behind(gate: AbstractContextManager[Any], work: Callable[[], Done]) -> Done:
    with gate:
        return work()
