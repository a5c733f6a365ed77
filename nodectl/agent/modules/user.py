"""user: local accounts."""

from __future__ import annotations

import grp
import pwd
from typing import Any, Dict, List, Optional, Tuple

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Local accounts present or absent, with their groups, shell, home and password hash.",
    params={
        "name": Param("str", "login name", required=True, aliases=("user",)),
        "uid": Param("int", "user id"),
        "group": Param("str", "primary group"),
        "groups": Param("list", "further groups", elements="str"),
        "append": Param("bool", "keep further groups that are not named", default=False),
        "shell": Param("path", "login shell"),
        "home": Param("path", "home folder"),
        "create_home": Param("bool", "make the home folder", default=True, aliases=("createhome",)),
        "move_home": Param("bool", "move the old home folder when home changes", default=False),
        "system": Param("bool", "a system account (only when it is made)", default=False),
        "comment": Param("str", "full name"),
        "password": Param("str", "password hash (as crypt makes it), or * or ! for none", secret=True),
        "password_lock": Param("bool", "lock the password"),
        "update_password": Param("str", "always, or only when the account is made", default="always", choices=("always", "on_create")),
        "non_unique": Param("bool", "allow a uid that another account has", default=False),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
        "remove": Param("bool", "with absent: the home folder and mail go too", default=False),
        "force": Param("bool", "with absent: even while the user is logged in", default=False),
    },
    returns={
        "name": "login name", "uid": "user id", "group": "primary group id", "home": "home folder", "shell": "login shell",
        "comment": "full name", "groups": "the further groups that were named, joined by commas",
    },
    example="- user:\n    name: ops\n    groups: [sudo]\n    append: true\n    shell: /bin/bash\n",
)
COMMAND_SECONDS = 120.0  # userdel -r removes a home folder; useradd copies a skeleton


def read(system: System, args: Args) -> State:
    """The account, its groups and its password field; ``uid`` None when there is none."""
    try:
        entry = pwd.getpwnam(args["name"])
    except KeyError:
        return {"uid": None, "groups": [], "named": _groups(args)}
    return {
        "uid": entry.pw_uid, "gid": entry.pw_gid, "comment": entry.pw_gecos, "home": entry.pw_dir, "shell": entry.pw_shell, "named": _groups(args),
        "groups": sorted(g.gr_name for g in grp.getgrall() if args["name"] in g.gr_mem), "password": _shadow(system, args["name"]),
        "home_exists": system.stat(entry.pw_dir, follow=True) is not None,
    }


def _groups(args: Args) -> Dict[str, Optional[Tuple[int, str]]]:
    """(id, name) of each group that is named, by name or number; None for one that does not exist."""
    found: Dict[str, Optional[Tuple[int, str]]] = {}
    for given in [*([args["group"]] if args["group"] else []), *(args["groups"] or [])]:
        try:
            entry = grp.getgrgid(int(given)) if given.isdigit() else grp.getgrnam(given)
            found[given] = (entry.gr_gid, entry.gr_name)
        except (KeyError, OverflowError):
            found[given] = None
    return found


def _shadow(system: System, name: str) -> str:
    raw = system.read("/etc/shadow") or b""
    return next((line.split(":")[1] for line in raw.decode("utf-8", "replace").splitlines() if line.startswith(f"{name}:")), "")


def diff(args: Args, state: State) -> Change:
    name = args["name"]
    if not name or name.startswith("-") or set(name) & set(":,\n/ \t"):
        raise Failed(f"{name!r} is no user name")
    if args["state"] == "absent":
        return Change(actions=[f"remove user {name}"] if state["uid"] is not None else [])
    if args["password"] is not None and (not args["password"].startswith(("$", "*", "!")) or set(args["password"]) & set(":\n")):
        raise Failed(f"password of {name} is not a hash: make one with the password_hash filter, or mkpasswd; clear text would lock the account out")
    if state["uid"] is None:
        return Change(actions=[f"make user {name}"] + ([f"set the password of {name}"] if args["password"] else []))
    steps = [f"change {what} of {name} from {old} to {new}" for what, old, new, _ in _changes(args, state)]
    if _password_differs(args, state):
        steps.append(f"set the password of {name}")
    locked = state["password"].startswith("!")
    if args["password_lock"] is not None and args["password_lock"] != locked:
        steps.append(f"{'lock' if args['password_lock'] else 'unlock'} the password of {name}")
    if args["create_home"] and not state["home_exists"] and not any(what == "home" for what, _, _, _ in _changes(args, state)):
        steps.append(f"make the home folder {state['home']}")
    return Change(actions=steps)


def _password_differs(args: Args, state: State) -> bool:
    wish = args["password"]
    if wish is None or args["update_password"] != "always":
        return False
    same = state["password"].lstrip("!") == wish.lstrip("!") if args["password_lock"] is not None else state["password"] == wish
    return not same


def _changes(args: Args, state: State) -> List[Tuple[str, Any, Any, List[str]]]:
    """(what, old, new, usermod's flags) for each field that differs."""
    out: List[Tuple[str, Any, Any, List[str]]] = []
    simple = (("uid", "uid", "-u"), ("comment", "comment", "-c"), ("shell", "shell", "-s"), ("home", "home", "-d"))
    for what, key, flag in simple:
        if args[what] is not None and args[what] != state[key]:
            extra = ["-o"] if what == "uid" and args["non_unique"] else ["-m"] if what == "home" and args["move_home"] else []
            out.append((what, state[key], args[what], [flag, str(args[what]), *extra]))
    named = state["named"]
    if args["group"] and (named[args["group"]] or (None, ""))[0] != state["gid"]:
        out.append(("primary group", state["gid"], args["group"], ["-g", args["group"]]))
    if args["groups"] is not None:
        # What /etc/group lists: being there in the primary group too is a wish of its own.
        wish = sorted({named[given][1] if named[given] else given for given in args["groups"]} | (set(state["groups"]) if args["append"] else set()))
        if wish != state["groups"]:
            out.append(("groups", ",".join(state["groups"]) or "none", ",".join(wish) or "none", ["-G", ",".join(wish)]))
    return out


def write(system: System, args: Args, state: State, change: Change) -> None:
    name = args["name"]
    if args["state"] == "absent":
        _must(system, ["userdel", *(["-r"] if args["remove"] else []), *(["-f"] if args["force"] else []), name], ok=(0, 12) if args["remove"] else (0,))
        return
    missing = [group for group, found in state["named"].items() if found is None]
    if missing:
        raise Failed(f"user {name}: there is no group {', '.join(missing)} on this node; make it first with the group module")
    if state["uid"] is None:
        _must(system, _useradd(args))
    else:
        flags = [flag for _, _, _, words in _changes(args, state) for flag in words]
        if flags:
            _must(system, ["usermod", *flags, name])
        if any(step.startswith("make the home") for step in change.actions):
            plain = ["install", "-d", "-m", "0750", "-o", name, "-g", str(state["gid"]), state["home"]]
            _must(system, ["mkhomedir_helper", name] if system.which("mkhomedir_helper") else plain)
    if args["password"] is not None and (state["uid"] is None or _password_differs(args, state)):
        _must(system, ["chpasswd", "-e"], stdin=f"{name}:{args['password']}\n".encode())
    if args["password_lock"] is not None and args["password_lock"] != _shadow(system, name).startswith("!"):
        _must(system, ["usermod", "-L" if args["password_lock"] else "-U", name])


def _useradd(args: Args) -> List[str]:
    argv = ["useradd", "-m" if args["create_home"] else "-M"]
    for key, flag in (("uid", "-u"), ("group", "-g"), ("comment", "-c"), ("shell", "-s"), ("home", "-d")):
        argv += [] if args[key] is None else [flag, str(args[key])]
    argv += ["-o"] if args["non_unique"] and args["uid"] is not None else []
    argv += ["-G", ",".join(args["groups"])] if args["groups"] else []
    argv += ["-r"] if args["system"] else []
    if args["group"] is None and _group_exists(args["name"]):
        argv.append("-N")  # useradd refuses to make a group of that name a second time; the user gets the system's default group, as in Ansible
    return [*argv, args["name"]]


def _group_exists(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def _must(system: System, argv: List[str], stdin: bytes = b"", ok: Tuple[int, ...] = (0,)) -> None:
    done = system.run(argv, stdin=stdin, timeout=COMMAND_SECONDS)
    if done.rc not in ok:
        raise Failed(f"{argv[0]}: {done.stderr.strip() or f'exit code {done.rc}'}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    """Under Ansible's names; ``groups`` are those that were named, as it returns them."""
    result: Dict[str, Any] = {"name": args["name"], "state": args["state"]}
    if args["state"] == "absent":
        return dict(result, **({"force": args["force"], "remove": args["remove"]} if change else {}))
    made = f"make user {args['name']}" in change.actions
    result.update({key: args[key] for key in (("system", "create_home") if made else ("append", "move_home"))})
    if args["groups"] is not None:
        result["groups"] = ",".join(args["groups"])
    if state["uid"] is not None:
        result.update({key: state[key] for key in ("uid", "home", "shell", "comment")}, group=state["gid"])
    return result
