"""package: the node's own package manager, apt or dnf."""

from __future__ import annotations

from typing import Any, Dict

from nodectl.agent import apt_packages, dnf_packages
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Install, upgrade or remove packages with apt, or with dnf where there is no apt.",
    params={
        "name": Param("list", "package names", required=True, aliases=("pkg",)),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent", "latest", "installed", "removed")),
        "use": Param("str", "which package manager", default="auto", choices=("auto", "apt", "dnf")),
        "update_cache": Param("bool", "fetch the package lists first where something is missing (apt)", default=False),
        "cache_valid_time": Param("int", "fetch the lists only when they are older than this many seconds (apt)", default=0),
        "lock_timeout": Param("int", "how many seconds to wait for another package manager (apt)", default=60),
    },
    returns={"packages": "what was (or would be) done", "stdout": "output", "stderr": "messages", "rc": "exit code"},
    example="- package:\n    name: chrony\n    state: present\n",
)
_SAME = {"installed": "present", "removed": "absent"}
_APT: Dict[str, Any] = {
    "update_cache_retries": 2, "install_recommends": None, "purge": False, "autoremove": False, "upgrade": "no", "only_upgrade": False, "default_release": None,
    "dpkg_options": "force-confdef,force-confold", "allow_downgrade": False, "allow_change_held_packages": False, "allow_unauthenticated": False,
}


def act(system: System, args: Args, check: bool) -> Outcome:
    state = str(_SAME.get(args["state"], args["state"]))
    manager = args["use"] if args["use"] != "auto" else "apt" if system.which("apt-get") else "dnf" if system.which("dnf") else ""
    if manager == "apt":
        return apt_packages.act(system, dict(_APT, **dict(args, state=state)), check)
    if manager == "dnf":
        return dnf_packages.act(system, dict(args, update_cache=False), state, check)
    raise Failed("this node has neither apt-get nor dnf: nodectl knows no way to install packages here")
