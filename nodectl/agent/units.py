"""systemd units: what they are now, what must be done, and proof that it took."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Sequence, Tuple

from nodectl.agent.contract import Args, Failed
from nodectl.agent.processes import Completed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome

_SUFFIXES = (".service", ".socket", ".timer", ".mount", ".automount", ".target", ".path", ".slice", ".scope", ".swap", ".device")
_PROPERTIES = (
    "LoadState", "ActiveState", "SubState", "UnitFileState", "Type", "Result", "NeedDaemonReload", "CanReload", "MainPID", "ExecMainStatus", "FragmentPath",
)
QUERY_SECONDS = 30.0
# systemd gives a unit 90 s to start and 90 s to stop by default; a restart is both. A flush of a write cache may take longer.
JOB_SECONDS = 600.0
# How long an activating unit (a slow notify service, an auto-restart loop) may take to become active after the job has ended.
SETTLE_SECONDS = 30.0
# A simple service that dies at once is "active" for an instant: look a second time after this.
SECOND_LOOK = 0.4
_RUNNING = ("active", "reloading", "refreshing")
# What systemctl says while systemd executes itself anew, as packages and a second run have it do: nothing was done, and it is back in a second.
_AWAY = ("disconnected from message bus without replying", "Connection reset by peer", "Transport endpoint is not connected", "Remote peer disconnected")
AWAY_TRIES = 5
AWAY_PAUSE = 1.0
# States of a unit file in which there is nothing to enable or disable.
_FIXED = ("static", "alias", "indirect", "generated", "transient")


# As Ansible returns them: a unit that was restarted or reloaded is a started one.
_AFTERWARDS = {"restarted": "started", "reloaded": "started"}


def full_name(name: str) -> str:
    return name if name.endswith(_SUFFIXES) else f"{name}.service"


def systemctl(system: System, words: Sequence[str], seconds: float) -> Completed:
    """One systemctl, asked again while systemd is away for a moment: every order that is given here may be given twice."""
    for _ in range(AWAY_TRIES):
        done = system.run(["systemctl", *words], timeout=seconds)
        if done.rc == 0 or not any(text in done.stderr for text in _AWAY):
            break
        system.sleep(AWAY_PAUSE)
    return done


def show(system: System, unit: str) -> Dict[str, str]:
    """The unit's properties; LoadState is "not-found" where there is none."""
    done = systemctl(system, ["show", unit, f"--property={','.join(_PROPERTIES)}"], QUERY_SECONDS)
    if done.rc != 0 or not done.stdout.strip():
        raise Failed(f"systemctl show {unit} failed: {done.stderr.strip() or 'no answer'} (is systemd the first process of this node?)", rc=done.rc)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def _plan(args: Args, unit: str, now: Dict[str, str]) -> Tuple[List[Tuple[List[str], str]], List[str]]:
    """([(systemctl words, sentence)], warnings), in the order in which they are done."""
    plan: List[Tuple[List[str], str]] = []
    warnings: List[str] = []
    file_state = now.get("UnitFileState", "")
    if args.get("masked") is not None and args["masked"] != _is_masked(now):
        word = "mask" if args["masked"] else "unmask"
        plan.append(([word, unit], f"{word} {unit}"))
    if args["enabled"] is not None:
        word = "enable" if args["enabled"] else "disable"
        if file_state in _FIXED:
            if not args["enabled"]:
                warnings.append(f"{unit} is {file_state}: it has nothing to disable; mask it to keep it from starting")
        elif (file_state == "enabled") != args["enabled"]:
            plan.append(([word, *(["--force"] if args.get("force") else []), unit], f"{word} {unit}"))
    word = _order(args["state"], now["ActiveState"])
    if word:
        plan.append(([word, *(["--no-block"] if args.get("no_block") else []), unit], f"{word} {unit}"))
    return plan, warnings


def _is_masked(now: Dict[str, str]) -> bool:
    return now["LoadState"] == "masked" or now.get("UnitFileState", "").startswith("masked")


def _order(state: str, active: str) -> str:
    """systemctl's verb for a wish, "" when nothing is to be done."""
    runs = active in _RUNNING
    if state == "started":
        return "" if runs else "start"
    if state == "stopped":
        return "stop" if runs or active in ("activating", "deactivating") else ""
    if state == "reloaded":
        return "reload" if runs else "start"
    return "restart" if state == "restarted" else ""


def act(system: System, args: Args, check: bool) -> Outcome:
    """The whole service module. Success is what systemd shows afterwards, not the exit code of systemctl."""
    reloaded = _daemon(system, args, check)
    if not args["name"]:
        return Outcome(msg=reloaded, values={"name": ""})
    unit = full_name(args["name"])
    now = show(system, unit)
    if now["LoadState"] == "not-found" and not _only_masked(args):
        return _missing(args, unit, check)
    plan, warnings = _plan(args, unit, now)
    values: Dict[str, Any] = {"name": args["name"], "status": now, "state": _AFTERWARDS.get(args["state"], args["state"]), "enabled": args["enabled"]}
    text = "; ".join(sentence for _, sentence in plan)
    diff = [{"before": "", "after": "".join(f"{s}\n" for _, s in plan), "before_header": unit, "after_header": unit}] if plan else []
    if plan and not check:
        if now["LoadState"] == "masked" and args.get("masked") is not False and args["state"] in ("started", "restarted", "reloaded"):
            raise Failed(f"{unit} is masked, so it cannot be started: add masked: false to unmask it", status=now)
        for words, sentence in plan:
            _do(system, unit, words, sentence)
        values["status"] = _prove(system, args, unit)
    return Outcome(changed=bool(plan), msg=text, values=values, warnings=warnings, diff=diff)


def _daemon(system: System, args: Args, check: bool) -> str:
    """daemon-reload and daemon-reexec; they are no change, as in Ansible."""
    words = [word for key, word in (("daemon_reload", "daemon-reload"), ("daemon_reexec", "daemon-reexec")) if args.get(key)]
    if words and not os.path.isdir("/run/systemd/system"):
        raise Failed("systemd does not run on this node: there is nothing to reload")
    for word in words if not check else []:
        _do(system, "", [word], word)
    return ", ".join(words)


def _only_masked(args: Args) -> bool:
    """A unit may be masked before there is one, so that its package cannot start it."""
    return args.get("masked") is True and args["state"] is None and args["enabled"] is None


def _missing(args: Args, unit: str, check: bool) -> Outcome:
    """No such unit: in check mode an earlier step may be what makes it."""
    if not check:
        raise Failed(f"there is no unit {unit} on this node; `systemctl list-unit-files` lists those that there are")
    would = args["state"] in ("started", "restarted", "reloaded") or args["enabled"] is True or args.get("masked") is True
    return Outcome(changed=would, msg=f"there is no unit {unit} yet; an earlier step would have to make it", values={"name": args["name"], "status": {}})


def _do(system: System, unit: str, words: List[str], sentence: str) -> None:
    done = systemctl(system, words, JOB_SECONDS)
    if done.rc != 0:
        reason = done.stderr.strip() or f"exit code {done.rc}"
        raise Failed(f"{sentence}: {reason}{last_lines(system, unit)}", rc=done.rc, stderr=done.stderr, stdout=done.stdout)


def last_lines(system: System, unit: str, count: int = 12) -> str:
    """The unit's last journal lines, ready to be put behind a message; "" where there are none."""
    if not unit or system.which("journalctl") is None:
        return ""
    try:
        done = system.run(["journalctl", "--no-pager", "--quiet", "-o", "cat", "-n", str(count), "-u", unit], timeout=10.0)
    except Failed:
        return ""
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return "\n  last lines of its journal:\n    " + "\n    ".join(lines) if lines else ""


def _prove(system: System, args: Args, unit: str) -> Dict[str, str]:
    """Look until the unit is as wished, bounded; raises Failed with its state and its last words."""
    end = time.monotonic() + SETTLE_SECONDS
    looked = 0
    while True:
        now = show(system, unit)
        wrong = _wrong(args, now)
        looked = looked + 1 if not wrong else 0
        if not wrong and (looked > 1 or args["state"] in (None, "stopped") or now.get("Type", "") in ("oneshot", "notify", "") or args.get("no_block")):
            return now
        dead = now["ActiveState"] == "failed" and now["SubState"] == "failed"
        if wrong and (dead or time.monotonic() > end or now["ActiveState"] not in ("activating", "deactivating", "failed")):
            raise Failed(f"{unit}: {wrong}{last_lines(system, unit)}", status=now)
        system.sleep(SECOND_LOOK)


def _wrong(args: Args, now: Dict[str, str]) -> str:
    """What is not as wished, as a sentence; "" when all is."""
    # Timers, sockets, targets have no type; targets not even a result.
    active, oneshot = now["ActiveState"], now.get("Type") == "oneshot" and now.get("Result") == "success"
    up = active in _RUNNING or (oneshot and active == "inactive") or args.get("no_block")
    if args["state"] in ("started", "restarted", "reloaded") and not up:
        told = "".join(f", {word} {now[key]}" for key, word in (("Result", "result"), ("ExecMainStatus", "exit status")) if key in now)
        return f"is {active} ({now['SubState']}{told}) after {args['state']} was asked for"
    if args["state"] == "stopped" and active not in ("inactive", "failed") and not args.get("no_block"):
        return f"is still {active} ({now['SubState']}) after it was stopped"
    if args.get("masked") is not None and args["masked"] != _is_masked(now):
        return f"is {'masked' if _is_masked(now) else 'not masked'} although masked is {str(args['masked']).lower()}"
    file_state = now.get("UnitFileState", "")
    if args["enabled"] is not None and file_state not in _FIXED and (file_state == "enabled") != args["enabled"]:
        return f"its unit file is {file_state or 'in no state'} although enabled is {str(args['enabled']).lower()}"
    return ""
