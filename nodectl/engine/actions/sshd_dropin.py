"""sshd_dropin: the node applies the settings and arms its own revert; a fresh login proves them; only then they are kept."""

from __future__ import annotations

from nodectl.agent.modules import sshd_dropin as on_node
from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.outcome import Outcome

SPEC = on_node.SPEC


def run(context: Context, args: Args) -> Outcome:
    """Raises ActionFailed where no fresh login was possible: the old settings are then restored, here or by the node itself."""
    sent = {name: args[name] for name in context.given if args[name]}
    outcome = context.node.step("sshd_dropin", {**_login(context), **sent})
    if outcome.failed or not outcome.values.get("pending"):
        return outcome
    trouble = _no_login(context)
    if trouble:
        _take_back(context, args, trouble)
    kept = context.node.step("sshd_confirm", {"keep": True})
    if kept.failed:
        raise ActionFailed(f"a fresh login worked, but the node did not keep the settings: {kept.msg}", changed=False)
    outcome.values["pending"] = False
    outcome.msg = f"{outcome.msg}; {kept.msg}" if outcome.msg else kept.msg
    return outcome


def _login(context: Context) -> dict[str, str]:
    """The account of this run and the address it comes from, as the node's sshd sees them: Match rules may ask for both."""
    seen = context.node.login()
    client = seen.get("SSH_CONNECTION", "").split()
    return {"login_user": seen["user"], **({"login_address": client[0]} if client else {})}


def _no_login(context: Context) -> str:
    """Why a new login fails, or "" when it works."""
    try:
        context.node.fresh().close()
    except (Unreachable, Lost) as error:
        return error.reason
    return ""


def _take_back(context: Context, args: Args, trouble: str) -> None:
    try:
        back = context.node.step("sshd_confirm", {"keep": False})
    except (Unreachable, Lost):
        raise ActionFailed(f"no fresh login with the new settings: {trouble}; the node restores the old ones within {args['revert_after']} s") from None
    state = "the old ones are back" if not back.failed else f"the node restores the old ones within {args['revert_after']} s ({back.msg})"
    raise ActionFailed(f"no fresh login with the new settings: {trouble}; {state}")
