"""package_facts: installed packages as the fact `packages`."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Gather the installed packages: ansible_facts.packages maps a name to its installed versions.",
    params={
        "manager": Param("list", "auto, apt, rpm, dnf or yum; the first that is there (strategy first) or all of them", default=["auto"], elements="str"),
        "strategy": Param("str", "whether one manager is enough", default="first", choices=("first", "all")),
    },
    returns={"ansible_facts": "packages: name → list of {name, version, arch, source, …}"},
    example="- package_facts:\n- debug:\n    msg: \"{{ ansible_facts.packages['openssh-server'][0].version }}\"\n",
)
# A package database of five thousand packages is listed in a second; a busy node takes longer.
LIST_SECONDS = 120.0
Packages = List[Dict[str, Any]]
_DPKG = "${Package}\\t${Version}\\t${Architecture}\\t${Section}\\t${Origin}\\t${db:Status-Abbrev}\\n"
_RPM = "%{NAME}\\t%{VERSION}\\t%{RELEASE}\\t%{EPOCH}\\t%{ARCH}\\n"


def _apt(system: System) -> Packages:
    found = []
    for line in _lines(system, ["dpkg-query", "-W", "-f", _DPKG]):
        name, version, arch, section, origin, status = line.split("\t")
        if status[1:2] == "i":
            found.append({"name": name, "version": version, "arch": arch, "category": section, "origin": origin, "source": "apt"})
    return found


def _rpm(system: System) -> Packages:
    found = []
    for line in _lines(system, ["rpm", "-qa", "--qf", _RPM]):
        name, version, release, epoch, arch = line.split("\t")
        number = int(epoch) if epoch.isdigit() else None
        found.append({"name": name, "version": version, "release": release, "epoch": number, "arch": None if arch == "(none)" else arch, "source": "rpm"})
    return found


def _lines(system: System, argv: List[str]) -> List[str]:
    done = system.run(argv, timeout=LIST_SECONDS)
    if done.rc != 0 or done.dropped_stdout:
        raise Failed(f"{argv[0]} does not list the packages: {done.stderr.strip() or 'the list is longer than 1 MiB'}", rc=done.rc)
    return done.stdout.splitlines()


# Manager → (a program that is there where it is used, how it is asked), in the order in which `auto` tries them.
_MANAGERS: Dict[str, Tuple[str, Callable[[System], Packages]]] = {"apt": ("dpkg-query", _apt), "rpm": ("rpm", _rpm)}
_SAME = {"dnf": "rpm", "dnf5": "rpm", "yum": "rpm", "zypper": "rpm"}


def act(system: System, args: Args, check: bool) -> Outcome:
    asked = [_SAME.get(name.lower(), name.lower()) for name in args["manager"]]
    wanted = list(_MANAGERS) if "auto" in asked else list(dict.fromkeys(asked))
    unknown = [name for name in wanted if name not in _MANAGERS]
    if unknown:
        raise Failed(f"package_facts does not know {', '.join(unknown)}; it knows {', '.join(_MANAGERS)}")
    here = [name for name in wanted if system.which(_MANAGERS[name][0])]
    found: Dict[str, Packages] = {}
    for name in here if args["strategy"] == "all" else here[:1]:
        for package in _MANAGERS[name][1](system):
            found.setdefault(package["name"], []).append(package)
    if not found:
        raise Failed(f"none of {', '.join(wanted)} knows a package on this node")
    return Outcome(facts={"packages": found})
