"""debug: show a message or the value of an expression."""

from __future__ import annotations

from nodectl.engine.actions.contract import Args, Context
from nodectl.lang.template_error import UndefinedName
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Show a message or the value of an expression",
    params={
        "msg": Param("raw", "What to show.", default="Hello world!"),
        "var": Param("raw", "An expression, without braces, whose value is shown."),
        "verbosity": Param("int", "Show only from this level of -v on.", default=0),
    },
    mutually_exclusive=(("msg", "var"),),
    example="- debug:\n    msg: \"{{ ansible_hostname }} is ready\"\n",
)


def run(context: Context, args: Args) -> Outcome:
    """A name that does not exist is shown as such and is no failure, as in Ansible."""
    if args["verbosity"] > 0:
        return Outcome(skipped=True, msg="Verbosity threshold not met.")
    expression = args["var"]
    if expression is None:
        # A message that is null is shown as such; anywhere else null counts as not given.
        null = "msg" not in context.given and context.templar.render(context.task.args.get("msg", ""), context.variables) is None
        return Outcome(values={"msg": None if null else args["msg"]})
    if not isinstance(expression, str):
        return Outcome(values={str(expression): expression})
    try:
        value = context.templar.evaluate(expression, context.variables)
    except UndefinedName as error:
        value = f"VARIABLE IS NOT DEFINED!: {error}"
    return Outcome(values={expression: value})
