"""One node as a task sees it: where it is, as whom, and one module at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from nodectl.engine.runtime import PlayScope, Runtime
from nodectl.engine.targets import BadTarget, become_of, needed_become, target_of
from nodectl.lang.secrets import reveal
from nodectl.lang.task import Become, Reach, Task
from nodectl.lang.template_error import TemplateError
from nodectl.transport.channel import BecomeTarget, Channel, Lost, Ran, Target
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Wrong, convert
from nodectl.wire.step import Step

# The agent ends a step itself at its timeout, which takes it up to 10 s (TERM, then KILL); only an agent that is stuck needs longer.
GRACE = 30.0


@dataclass(frozen=True)
class StepSettings:
    """The keywords of a task that travel with each of its steps. ``timeout`` in seconds."""

    check: bool
    diff: bool
    timeout: float
    environment: Mapping[str, str]


class RunNode:
    """Implements ``actions.contract.Node``."""

    def __init__(self, run: Runtime, host: str, target: Target, become: BecomeTarget | None, settings: StepSettings) -> None:
        self.host = host
        self.settings = settings
        self._run = run
        self._target = target
        self._become = needed_become(target, become)

    @property
    def target(self) -> Target:
        return self._target

    def step(self, module: str, args: Mapping[str, Any], blobs: Mapping[str, BinaryIO] | None = None) -> Outcome:
        """Raises Unreachable or Lost. Secrets become plain here and nowhere earlier."""
        channel = self._run.connections.channel(self._target, self._become)
        return self._send(channel, self._order(module, args, blobs, self.settings.check), blobs)

    @property
    def become(self) -> BecomeTarget | None:
        return self._become

    def raw(self, command: str, executable: str) -> Ran:
        return self._run.connections.raw(self._target, self._become, str(reveal(command)), executable, self.settings.timeout)

    def launch(self, module: str, args: Mapping[str, Any], seconds: float) -> Outcome:
        """The module as a job that goes on without the line, ended after ``seconds``. Raises Unreachable or Lost."""
        channel = self._run.connections.channel(self._target, self._become)
        return self._send(channel, replace(self._order(module, args, None, False), timeout=seconds, background=True), None)

    def login(self) -> dict[str, str]:
        """The agent passes SSH_CONNECTION on; asking for it changes nothing, so it is asked in check mode too."""
        channel = self._run.connections.channel(self._target, None)
        user = str(channel.facts.get("user") or self._target.user)
        outcome = self._send(channel, self._order("command", {"argv": ["printenv", "SSH_CONNECTION"]}, None, False), None)
        return {"user": user, "SSH_CONNECTION": str(outcome.values.get("stdout", "")).strip()}

    def _order(self, module: str, args: Mapping[str, Any], blobs: Mapping[str, BinaryIO] | None, check: bool) -> Step:
        number, settings = self._run.next_id(), self.settings
        names = {name: f"{number}-{name}" for name in blobs or {}}
        return Step(number, module, reveal(args), check, settings.diff, settings.timeout, dict(settings.environment), names)

    def _send(self, channel: Channel, step: Step, blobs: Mapping[str, BinaryIO] | None) -> Outcome:
        pending = channel.submit(step, blobs)
        try:
            return pending.result(self.settings.timeout + GRACE)
        except TimeoutError:
            self._run.connections.reset(self.host)
            raise Lost(f"{step.module} did not end within {self.settings.timeout:g} s, and the agent did not end it either") from None

    def fresh(self) -> Channel:
        return self._run.connections.fresh(self._target, self._become)

    def reset(self) -> None:
        self._run.connections.reset(self.host)


def node_for(run: Runtime, scope: PlayScope, task: Task, variables: Mapping[str, Any], host: str) -> RunNode:
    """The node that ``task`` works on: ``host`` itself, or the one it delegates to. Raises TemplateError, BadTarget, Wrong."""
    delegate = run.templar.render(task.delegate_to, variables) if task.delegate_to is not None else None
    place = str(delegate) if delegate else host
    own = variables if place == host else run.variables.of_host(place)
    connection = run.variables.lazily(own)
    reach = Reach(*(run.templar.render(part, variables) for part in (task.reach.connection, task.reach.user, task.reach.port)))
    target = target_of(place, connection, reach=reach, remote_user=run.options.remote_user, private_key=run.options.private_key)
    become = become_of(_rendered(run, task.become, variables), _rendered(run, scope.play.become, variables), connection, run.options)
    run.masker.remember([password for password in (target.password, become.password if become else None) if password])
    return RunNode(run, place, target, become, _settings(run, scope, task, variables))


def place_of(run: Runtime, host: str) -> str:
    """Which node ``host`` is, whatever an inventory calls it: address and port, or its name where the variables do not tell."""
    try:
        target = target_of(host, run.variables.lazily(run.variables.of_host(host)))
    except (BadTarget, TemplateError):
        return host
    return "local" if target.connection == "local" else f"{target.address}:{target.port}"


def _rendered(run: Runtime, become: Become, variables: Mapping[str, Any]) -> Become:
    return Become(*(run.templar.render(part, variables) for part in (become.enabled, become.user, become.method, become.flags)))


def _settings(run: Runtime, scope: PlayScope, task: Task, variables: Mapping[str, Any]) -> StepSettings:
    timeout = run.templar.render(task.timeout, variables)
    return StepSettings(
        check=flag(run, task.check_mode, variables, run.options.check),
        diff=flag(run, task.diff, variables, run.options.diff),
        timeout=float(convert(Param("float"), timeout)) if timeout else run.options.step_timeout,
        environment=_environment(run, scope, task, variables),
    )


def _environment(run: Runtime, scope: PlayScope, task: Task, variables: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for layer in (*scope.play.environment, *task.environment):
        given = run.templar.render(layer, variables)
        if given and not isinstance(given, Mapping):
            raise Wrong(f"environment wants a mapping of names to texts, not {given!r}")
        found.update({str(name): str(reveal(value)) for name, value in (given or {}).items()})
    return found


def flag(run: Runtime, value: Any, variables: Mapping[str, Any], otherwise: bool = False) -> bool:
    """A keyword that is true or false, perhaps as a template; None means ``otherwise``. Raises Wrong, TemplateError."""
    rendered = run.templar.render(value, variables)
    return otherwise if rendered is None or rendered == "" else bool(convert(Param("bool"), rendered))
