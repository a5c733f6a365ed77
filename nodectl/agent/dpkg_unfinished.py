"""What an interrupted dpkg left half done, and finishing it.

Ctrl-C, a power cut or a killed agent can end dpkg at any moment. It keeps a journal for that case; until `dpkg --configure -a` has
worked it off, apt-get refuses every installation, so a run that was stopped would stop the next one too.
"""

from __future__ import annotations

import os
from typing import List, Mapping

from nodectl.agent import package_locks
from nodectl.agent.contract import Failed
from nodectl.agent.system import System

# dpkg's journal. A file here with a number for a name is how apt-get, too, knows that dpkg did not come to its end.
UPDATES = "/var/lib/dpkg/updates"


def found() -> bool:
    """True as well while a dpkg is at work just now: only its lock tells the two apart."""
    try:
        return any(name.isdigit() for name in os.listdir(UPDATES))
    except OSError:
        return False


def finish(system: System, lock_timeout: float, needed: bool, seconds: float, environment: Mapping[str, str]) -> List[str]:
    """What was done, as sentences; [] where nothing was left. ``needed``: wait for another dpkg that is at work, instead of leaving it alone."""
    if not found() or not (needed or _idle()):
        return []
    package_locks.wait_free(system, package_locks.DPKG, lock_timeout)
    if not found():  # it was another dpkg, which has come to its end
        return []
    system.progress("dpkg was interrupted here earlier: finishing what it left")
    done = system.run(["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"], timeout=seconds, env=environment)
    if done.rc != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
        raise Failed(
            f"dpkg was interrupted here earlier, and `dpkg --configure -a` does not get to its end: {'; '.join(said[-5:])}",
            rc=done.rc, stdout=done.stdout, stderr=done.stderr,
        )
    return ["finish what an interrupted dpkg left half done"]


def _idle() -> bool:
    return all(package_locks.holder(path) is None for path in package_locks.DPKG)
