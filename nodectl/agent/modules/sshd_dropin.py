"""sshd_dropin: one file of sshd settings, staged, validated, applied, and taken back by the node itself unless confirmed.

Order of ``write``: a staged copy of the whole configuration passes ``sshd -t``; its effective values are the wished ones;
the operator's own login would still be let in; a timer that restores the old file is armed; only then the file is replaced
and sshd reloaded. The controller proves a fresh login and sends ``sshd_confirm``; without that the timer fires.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import tempfile
from typing import List

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.sshd_config import effective, includes, lockout, mismatches, render, restage
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

MAIN = "/etc/ssh/sshd_config"
UNIT = "nodectl-sshd-revert"
# On a file system that is gone at the next boot: a revert that never fired must not fire weeks later.
HELD = "/run/nodectl-sshd"

SPEC = Spec(
    summary="sshd settings in a drop-in that sorts first; validated before, proven by a fresh login after, reverted by the node itself otherwise",
    params={
        "path": Param("path", "The drop-in; it must sort before every other file there.", default="/etc/ssh/sshd_config.d/00-nodectl.conf"),
        "settings": Param("dict", "sshd keywords and their values; the effective value (sshd -T) must come out as written here.", required=True),
        "revert_after": Param("int", "Seconds until the node restores the old file unless the login was confirmed.", default=60),
        "login_user": Param("str", "The account that must still be able to log in; nodectl fills in the account of this run.", default=""),
        "login_address": Param("str", "The address that account comes from; nodectl fills it in.", default=""),
    },
    returns={
        "effective": "The values sshd uses now, for the keywords in settings.",
        "pending": "true while the node waits for sshd_confirm before it restores the old file.",
    },
    example="- sshd_dropin:\n    settings:\n      PasswordAuthentication: 'no'\n      MaxAuthTries: '3'\n",
)


def read(system: System, args: Args) -> State:
    """The drop-in's text and sshd's effective values for the operator's login."""
    old = system.read(args["path"])
    main = system.read(MAIN)
    if main is None:
        raise Failed(f"{MAIN} is not there: is openssh-server installed?")
    return {
        "text": None if old is None else old.decode("utf-8", "replace"),
        "includes": includes(main.decode("utf-8", "replace"), os.path.dirname(args["path"])),
        "effective": _effective(system, MAIN, args),
        "first": _sorts_first(args["path"]),
        "pending": os.path.exists(os.path.join(HELD, "revert")),
    }


def diff(args: Args, state: State) -> Change:
    wished = render(args["settings"])
    if not state["includes"]:
        raise Failed(f"{MAIN} does not include {os.path.dirname(args['path'])}/*.conf: a drop-in there would have no effect")
    if state["first"]:
        raise Failed(f"{state['first']} sorts before {args['path']} and would win: choose a name that sorts first")
    actions: List[str] = []
    if state["text"] != wished:
        actions.append(f"write {args['path']}, reload sshd, prove a fresh login")
    elif mismatches(args["settings"], state["effective"]):
        wrong = "; ".join(mismatches(args["settings"], state["effective"]))
        raise Failed(f"written, but not effective: {wrong}; look for these keywords before the Include line of {MAIN}")
    return Change(actions, before=state["text"] or "", after=wished if actions else state["text"] or "", before_header=args["path"], after_header=args["path"])


def write(system: System, args: Args, state: State, change: Change) -> None:
    wished = render(args["settings"])
    _prove_staged(system, args, wished)
    _arm(system, args, state)
    system.write_atomic(args["path"], wished.encode(), mode=0o600, uid=0, gid=0)
    _reload(system)


def values(args: Args, state: State, change: Change) -> Args:
    return {"effective": {key: state["effective"].get(key.lower(), "") for key in args["settings"]}, "pending": state["pending"]}


def _sorts_first(path: str) -> str:
    """The name of a drop-in that sshd reads before ``path``; "" when there is none."""
    directory = os.path.dirname(path)
    names = sorted(n for n in os.listdir(directory) if n.endswith(".conf")) if os.path.isdir(directory) else []
    return os.path.join(directory, names[0]) if names and names[0] < os.path.basename(path) else ""


def _effective(system: System, config: str, args: Args) -> State:
    user, address = args["login_user"] or "root", args["login_address"] or "127.0.0.1"
    done = system.run(["sshd", "-T", "-f", config, "-C", f"user={user},host={address},addr={address}"], timeout=20.0)
    if done.rc != 0:
        raise Failed(f"sshd refuses its configuration: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)
    return dict(effective(done.stdout))


def _prove_staged(system: System, args: Args, wished: str) -> None:
    """Nothing is written to the live configuration until a copy of it with the new file in place has passed."""
    stage = tempfile.mkdtemp(prefix="nodectl-sshd-", dir="/run")
    try:
        config = _stage(args["path"], wished, stage)
        tested = system.run(["sshd", "-t", "-f", config], timeout=20.0)
        if tested.rc != 0:
            raise Failed(f"sshd refuses the new settings, nothing was changed: {_plain(tested.stderr, stage)}", rc=tested.rc)
        found = _effective(system, config, args)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    wrong = mismatches(args["settings"], found)
    if wrong:
        raise Failed("another setting wins, nothing was changed: " + "; ".join(wrong))
    _refuse_lockout(args["login_user"], found)


def _stage(path: str, wished: str, stage: str) -> str:
    live = os.path.dirname(path)
    staged = os.path.join(stage, "sshd_config.d")
    if os.path.isdir(live):
        shutil.copytree(live, staged)
    else:
        os.mkdir(staged)
    with open(os.path.join(staged, os.path.basename(path)), "w", encoding="utf-8") as file:
        file.write(wished)
    with open(MAIN, encoding="utf-8") as file:
        main = restage(file.read(), live, staged)
    config = os.path.join(stage, "sshd_config")
    with open(config, "w", encoding="utf-8") as file:
        file.write(main)
    return config


def _plain(text: str, stage: str) -> str:
    return " ".join(text.replace(stage, "/etc/ssh").split())


def _refuse_lockout(user: str, found: State) -> None:
    if not user:
        return
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise Failed(f"no account '{user}' here, but this run logs in as it: nothing was changed") from None
    groups = [grp.getgrgid(gid).gr_name for gid in os.getgrouplist(user, entry.pw_gid) if _has_group(gid)]
    reason = lockout(found, user, groups, entry.pw_uid)
    if reason:
        raise Failed(f"this would lock out {user}, nothing was changed: {reason}")


def _has_group(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True


def _arm(system: System, args: Args, state: State) -> None:
    """Let systemd restore the old file later, whatever becomes of this agent, this login or the controller."""
    os.makedirs(HELD, mode=0o700, exist_ok=True)
    held = os.path.join(HELD, "old")
    restore = f"rm -f '{args['path']}'"
    if state["text"] is not None:
        system.write_atomic(held, state["text"].encode(), mode=0o600)
        restore = f"cp '{held}' '{args['path']}.nodectl' && chmod 600 '{args['path']}.nodectl' && mv -f '{args['path']}.nodectl' '{args['path']}'"
    script = f"#!/bin/sh\n{restore}\nsystemctl try-reload-or-restart {_service(system)}\nrm -rf {HELD}\n"
    system.write_atomic(os.path.join(HELD, "revert"), script.encode(), mode=0o700)
    timer = [f"--unit={UNIT}", f"--on-active={args['revert_after']}", "--timer-property=AccuracySec=1s"]
    armed = system.run(["systemd-run", *timer, "/bin/sh", os.path.join(HELD, "revert")], timeout=20.0)
    if armed.rc != 0:
        raise Failed(f"the automatic revert could not be armed, nothing was changed: {armed.stderr.strip()}", rc=armed.rc)


def _service(system: System) -> str:
    """Debian calls the unit ssh, Red Hat sshd."""
    shown = system.run(["systemctl", "show", "-p", "LoadState", "--value", "ssh.service"], timeout=20.0)
    return "ssh.service" if shown.stdout.strip() == "loaded" else "sshd.service"


def _reload(system: System) -> None:
    done = system.run(["systemctl", "try-reload-or-restart", _service(system)], timeout=30.0)
    if done.rc != 0:
        raise Failed(f"sshd did not reload (the node restores the old file by itself): {done.stderr.strip()}", rc=done.rc)
