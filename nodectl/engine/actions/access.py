"""sshd_dropin, nftables_table, access_files: the node applies the change and arms its own revert; a fresh login proves it; only then it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nodectl.agent.modules import access_files, nftables_table, sshd_dropin
from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Spec


class Guarded(NamedTuple):
    """A module whose change waits on the node for a fresh login; ``tells`` is what it needs to know of the login of this run."""

    module: str
    guard: str
    spec: Spec
    tells: Callable[[Context], Mapping[str, str]]

    def run(self, context: Context, args: Args) -> Outcome:
        """Raises ActionFailed where no fresh login was possible: what was there is then restored, here or by the node itself."""
        sent = {name: args[name] for name in context.given if args[name] is not None}
        outcome = context.node.step(self.module, {**self.tells(context), **sent})
        if not outcome.values.get("pending") or context.check:
            return outcome
        if outcome.failed:
            raise ActionFailed(f"{outcome.msg}; {self._take_back(context, args)}")
        trouble = _no_login(context)
        if trouble:
            raise ActionFailed(f"no fresh login with the new settings: {trouble}; {self._take_back(context, args)}")
        kept = context.node.step("access_confirm", {"guard": self.guard, "keep": True})
        if kept.failed:
            raise ActionFailed(f"a fresh login worked, but the node did not keep the settings: {kept.msg}", changed=False)
        outcome.values["pending"] = False
        outcome.msg = f"{outcome.msg}; {kept.msg}" if outcome.msg else kept.msg
        return outcome

    def _take_back(self, context: Context, args: Args) -> str:
        """Take the change back over the line that is still open; says how far that came."""
        by_itself = f"the node restores the old ones within {args['revert_after']} s"
        try:
            back = context.node.step("access_confirm", {"guard": self.guard, "keep": False})
        except (Unreachable, Lost):
            return by_itself
        if back.failed:
            return f"{by_itself} ({back.msg})"
        still = _no_login(context)
        return f"the old ones are back, but a fresh login fails with them too: {still}" if still else "the old ones are back, and a fresh login works"


def _login(context: Context) -> dict[str, str]:
    """The account of this run, where it comes from and where it arrives, as the node's sshd sees them: Match rules may ask for each."""
    seen = context.node.login()
    line = seen.get("SSH_CONNECTION", "").split()
    places = {"login_address": line[0], "login_server": " ".join(line[2:])} if len(line) == 4 else {}
    return {"login_user": seen["user"], **places}


def _no_login(context: Context) -> str:
    """Why a new login, and becoming who the task works as, fails; "" when it works."""
    try:
        context.node.fresh().close()
    except (Unreachable, Lost) as error:
        return error.reason
    return ""


SSHD = Guarded("sshd_dropin", "sshd", sshd_dropin.SPEC, _login)
FIREWALL = Guarded("nftables_table", nftables_table.GUARD, nftables_table.SPEC, lambda _context: {})
FILES = Guarded("access_files", access_files.GUARD, access_files.SPEC, lambda _context: {})
