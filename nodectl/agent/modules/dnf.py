"""dnf, yum: rpm packages present, absent or at their newest."""

from __future__ import annotations

from nodectl.agent import dnf_packages
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Install, upgrade or remove rpm packages; check mode says exactly what dnf would do.",
    params={
        "name": Param(
            "list", "package names, name-version, @groups, paths of packages; '*' with latest is everything", default=[], aliases=("pkg",), elements="str",
        ),
        "state": Param("str", "what is wished; not given: present, or absent with autoremove", choices=("absent", "installed", "latest", "present", "removed")),
        "allow_downgrade": Param("bool", "taken for Ansible's sake: a version that is named is what is wished", default=False),
        "allowerasing": Param("bool", "packages in the way may go", default=False),
        "autoremove": Param("bool", "remove packages that nothing needs any more", default=False),
        "best": Param("bool", "the newest version or none"),
        "nobest": Param("bool", "an older version will do"),
        "bugfix": Param("bool", "with latest: only what mends bugs", default=False),
        "security": Param("bool", "with latest: only what mends security", default=False),
        "cacheonly": Param("bool", "fetch no metadata", default=False),
        "conf_file": Param("str", "another dnf.conf"),
        "disable_excludes": Param("str", "all, main or a repository"),
        "disable_gpg_check": Param("bool", "take packages without a valid signature", default=False),
        "disable_plugin": Param("list", "plugins that are off", default=[], elements="str"),
        "enable_plugin": Param("list", "plugins that are on", default=[], elements="str"),
        "disablerepo": Param("list", "repositories that are off", default=[], elements="str"),
        "enablerepo": Param("list", "repositories that are on", default=[], elements="str"),
        "download_only": Param("bool", "fetch, do not install", default=False),
        "download_dir": Param("str", "where to"),
        "exclude": Param("list", "packages that are left alone", default=[], elements="str"),
        "installroot": Param("str", "another root", default="/"),
        "install_weak_deps": Param("bool", "recommended packages come too", default=True),
        "releasever": Param("str", "another release"),
        "skip_broken": Param("bool", "leave out what cannot be installed", default=False),
        "update_cache": Param("bool", "fetch the metadata first", default=False, aliases=("expire-cache",)),
        "update_only": Param("bool", "with latest: only what is installed", default=False),
        "validate_certs": Param("bool", "addresses of packages are fetched by dnf, as it is configured", default=True),
        "sslverify": Param("bool", "the same", default=True),
        "lock_timeout": Param("int", "dnf waits for its own lock", default=30),
        "use_backend": Param("str", "which dnf; there is only one here", default="auto"),
    },
    required_one_of=(("name", "update_cache", "autoremove"),),
    mutually_exclusive=(("best", "nobest"),),
    returns={"results": "what was (or would be) done, one line per package", "rc": "dnf's exit code", "stdout": "dnf's output", "stderr": "dnf's messages"},
    example="- dnf:\n    name: [chrony, '@development']\n    state: present\n",
)
_SAME = {"installed": "present", "removed": "absent"}


def act(system: System, args: Args, check: bool) -> Outcome:
    state = args["state"] or ("absent" if args["autoremove"] else "present")
    return dnf_packages.act(system, args, str(_SAME.get(state, state)), check)
