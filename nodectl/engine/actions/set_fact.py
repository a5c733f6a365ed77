"""set_fact: give a host variables that last for the run."""

from __future__ import annotations

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.lang.fields import is_variable_name
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Set variables of the host for the rest of the run",
    params={"cacheable": Param("bool", "Keep them as facts as well: lower precedence, seen in ansible_facts.", default=False)},
    open=True,
    returns={"ansible_facts": "the variables that were set"},
    example="- set_fact:\n    fabric: \"{{ 'ib' if hcas else 'tcp' }}\"\n",
)


def run(context: Context, args: Args) -> Outcome:
    facts = {name: value for name, value in args.items() if name != "cacheable"}
    if not facts:
        raise ActionFailed("set_fact wants at least one name: value")
    wrong = [name for name in facts if not is_variable_name(name)]
    if wrong:
        raise ActionFailed(f"{wrong[0]!r} cannot be the name of a variable: letters, digits and _, not starting with a digit, no word of the language")
    return Outcome(facts=facts)
