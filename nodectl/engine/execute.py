"""One task on one host: when, loop, arguments, the module, what counts as changed and failed, register, notify."""

from __future__ import annotations

import re
import time
from collections import ChainMap
from collections.abc import Mapping
from typing import Any, NamedTuple

from nodectl.diagnostics.model import Mistakes
from nodectl.engine import background
from nodectl.engine.actions.contract import ActionFailed, Context
from nodectl.engine.catalogue import ACTIONS, known
from nodectl.engine.cursor import Position
from nodectl.engine.include import include
from nodectl.engine.loops import BadLoop, items_of
from nodectl.engine.node import RunNode, flag, node_for, place_of
from nodectl.engine.results import Done, Effects, Item, failed, of_loop, shown, skipped
from nodectl.engine.role_arguments import check_arguments
from nodectl.engine.runtime import PlayScope, Runtime, mistakes_text, text_of
from nodectl.engine.targets import BadTarget
from nodectl.lang.secrets import reveal
from nodectl.lang.task import Task
from nodectl.lang.template_error import TemplateError, UndefinedName
from nodectl.lang.undefined import OMIT
from nodectl.lang.unsafe import mark_unsafe
from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Wrong, convert, validate

INCLUDES = frozenset(["include_tasks", "include_role"])
# Ansible's defaults for until.
RETRIES = 3
DELAY = 5.0
# Reading what a program said: name.stdout, name['rc'], name.results (a loop of programs). Whether it was skipped may be asked.
_OUTPUT_OF = r"\b{}\s*(?:\.\s*|\[\s*\\*['\"])(?:stdout|stdout_lines|stderr|stderr_lines|rc|results)\b"
# What a task can do wrong through its own text: shown as its failure, with the text's place.
_FAULTS = (TemplateError, ActionFailed, BadTarget, BadLoop, Wrong, Mistakes)

Variables = ChainMap[str, Any]


class _Arguments(NamedTuple):
    values: dict[str, Any]
    given: dict[str, Any]


class _BadArguments(ActionFailed):
    """The values of a task's parameters are wrong; ``param`` is the one to point at."""

    def __init__(self, msg: str, param: str) -> None:
        super().__init__(msg)
        self.param = param


class TaskRun:
    """Made for one task on one host; ``run()`` may be called in any thread, once."""

    def __init__(self, run: Runtime, scope: PlayScope, host: str, position: Position, handler: bool = False) -> None:
        self._run = run
        self._templar = run.templar.with_lookup(run.lookups(position.task))
        self._scope = scope
        self._host = host
        self._position = position
        self._task: Task = position.task
        self._state = run.state(host)
        self._handler = handler
        self._name = ""
        self._no_log = False
        self._expected = False

    def run(self) -> Done:
        """Never raises for what the task or the node does wrong."""
        start = time.monotonic()
        variables = self._run.variables.of_task(self._scope, self._host, self._position)
        self._name = text_of(self._run, self._task.name, variables)
        done = self._guarded(variables)
        done.seconds = round(time.monotonic() - start, 3)
        return done

    def _guarded(self, variables: Variables) -> Done:
        try:
            self._no_log = flag(self._run, self._task.no_log, variables)
            return self._whole(variables)
        except (Unreachable, Lost) as gone:
            return self._gone(gone, variables)
        except _FAULTS as error:
            return self._done(self._fault(error, variables), variables)

    def _gone(self, gone: Unreachable | Lost, variables: Variables) -> Done:
        result = {"changed": False, "unreachable": True, "msg": gone.reason}
        effects = Effects({self._task.register: result} if self._task.register else {})
        if isinstance(gone, Unreachable) and self._ignores(self._task.ignore_unreachable, result, variables):
            return Done(result, "ignored", self._task.origin, self._name, effects, no_log=self._no_log)
        return Done(result, "failed", self._task.origin, self._name, effects, no_log=self._no_log, gone=gone)

    def _whole(self, variables: Variables) -> Done:
        if self._task.loop is None:
            return self._done(self._one(variables), variables)
        entries = self._entries(variables)
        return self._done(entries if isinstance(entries, Item) else self._loop(entries, variables), variables)

    # -- loops

    def _entries(self, variables: Variables) -> list[Any] | Item:
        """The items, or the end of the task where the list cannot be had: skipped if its own condition says so."""
        try:
            self._refuse_never_made(self._task.loop)
            return items_of(self._task.loop_kind, self._loop_value(variables), self._templar, variables)
        except (UndefinedName, BadLoop):
            if self._false_condition(variables) is not None:
                return self._one(variables)
            raise

    def _loop_value(self, variables: Variables) -> Any:
        """Items of a written list that need something undefined stay templates: their own `when` may leave them out."""
        if not isinstance(self._task.loop, list):
            return self._templar.render(self._task.loop, variables)
        items = []
        for item in self._task.loop:
            try:
                rendered = self._templar.render(item, variables)
            except UndefinedName:
                rendered = item
            if rendered is not OMIT:
                items.append(rendered)
        return items

    def _loop(self, entries: list[Any], variables: Variables) -> Item:
        control = self._task.loop_control
        whole = Item({})
        items, results = [], []
        for index, entry in enumerate(entries):
            if index and control.pause:
                self._run.wait(float(control.pause))
            variables.maps[0].update(self._loop_variables(entries, index))
            one = self._one(variables)
            items.append(one)
            results.append({**one.result, control.loop_var: entry, "ansible_loop_var": control.loop_var})
            self._tell_item(one, entry, variables)
            whole.effects.take(one.effects)
            whole.inclusions += one.inclusions
            whole.strict = whole.strict or one.strict
            whole.origin = one.origin if one.status == "failed" else whole.origin
            if one.strict or self._breaks(one, variables):
                break
        whole.result = of_loop(items, results)
        return whole

    def _breaks(self, one: Item, variables: Variables) -> bool:
        """loop_control.break_when, which sees the item's result."""
        conditions = self._task.loop_control.break_when
        return bool(conditions) and self._templar.holds(conditions, self._with_result(one, variables))

    def _loop_variables(self, entries: list[Any], index: int) -> dict[str, Any]:
        control, length = self._task.loop_control, len(entries)
        found: dict[str, Any] = {control.loop_var: entries[index], "ansible_loop_var": control.loop_var}
        if control.index_var:
            found.update({control.index_var: index, "ansible_index_var": control.index_var})
        if control.extended:
            found["ansible_loop"] = {
                "index": index + 1, "index0": index, "revindex": length - index, "revindex0": length - index - 1, "first": index == 0,
                "last": index == length - 1, "length": length,
                **({"allitems": entries} if control.all_items else {}),
                **({"previtem": entries[index - 1]} if index else {}), **({"nextitem": entries[index + 1]} if index + 1 < length else {}),
            }
        return found

    def _tell_item(self, one: Item, entry: Any, variables: Variables) -> None:
        label = self._task.loop_control.label
        item = text_of(self._run, label, variables) if label is not None else entry
        result = shown(one.result, self._no_log)
        diff = [] if self._no_log else one.result.get("diff", [])
        self._run.emit("task.item", self._host, task=self._name, item="(hidden)" if self._no_log else item, status=one.status, result=result, diff=diff)

    # -- one item

    def _one(self, variables: Variables) -> Item:
        try:
            false = self._false_condition(variables)
            if false is not None:
                return Item(skipped("Conditional result was False", false_condition=false))
            task = self._task
            self._refuse_never_made(task.args, task.vars, task.environment)
            self._refuse_never_made(task.changed_when, task.failed_when, task.until, own=True)
            trouble = check_arguments(self._run, self._scope, self._host, self._position, variables)
            if trouble:
                return Item(failed(trouble), origin=self._task.origin, strict=True)
            return self._attempts(variables)
        except _FAULTS as error:
            return self._fault(error, variables)

    def _false_condition(self, variables: Variables) -> Any:
        """The first condition that does not hold, or None. Those that can be known come first: a false one decides whatever the others are."""
        unknown = [condition for condition in self._task.when if self._never_made(condition)]
        for condition in [*(one for one in self._task.when if one not in unknown), *unknown]:
            self._refuse_never_made(condition)
            try:
                if not self._templar.holds([condition], variables):
                    return condition
            except TemplateError as error:
                raise TemplateError(f"the condition '{condition}' cannot be decided: {error.message}", error.hint) from None
        return None

    def _fault(self, error: Exception, variables: Variables) -> Item:
        if isinstance(error, TemplateError) and self._hangs_on_unknown():
            return self._unknown(error)
        if isinstance(error, _BadArguments):
            return Item(failed(error.msg), origin=self._task.origins.get(f"args.{error.param}", self._task.origin))
        if isinstance(error, ActionFailed):
            return Item(failed(error.msg, **error.values))
        return Item(failed(mistakes_text(error) if isinstance(error, Mistakes) else str(error)))

    def _refuse_never_made(self, *parts: Any, own: bool = False) -> None:
        """Raises TemplateError where ``parts`` read what a command that was skipped would have said: its empty text is no answer."""
        name = self._never_made(*parts, own=own)
        if name:
            raise TemplateError(f"'{name}' comes of a command that check mode does not run")

    def _never_made(self, *parts: Any, own: bool = False) -> str:
        """The name of such a result in ``parts``, or "". ``own``: what this task registers itself is its own answer."""
        if not self._run.options.check or not self._state.unknowable:
            return ""
        text = repr(parts)
        names = (name for name in sorted(self._state.unknowable) if not (own and name == self._task.register))
        return next((name for name in names if re.search(_OUTPUT_OF.format(re.escape(name)), text)), "")

    def _hangs_on_unknown(self) -> bool:
        """In check mode: does this task use a result that was never made?"""
        if not self._run.options.check or not self._state.unknowable:
            return False
        task = self._task
        text = repr((task.when, task.args, task.loop, task.vars, task.scope, task.changed_when, task.failed_when, task.until, task.environment))
        return any(re.search(rf"\b{re.escape(name)}\b", text) for name in self._state.unknowable)

    def _unknown(self, error: Exception) -> Item:
        names = {self._task.register} if self._task.register else set()
        if self._task.module == "set_fact":
            names |= set(self._task.args)
        return Item(skipped("cannot be known in check mode", msg=f"cannot be known in check mode: {error}"), Effects(unknowable=names))

    def _attempts(self, variables: Variables) -> Item:
        """Once, or with until as often as it takes."""
        if not self._task.until and self._task.retries is None:
            return self._attempt(variables)
        tries = int(self._number(self._task.retries, variables, RETRIES)) + 1
        delay = self._number(self._task.delay, variables, DELAY)
        for attempt in range(1, tries + 1):
            item = self._attempt(variables)
            if tries > 1:
                item.result["attempts"] = attempt
            if item.status == "skipped" or self._satisfied(item, variables):
                return item
            if attempt < tries:
                self._run.emit("progress", self._host, stage=self._name, text=f"try {attempt} of {tries} did not do; next in {delay:g} s")
                self._run.wait(delay)
        if tries > 1:
            item.result["attempts"] = tries - 1  # as Ansible counts them when all were in vain: roles compare it with their retries
        item.result.update(failed=True, msg=item.result.get("msg") or f"still not so after {tries} tries")
        return item

    def _satisfied(self, item: Item, variables: Variables) -> bool:
        if not self._task.until:
            return item.status != "failed"
        return self._templar.holds(self._task.until, self._with_result(item, variables))

    def _number(self, value: Any, variables: Variables, otherwise: float) -> float:
        rendered = self._templar.render(value, variables)
        return otherwise if rendered is None else max(0.0, float(convert(Param("float"), rendered)))

    def _attempt(self, variables: Variables) -> Item:
        arguments = self._arguments(variables)
        node = node_for(self._run, self._scope, self._task, variables, self._host)
        if self._task.module in INCLUDES:
            return include(self._run, self._scope, self._host, self._position, arguments.values, variables)
        self._expect_handlers(node, variables)
        outcome = self._perform(node, arguments, variables)
        item = Item(mark_unsafe(outcome.to_result()))
        item.effects = self._effects(outcome, item.result.get("ansible_facts", {}))
        if node.host != self._host and flag(self._run, self._task.delegate_facts, variables):
            item.effects = Effects(elsewhere={node.host: item.effects})
        variables.maps[0].update(item.effects.vars)
        for warning in outcome.warnings:
            self._run.emit("warning", self._host, text=warning, origin=str(self._task.origin))
        if not outcome.skipped:
            self._judge(item, variables)
        elif node.settings.check and self._task.register:
            item.effects.unknowable.add(self._task.register)
        return item

    def _arguments(self, variables: Variables) -> _Arguments:
        rendered = {name: value for name, value in self._rendered_args(variables).items() if value is not OMIT}
        spec = known(self._task.module)
        if spec is None:
            raise ActionFailed(f"there is no module '{self._task.module}'")
        self._run.masker.remember_secrets(rendered)
        plain = reveal(rendered)
        values, problems = validate(spec, plain)
        if problems:
            raise _BadArguments(f"{self._task.module}: " + "; ".join(problem.message for problem in problems), problems[0].param)
        for name, param in spec.params.items():
            if param.secret:
                self._run.masker.remember(values[name])
        canonical = {spec.canonical(name) or name: name for name, value in plain.items() if value is not None}
        return _Arguments(values, {key: values[key] for key in canonical})

    def _rendered_args(self, variables: Variables) -> dict[str, Any]:
        """Names of set_fact may be templates too."""
        render = self._templar.render
        return {str(render(name, variables)): render(value, variables) for name, value in self._task.args.items()}

    def _perform(self, node: RunNode, arguments: _Arguments, variables: Variables) -> Outcome:
        try:
            action = ACTIONS.get(self._task.module)
            if action is None:
                return self._on_node(self._elsewhere_alive(node), arguments.given, variables)
            if self._task.seconds and not node.settings.check:
                raise ActionFailed(f"async cannot be used with {self._task.module}: half of it runs on the controller")
            context = Context(
                self._host, self._task, variables, self._templar, self._elsewhere_alive(node), node.settings.check, node.settings.diff,
                self._run.playbook_dir, self._run.loader.vars, self._run.wait, self._run.grow, frozenset(arguments.given), self._run.options.vault,
            )
            return action.run(context, arguments.values)
        except (Unreachable, Lost) as gone:
            if node.host == self._host:
                raise
            word = "unreachable" if isinstance(gone, Unreachable) else "lost"
            raise ActionFailed(f"{node.host} {'is' if word == 'unreachable' else 'was'} {word} while running for {self._host}: {gone.reason}") from None

    def _on_node(self, node: RunNode, args: Mapping[str, Any], variables: Variables) -> Outcome:
        """Check mode predicts what a job would do as it does for any other task."""
        task = self._task
        seconds = self._number(task.seconds, variables, 0.0)
        if not seconds or node.settings.check:
            return node.step(task.module, args)
        return background.perform(self._run, node, task.module, args, seconds, self._number(task.poll, variables, background.POLL))

    def _elsewhere_alive(self, node: RunNode) -> RunNode:
        """Nothing is delegated to a node that is already known to be gone. Raises ActionFailed."""
        other = self._run.states.get(node.host)
        if node.host != self._host and other is not None and other.status in ("failed", "unreachable", "lost"):
            raise ActionFailed(f"{node.host} is {other.status} since an earlier task, so nothing is run there for {self._host}")
        return node

    def _effects(self, outcome: Outcome, facts: dict[str, Any]) -> Effects:
        """``facts`` are those of the outcome, never to be templated; variables from a file of the user's may hold templates."""
        if not facts or self._task.module == "debug":
            return Effects()
        if self._task.module == "include_vars":
            return Effects(included=dict(outcome.facts))
        if self._task.module == "set_fact":
            cacheable = flag(self._run, self._task.args.get("cacheable"), {})
            return Effects(vars=dict(facts), facts=dict(facts) if cacheable else {})
        return Effects(facts=dict(facts))

    def _with_result(self, item: Item, variables: Variables) -> Mapping[str, Any]:
        return variables.new_child({self._task.register: item.result, **item.effects.facts} if self._task.register else dict(item.effects.facts))

    def _judge(self, item: Item, variables: Variables) -> None:
        """changed_when and failed_when have the last word."""
        seen = self._with_result(item, variables)
        holds = self._templar.holds
        try:
            if self._task.changed_when is not None:
                item.result["changed"] = holds(self._task.changed_when, seen)
            if self._task.failed_when is not None:
                item.result["failed"] = item.result["failed_when_result"] = holds(self._task.failed_when, seen)
        except TemplateError as error:
            if self._hangs_on_unknown():
                raise
            item.result.update(failed=True, msg=str(error))  # what the module did is done: its values stay

    # -- the end

    def _done(self, item: Item, variables: Variables) -> Done:
        task = self._task
        notified: list[str] = []
        if item.status == "changed" and task.notify:
            notified, missing = self._handlers(variables)
            if missing:
                item.result.update(failed=True, msg=f"notifies the handler '{missing[0]}', which this play does not have")
        if task.register:
            item.effects.vars[task.register] = item.result
        status = item.status
        if status == "failed" and not item.strict and self._ignores(task.ignore_errors, item.result, variables):
            return self._close(item, Done(item.result, "ignored", item.origin or task.origin))
        return self._close(item, Done(item.result, status, item.origin or task.origin, notified=notified if status == "changed" else []))

    def _ignores(self, keyword: Any, result: dict[str, Any], variables: Variables) -> bool:
        """ignore_errors or ignore_unreachable; one that cannot be read ignores nothing, and is told with the failure."""
        try:
            return flag(self._run, keyword, variables)
        except (TemplateError, Wrong) as error:
            result["msg"] = f"{result.get('msg', 'failed')}; and whether to ignore it cannot be told: {error}"
            return False

    def _close(self, item: Item, done: Done) -> Done:
        done.name, done.effects, done.no_log = self._name, item.effects, self._no_log
        done.inclusions = item.inclusions
        done.diff = [] if self._no_log else _diffs(item.result)
        return done

    def _expect_handlers(self, node: RunNode, variables: Variables) -> None:
        """Before anything is sent: what this task notifies is owed from now on, should the run not live to hear its answer."""
        if not self._task.notify or self._expected or node.settings.check:
            return
        self._expected = True
        try:
            keys, _ = self._handlers(variables)
        except TemplateError:  # the name hangs on this task's own result
            return
        self._run.owed.expect(place_of(self._run, self._host), self._host, keys)

    def _handlers(self, variables: Variables) -> tuple[list[str], list[str]]:
        """(keys of the handlers that are notified, names that mean none)."""
        render = self._templar.render
        wanted: list[str] = []
        for name in self._task.notify:
            value = render(name, variables)
            wanted += [str(one) for one in (value if isinstance(value, list) else [value])]
        plain = self._run.variables.of_play(self._scope, self._host)
        found = {name: self._scope.handlers.resolve(name, lambda text: text_of(self._run, text, plain)) for name in wanted}
        return [key for keys in found.values() for key in keys], [name for name, keys in found.items() if not keys]


def _diffs(result: Mapping[str, Any]) -> list[dict[str, str]]:
    own = result.get("diff") or []
    return list(own) + [part for one in result.get("results", ()) if isinstance(one, Mapping) for part in one.get("diff") or ()]
