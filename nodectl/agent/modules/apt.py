"""apt: Debian packages present, absent or at their newest."""

from __future__ import annotations

from nodectl.agent import apt_packages
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Install, upgrade or remove Debian packages; check mode says exactly what apt-get would do.",
    params={
        "name": Param("list", "package names, each with =version where wished; no patterns", default=[], aliases=("package", "pkg")),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent", "latest")),
        "update_cache": Param("bool", "fetch the package lists first, where something is to be done", default=False, aliases=("update-cache",)),
        "cache_valid_time": Param("int", "fetch the lists only when they are older than this many seconds", default=0),
        "update_cache_retries": Param("int", "how often fetching the lists is tried again", default=2),
        "install_recommends": Param("bool", "whether recommended packages come too; not given: as apt is configured", aliases=("install-recommends",)),
        "purge": Param("bool", "with absent: configuration files go too", default=False),
        "autoremove": Param("bool", "remove packages that nothing needs any more", default=False),
        "upgrade": Param("str", "upgrade everything (only without name)", default="no", choices=("no", "yes", "safe", "full", "dist")),
        "only_upgrade": Param("bool", "upgrade only what is installed", default=False),
        "default_release": Param("str", "take packages from this release", aliases=("default-release",)),
        "dpkg_options": Param("str", "options for dpkg, separated by commas", default="force-confdef,force-confold"),
        "allow_downgrade": Param("bool", "allow an older version", default=False, aliases=("allow-downgrade", "allow_downgrades", "allow-downgrades")),
        "allow_change_held_packages": Param("bool", "allow changing packages that are on hold", default=False),
        "allow_unauthenticated": Param("bool", "allow packages without a valid signature", default=False, aliases=("allow-unauthenticated",)),
        "force_apt_get": Param("bool", "apt-get is always used here", default=True),
        "lock_timeout": Param("int", "how many seconds to wait for another package manager", default=60),
    },
    returns={
        "cache_updated": "whether the package lists were fetched", "cache_update_time": "when they were fetched last, seconds since the epoch",
        "packages": "what was (or would be) done, one sentence per package", "stdout": "apt-get's output",
        "stderr": "apt-get's messages", "rc": "apt-get's exit code",
    },
    example="- apt:\n    name: [xfsprogs, fio]\n    update_cache: true\n    cache_valid_time: 3600\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    return apt_packages.act(system, args, check)
