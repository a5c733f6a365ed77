"""restore_point: what files, kernel parameters, units, groups and packages were like before a role first changed them, and the way back to it.

``taken`` remembers each thing once, before the first change: later runs find it remembered and leave it. ``restored`` puts things back
as they were and forgets them. What is remembered lies in a folder that only root can read, because files may be secret.
"""

from __future__ import annotations

import base64
import glob
import grp
import json
import os
import stat
from typing import Any, Callable, Dict, List, Mapping, Tuple

from nodectl.agent import kernel_keys
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

FOLDER = "/var/lib/nodectl/restore"
UNIT_SECONDS = 60.0
# Removing a package runs its scripts; a dozen of them took 20 s on busy cores.
PACKAGE_SECONDS = 600.0
# What systemctl is-enabled prints where there is no unit of that name, in older and newer versions.
_NO_UNIT = ("", "not-found")
# Packages go first, because their scripts change files and units; units come last, because they read files.
KINDS = ("packages", "paths", "groups", "sysctl", "units")

SPEC = Spec(
    summary="Remember what things were like before a role changed them, and put them back",
    params={
        "name": Param("str", "Whose restore point it is.", required=True),
        "state": Param("str", "taken remembers what is not remembered yet; restored puts back what is.", default="taken", choices=("taken", "restored")),
        "paths": Param("list", "Files, links and folders (of a folder mode and owner alone).", default=[], elements="path"),
        "sysctl": Param("list", "Kernel parameters.", default=[], elements="str"),
        "units": Param("list", "Units of systemd: whether they start at boot, and run.", default=[], elements="str"),
        "groups": Param("list", "Groups that go again where there was none.", default=[], elements="str"),
        "packages": Param("list", "Packages that go again where they were not installed.", default=[], elements="str"),
        "everything": Param("bool", "With restored: all that is remembered, whatever is named.", default=False),
    },
    returns={"remembered": "How many things of each kind are remembered."},
    example="- restore_point:\n    name: hardening\n    paths: [/etc/login.defs]\n    sysctl: [kernel.kptr_restrict]\n",
)


def read(system: System, args: Args) -> State:
    """What is remembered, and what the named things (with restored: those that are remembered) are like now."""
    index = _index(system, args["name"])
    asked = {kind: _asked(kind, args, index) for kind in KINDS}
    return {"index": index, "now": {kind: _NOW[kind](system, asked[kind]) for kind in KINDS}}


def diff(args: Args, state: State) -> Change:
    index, now = state["index"], state["now"]
    change = Change()
    for kind in KINDS:
        if args["state"] == "taken":
            new = {thing: found for thing, found in now[kind].items() if thing not in index[kind]}
            if new:
                change.actions.append(f"remember {len(new)} of {kind}")
                change.data[kind] = new
        elif now[kind]:
            differing = sorted(thing for thing, found in now[kind].items() if found != index[kind][thing])
            change.actions += [f"restore {kind}: {thing}" for thing in differing] or [f"forget {len(now[kind])} of {kind}"]
            change.data[kind] = differing
    return change


def write(system: System, args: Args, state: State, change: Change) -> None:
    index = state["index"]
    for kind in KINDS:
        if args["state"] == "taken":
            index[kind].update(change.data.get(kind, {}))
        else:
            _BACK[kind](system, {thing: index[kind][thing] for thing in change.data.get(kind, [])})
    for kind in KINDS if args["state"] == "restored" else ():
        for thing in state["now"][kind]:
            del index[kind][thing]
    _keep(system, args["name"], index)


def values(args: Args, state: State, change: Change) -> Args:
    return {"remembered": {kind: len(state["index"][kind]) for kind in KINDS}}


def _place(name: str) -> str:
    if not name.replace("-", "").replace("_", "").isalnum():
        raise Failed(f"name is '{name}'; expected letters, digits, - and _")
    return f"{FOLDER}/{name}.json"


def _index(system: System, name: str) -> Dict[str, Dict[str, Any]]:
    text = system.read(_place(name))
    kept = json.loads(text) if text else {}
    return {kind: dict(kept.get(kind, {})) for kind in KINDS}


def _keep(system: System, name: str, index: Mapping[str, Mapping[str, Any]]) -> None:
    if any(index.values()):
        os.makedirs(FOLDER, mode=0o700, exist_ok=True)
        system.write_atomic(_place(name), json.dumps(index, sort_keys=True).encode(), mode=0o600, uid=0, gid=0)
        return
    if os.path.exists(_place(name)):
        os.unlink(_place(name))
    if os.path.isdir(FOLDER) and not os.listdir(FOLDER):
        os.rmdir(FOLDER)


def _asked(kind: str, args: Args, index: Mapping[str, Mapping[str, Any]]) -> List[str]:
    if args["state"] == "taken":
        return list(args[kind])
    return sorted(index[kind]) if args["everything"] else [thing for thing in args[kind] if thing in index[kind]]


def _files_now(system: System, paths: List[str]) -> Dict[str, Any]:
    return {path: _file_now(system, path) for path in paths}


def _file_now(system: System, path: str) -> Any:
    """None where nothing is there; else kind, mode, owner and what is in it."""
    info = system.stat(path)
    if info is None:
        return None
    about = {"mode": stat.S_IMODE(info.st_mode), "uid": info.st_uid, "gid": info.st_gid}
    if stat.S_ISLNK(info.st_mode):
        return {"link": os.readlink(path)}
    if stat.S_ISDIR(info.st_mode):
        return {**about, "folder": True}
    return {**about, "data": base64.b64encode(system.read(path) or b"").decode()}


def _files_back(system: System, olds: Mapping[str, Any]) -> None:
    # What lies in a folder goes before the folder does.
    for path, old in sorted(olds.items(), reverse=True):
        if old is not None and old.get("folder"):
            os.makedirs(path, exist_ok=True)
            os.chown(path, old["uid"], old["gid"])
            os.chmod(path, old["mode"])
        elif old is not None and "data" in old:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            system.write_atomic(path, base64.b64decode(old["data"]), old["mode"], old["uid"], old["gid"], follow=False)
        else:
            _gone(path)
            if old is not None:
                os.symlink(old["link"], path)


def _gone(path: str) -> None:
    """A folder that was made goes only where nobody has put anything into it."""
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path) if not os.listdir(path) else None
    elif os.path.lexists(path):
        os.unlink(path)


def _sysctl_now(system: System, keys: List[str]) -> Dict[str, Any]:
    return {key: kernel_keys.read_live(key) for key in keys}


def _sysctl_back(system: System, olds: Mapping[str, Any]) -> None:
    """Where /proc/sys is read-only nothing was changed in it either."""
    for key, value in olds.items():
        if value is not None and os.access(kernel_keys.proc_path(key), os.W_OK):
            with open(kernel_keys.proc_path(key), "w", encoding="utf-8") as file:
                file.write(value)


def _units_now(system: System, units: List[str]) -> Dict[str, Any]:
    return {unit: {ask: system.run(["systemctl", f"is-{ask}", unit], timeout=UNIT_SECONDS).stdout.strip() for ask in ("enabled", "active")} for unit in units}


def _units_back(system: System, olds: Mapping[str, Any]) -> None:
    system.run(["systemctl", "daemon-reload"], timeout=UNIT_SECONDS)
    verbs = {"enabled": "enable", "disabled": "disable", "masked": "mask", "active": "start", "inactive": "stop"}
    for unit, old in olds.items():
        now = _units_now(system, [unit])[unit]
        if now["enabled"] == "masked" != old["enabled"]:
            system.run(["systemctl", "unmask", unit], timeout=UNIT_SECONDS)
        if old["enabled"] in _NO_UNIT:
            _unit_gone(system, unit)
        for ask in ("enabled", "active"):
            if old[ask] in verbs and old[ask] != now[ask]:
                system.run(["systemctl", verbs[old[ask]], unit], timeout=UNIT_SECONDS)


def _unit_gone(system: System, unit: str) -> None:
    """Its file may be gone already: then systemctl knows nothing of the links that start it at boot."""
    system.run(["systemctl", "stop", unit], timeout=UNIT_SECONDS)
    for link in glob.glob(f"/etc/systemd/system/*.wants/{glob.escape(unit)}"):
        os.unlink(link)


def _groups_now(system: System, groups: List[str]) -> Dict[str, Any]:
    there = {entry.gr_name for entry in grp.getgrall()}
    return {group: group in there for group in groups}


def _groups_back(system: System, olds: Mapping[str, Any]) -> None:
    for group in [group for group, was in olds.items() if not was]:
        done = system.run(["groupdel", group], timeout=UNIT_SECONDS)
        if done.rc != 0:
            raise Failed(f"group {group} could not be removed: {done.stderr.strip()}", rc=done.rc)


def _packages_now(system: System, packages: List[str]) -> Dict[str, Any]:
    if not packages:
        return {}
    if system.which("dpkg-query"):
        lines = system.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages], timeout=UNIT_SECONDS).stdout.splitlines()
        there = {line.split()[0] for line in lines if line.endswith(" installed")}
    else:
        there = set(system.run(["rpm", "-q", "--qf", "%{NAME}\n", *packages], timeout=UNIT_SECONDS).stdout.split("\n"))
    return {package: package in there for package in packages}


def _packages_back(system: System, olds: Mapping[str, Any]) -> None:
    new = sorted(package for package, was in olds.items() if not was)
    if new:
        words = ["apt-get", "-qy", "purge"] if system.which("apt-get") else ["dnf", "-qy", "remove"]
        done = system.run([*words, *new], timeout=PACKAGE_SECONDS, env={"DEBIAN_FRONTEND": "noninteractive"})
        if done.rc != 0:
            raise Failed(f"{' '.join(words)} ended with {done.rc}: {done.stderr.strip()}", rc=done.rc)


_Now = Callable[[System, List[str]], Dict[str, Any]]
_Back = Callable[[System, Mapping[str, Any]], None]
_WAYS: Dict[str, Tuple[_Now, _Back]] = {
    "packages": (_packages_now, _packages_back), "paths": (_files_now, _files_back), "groups": (_groups_now, _groups_back),
    "sysctl": (_sysctl_now, _sysctl_back), "units": (_units_now, _units_back),
}
_NOW = {kind: ways[0] for kind, ways in _WAYS.items()}
_BACK = {kind: ways[1] for kind, ways in _WAYS.items()}
