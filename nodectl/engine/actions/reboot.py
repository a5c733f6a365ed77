"""reboot: the node starts anew; proven by another boot id over a new login, every wait bounded."""

from __future__ import annotations

import time
from collections.abc import Callable

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.transport.channel import Lost, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Reboot the node, wait until it is back, and prove that it is another boot",
    params={
        "reboot_timeout": Param("int", "Give up after so many seconds; once for the boot and once for test_command.", default=600),
        "pre_reboot_delay": Param("int", "Seconds that logged-in people are given; shutdown counts in minutes, so less than 60 is none.", default=0),
        "post_reboot_delay": Param("int", "Wait so many seconds before the first try.", default=0),
        "msg": Param("str", "What logged-in people are told.", default="Reboot initiated by nodectl"),
        "test_command": Param("str", "What must succeed on the node before it counts as back.", default="whoami"),
        "boot_time_command": Param("str", "What prints another text after each boot.", default="cat /proc/sys/kernel/random/boot_id"),
        "reboot_command": Param("str", "The program that reboots, with its arguments, instead of shutdown."),
        "search_paths": Param("list", "Where shutdown is looked for.", default=["/sbin", "/bin", "/usr/sbin", "/usr/bin", "/usr/local/sbin"]),
        "connect_timeout": Param("int", "Taken for Ansible's sake; the transport's own bound holds."),
    },
    returns={"rebooted": "whether the node is in another boot", "elapsed": "seconds until it was back"},
    example="- reboot:\n    reboot_timeout: 900\n",
)
# Between two tries; a refused connection costs the node nothing.
PAUSE_S = 1.0
# More tries change nothing here: another key answers, or the inventory is wrong.
HOPELESS = ("host_key", "config")


def run(context: Context, args: Args) -> Outcome:
    """Raises ActionFailed where the node refuses, does not go down, or does not come back in time."""
    if context.node.target.connection == "local":
        raise ActionFailed("reboot of the machine that nodectl runs on would end this run: do it by hand", rebooted=False)
    if context.check:
        return Outcome(changed=True, msg="would reboot", values={"rebooted": True, "elapsed": 0})
    before = _boot(context, args)
    start = time.monotonic()
    _order(context, args)
    context.node.reset()
    context.wait(args["post_reboot_delay"])
    _await(context, args, start, lambda: _another(context, args, before))
    _await(context, args, time.monotonic(), lambda: _answers(context, args))
    elapsed = int(time.monotonic() - start)
    return Outcome(changed=True, msg=f"rebooted in {elapsed} s", values={"rebooted": True, "elapsed": elapsed})


def _boot(context: Context, args: Args) -> str:
    outcome = context.node.step("command", {"cmd": args["boot_time_command"]})
    text = str(outcome.values.get("stdout", "")).strip()
    if outcome.failed or not text:
        raise ActionFailed(f"'{args['boot_time_command']}' does not tell which boot this is, so a reboot could not be proven: {outcome.msg}", rebooted=False)
    return text


def _order(context: Context, args: Args) -> None:
    """Gives the order; the line may break while it is given, which is what was asked for."""
    try:
        outcome = context.node.step("command", _command(context, args))
    except Lost:
        return
    if outcome.failed:
        said = str(outcome.values.get("stderr", "")).strip() or outcome.msg
        raise ActionFailed(f"the node refuses to reboot: {said}", rebooted=False)


def _command(context: Context, args: Args) -> dict[str, object]:
    if args["reboot_command"]:
        return {"cmd": args["reboot_command"]}
    for folder in args["search_paths"]:
        if context.node.step("stat", {"path": f"{folder}/shutdown"}).values.get("stat", {}).get("exists"):
            return {"argv": [f"{folder}/shutdown", "-r", f"+{args['pre_reboot_delay'] // 60}", args["msg"]]}
    places = ", ".join(args["search_paths"])
    raise ActionFailed(f"there is no shutdown in {places}: name its folder in search_paths, or another program in reboot_command", rebooted=False)


def _another(context: Context, args: Args, before: str) -> str:
    """Why the node is not in another boot yet, "" when it is."""
    outcome = context.node.step("command", {"cmd": args["boot_time_command"]})
    now = str(outcome.values.get("stdout", "")).strip()
    if outcome.failed or not now:
        return f"'{args['boot_time_command']}' fails: {outcome.msg}"
    return f"it answers, but is still in the boot from before ({now}): it did not go down" if now == before else ""


def _answers(context: Context, args: Args) -> str:
    outcome = context.node.step("command", {"cmd": args["test_command"]})
    return f"'{args['test_command']}' fails: {outcome.msg}" if outcome.failed else ""


def _await(context: Context, args: Args, start: float, trouble: Callable[[], str]) -> None:
    """Until ``trouble`` has nothing to say. Raises ActionFailed with the last thing it said."""
    last = "no try was made"
    while time.monotonic() - start < args["reboot_timeout"] + args["pre_reboot_delay"]:
        try:
            last = trouble()
        except (Unreachable, Lost) as error:
            last = error.reason
            context.node.reset()
            if isinstance(error, Unreachable) and error.why in HOPELESS:
                raise ActionFailed(f"after the reboot: {last}", rebooted=False) from None
        if not last:
            return
        context.wait(PAUSE_S)
    elapsed = int(time.monotonic() - start)
    raise ActionFailed(f"not back within {args['reboot_timeout']} s: {last}; look at its console", rebooted=False, elapsed=elapsed)
