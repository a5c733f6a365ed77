"""sshd_dropin: one file of sshd settings, staged, validated, applied, and taken back by the node itself unless confirmed.

A staged copy of the whole configuration must pass ``sshd -t``, its effective values must be the wished ones, and the operator's
own login must still be let in (check mode asks all of that too). Then the revert is armed, and only then the file is replaced
and sshd reloaded. The controller proves a fresh login and sends ``access_confirm``; without that the node takes the old file back.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
from typing import List, Tuple

from nodectl.agent import access_guard, sshd_revert
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.own_folder import own_folder
from nodectl.agent.sshd_config import effective, includes, lockout, mismatches, refusals, render, restage, value_of, wishes
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

MAIN = "/etc/ssh/sshd_config"
# sshd only reads files here; a slow disk is the only reason to wait.
SSHD_SECONDS = 20.0

SPEC = Spec(
    summary="sshd settings in a drop-in that sorts first; validated before, proven by a fresh login after, reverted by the node itself otherwise",
    params={
        "path": Param("path", "The drop-in; it must sort before every other file there.", default="/etc/ssh/sshd_config.d/00-nodectl.conf"),
        "settings": Param(
            "dict", "sshd keywords and their values (a later one wins, null leaves a keyword alone); the effective value must come out so.", required=True,
        ),
        "revert_after": Param("int", "Seconds until the node restores the old file unless the login was confirmed.", default=60),
        "login_user": Param("str", "The account that must still be able to log in; nodectl fills in the account of this run.", default=""),
        "login_address": Param("str", "The address that account comes from; nodectl fills it in.", default=""),
        "login_groups": Param("list", "Groups that it is about to be made a member of: a rehearsal asks before it is one.", default=[], elements="str"),
        "login_server": Param("str", "Address and port of this node that the login came to; nodectl fills them in.", default=""),
    },
    returns={
        "effective": "The values sshd uses now, for the keywords in settings.",
        "pending": "true while the node waits for access_confirm before it restores the old file.",
    },
    example="- sshd_dropin:\n    settings:\n      PasswordAuthentication: 'no'\n      MaxAuthTries: '3'\n",
)


def read(system: System, args: Args) -> State:
    """The drop-in's text, sshd's effective values for the operator's login, and what speaks against the wished text."""
    wrong = refusals(args["settings"])
    if wrong:
        raise Failed("nothing was changed: " + "; ".join(wrong))
    if args["revert_after"] < 1:
        raise Failed("revert_after must be at least 1 second: it is the time that a fresh login has")
    old, main = system.read(args["path"]), system.read(MAIN)
    if main is None:
        raise Failed(f"{MAIN} is not there: is openssh-server installed?")
    state: State = {
        "text": None if old is None else old.decode("utf-8", "replace"),
        "includes": includes(main.decode("utf-8", "replace"), os.path.dirname(args["path"])),
        "first": _sorts_first(args["path"]),
        "effective": _effective(system, MAIN, args),
        "pending": access_guard.is_armed(sshd_revert.GUARD),
        "against": "",
    }
    if state["includes"] and not state["first"]:
        state["against"] = _against(system, args, state)
    return state


def diff(args: Args, state: State) -> Change:
    wished = render(args["settings"])
    if not state["includes"]:
        raise Failed(f"{MAIN} does not include {os.path.dirname(args['path'])}/*.conf: a drop-in there would have no effect")
    if state["first"]:
        raise Failed(f"{state['first']} sorts before {args['path']} and would win: choose a name that sorts first, or take that file away; nothing was changed")
    if state["against"]:
        raise Failed(state["against"], pending=state["pending"])
    actions = [f"write {args['path']}, reload sshd, prove a fresh login"] if state["text"] != wished else []
    return Change(actions, before=state["text"] or "", after=wished if actions else state["text"] or "", before_header=args["path"], after_header=args["path"])


def write(system: System, args: Args, state: State, change: Change) -> None:
    sshd_revert.arm(system, args["path"], args["revert_after"])
    try:
        os.makedirs(os.path.dirname(args["path"]), mode=0o755, exist_ok=True)
        system.write_atomic(args["path"], render(args["settings"]).encode(), mode=0o600, uid=0, gid=0)
        sshd_revert.reload_sshd(system)
    except (Failed, OSError) as error:
        sshd_revert.take_back(system)
        raise Failed(f"{error}; the old settings are back") from None


def values(args: Args, state: State, change: Change) -> Args:
    return {"effective": {key: value_of(key, state["effective"]) for key in wishes(args["settings"])}, "pending": state["pending"]}


def _sorts_first(path: str) -> str:
    """The name of a drop-in that sshd reads before ``path``; "" when there is none."""
    directory = os.path.dirname(path)
    names = sorted(n for n in os.listdir(directory) if n.endswith(".conf")) if os.path.isdir(directory) else []
    return os.path.join(directory, names[0]) if names and names[0] < os.path.basename(path) else ""


def _effective(system: System, config: str, args: Args) -> State:
    """The values for the operator's own login: Match blocks may ask who comes from where to which address."""
    user, address = args["login_user"] or "root", args["login_address"] or "127.0.0.1"
    here = [*args["login_server"].split(), "", ""]
    where = f"user={user},host={address},addr={address}" + (f",laddr={here[0]},lport={here[1]}" if here[1] else "")
    done = system.run(["sshd", "-T", "-f", config, "-C", where], timeout=SSHD_SECONDS)
    if done.rc != 0:
        raise Failed(f"sshd refuses its configuration as it is: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)
    return dict(effective(done.stdout))


def _against(system: System, args: Args, state: State) -> str:
    """Why the wished file must not be written, "" when nothing speaks against it. Asked of a staged copy; the live files are only read."""
    wished = render(args["settings"])
    with own_folder("/run") as stage:
        config = _stage(args["path"], wished, stage)
        tested = system.run(["sshd", "-t", "-f", config], timeout=SSHD_SECONDS)
        if tested.rc != 0:
            return f"sshd refuses the new settings, nothing was changed: {_plain(tested.stderr, stage)}"
        found = _effective(system, config, args)
        alone = _alone(system, args, wished, found, stage)
    wrong = "; ".join(mismatches(args["settings"], alone, found))
    if wrong and state["text"] == wished:
        return f"written, but not effective: {wrong}; look for these keywords before the Include line of {MAIN} and in Match blocks"
    if wrong:
        return f"another setting wins, nothing was changed: {wrong}; look for it before the Include line of {MAIN} and in Match blocks"
    reason = _lockout(system, args, found) if args["login_user"] else ""
    return f"this would lock out {args['login_user']}, nothing was changed: {reason}" if reason else ""


def _stage(path: str, wished: str, stage: str) -> str:
    live = os.path.dirname(path)
    staged = os.path.join(stage, "sshd_config.d")
    if os.path.isdir(live):
        shutil.copytree(live, staged)
    else:
        os.mkdir(staged)
    _write(os.path.join(staged, os.path.basename(path)), wished)
    with open(MAIN, encoding="utf-8") as file:
        main = restage(file.read(), live, staged)
    return _write(os.path.join(stage, "sshd_config"), main)


def _alone(system: System, args: Args, wished: str, found: State, stage: str) -> State:
    """What sshd makes of the wished lines alone. It does not start without host keys, so it gets those that are in force."""
    keys = "" if "hostkey" in (key.lower() for key in wishes(args["settings"])) else "".join(f"HostKey {key}\n" for key in found.get("hostkey", "").split())
    return _effective(system, _write(os.path.join(stage, "alone"), wished + keys), args)


def _write(path: str, text: str) -> str:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _plain(text: str, stage: str) -> str:
    return " ".join(text.replace(stage, "/etc/ssh").split())


def _lockout(system: System, args: Args, found: State) -> str:
    user = args["login_user"]
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        return "there is no such account here, but this run logs in as it"
    groups = [name for name in map(_group, os.getgrouplist(user, entry.pw_gid)) if name]
    return lockout(found, user, [*groups, *args["login_groups"]], entry.pw_uid, _locked(system, user))


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""


def _locked(system: System, user: str) -> bool:
    """An account of a directory service has no line in /etc/shadow: then nobody here knows."""
    lines: List[Tuple[str, ...]] = [tuple(line.split(":")) for line in (system.read("/etc/shadow") or b"").decode("utf-8", "replace").splitlines()]
    return any(line[0] == user and line[1].startswith("!") for line in lines if len(line) > 1)
