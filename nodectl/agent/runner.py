"""One step from arguments to outcome: read, diff, write, read again; or one act."""

from __future__ import annotations

import threading
import traceback
from dataclasses import replace
from types import ModuleType
from typing import Any, Dict, List

from nodectl.agent import catalogue, jobs
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change, Outcome
from nodectl.wire.params import validate
from nodectl.wire.step import Step

OUR_BUG = "nodectl itself failed here, this is a bug of ours and not of the node"


def run_step(system: System, step: Step) -> Outcome:
    """The outcome of ``step``; never raises for what the node or the module does wrong."""
    alarm = _alarm(system, step)
    try:
        outcome = _run(system, step)
    except Failed as failed:
        outcome = Outcome(failed=True, msg=failed.msg, values=dict(failed.values))
    except OSError as error:
        outcome = Outcome(failed=True, msg=f"{step.module}: {error.strerror or error}{_where(error)}", values={"exception": traceback.format_exc()})
    except Exception as error:  # noqa: BLE001 -- the edge "module call": one broken module must not end the agent
        msg = f"{OUR_BUG}: module {step.module}: {type(error).__name__}: {error}"
        outcome = Outcome(failed=True, msg=msg, values={"exception": traceback.format_exc()})
    finally:
        if alarm is not None:
            alarm.cancel()
    if not step.diff:
        outcome.diff = []
    return outcome


def _alarm(system: System, step: Step) -> "threading.Timer | None":
    if step.timeout is None:
        return None
    alarm = threading.Timer(step.timeout, system.stopper.stop, [f"{step.module} did not end within the {step.timeout:g} s that the task allows"])
    alarm.daemon = True
    alarm.start()
    return alarm


def _where(error: OSError) -> str:
    return "".join(f": {name}" for name in (error.filename, error.filename2) if name is not None)


def _run(system: System, step: Step) -> Outcome:
    code = catalogue.module(step.module)
    args, problems = validate(catalogue.spec(step.module), step.args)
    if problems:
        raise Failed(f"{step.module}: " + "; ".join(problem.message for problem in problems))
    if step.background:
        # What the job does it does with hands of its own: those of this step end with the step.
        return jobs.start(system, step.timeout, lambda: run_step(System(step.environment), replace(step, background=False)))
    if hasattr(code, "act"):
        outcome: Outcome = code.act(system, args, step.check)
        return outcome
    outcome = _make_so(system, code, args, step)
    outcome.warnings += outcome.values.pop("warnings", [])  # how a state module warns: as a return value
    outcome.facts.update(outcome.values.pop("ansible_facts", {}))
    return outcome


def _make_so(system: System, code: ModuleType, args: Args, step: Step) -> Outcome:
    state: State = code.read(system, args)
    change: Change = code.diff(args, state)
    if change and not step.check:
        code.write(system, args, state, change)
        state = code.read(system, args)
        left: Change = code.diff(args, state)
        if left:
            return Outcome(
                changed=True, failed=True, msg="did not take: " + "; ".join(left.actions) + " (done, and still not so when read again)",
                values=_values(code, args, state, change), diff=_diff(change),
            )
    return Outcome(changed=bool(change), msg="; ".join(change.actions), values=_values(code, args, state, change), diff=_diff(change))


def _values(code: ModuleType, args: Args, state: State, change: Change) -> Dict[str, Any]:
    """The state given to ``values`` is the one read last: after the write, or the only one in check mode."""
    return dict(code.values(args, state, change)) if hasattr(code, "values") else {}


def _diff(change: Change) -> List[Dict[str, str]]:
    if not change:
        return []
    before, after = change.before, change.after
    if before == after:  # nothing to compare: the sentences say what would be done
        before, after = "", "".join(f"{action}\n" for action in change.actions)
    return [{"before": before, "after": after, "before_header": change.before_header, "after_header": change.after_header}]
