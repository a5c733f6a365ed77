"""RPM packages through rpm and dnf: enough for `package` on nodes without apt."""

from __future__ import annotations

from typing import List, Sequence

from nodectl.agent.contract import Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome

QUERY_SECONDS = 120.0
INSTALL_SECONDS = 1800.0  # as long as apt's: driver packages build modules


def pending(system: System, names: Sequence[str], state: str) -> List[str]:
    """Those names that are not as wished."""
    here = {name: system.run(["rpm", "-q", "--whatprovides", name], timeout=QUERY_SECONDS).rc == 0 for name in names}
    if state == "absent":
        return [name for name in names if here[name]]
    missing = [name for name in names if not here[name]]
    if state != "latest":
        return missing
    done = system.run(["dnf", "-q", "check-update", *[name for name in names if here[name]]], timeout=QUERY_SECONDS)
    if done.rc not in (0, 100):
        raise Failed(f"dnf check-update failed: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)
    newer = {line.split()[0].rsplit(".", 1)[0] for line in done.stdout.splitlines() if len(line.split()) == 3}
    return missing + [name for name in names if here[name] and name in newer]


def act(system: System, names: Sequence[str], state: str, check: bool) -> Outcome:
    """Install, upgrade or remove, and look again."""
    todo = pending(system, names, state)
    word = "remove" if state == "absent" else "upgrade" if state == "latest" else "install"
    steps = [f"{word} {name}" for name in todo]
    if check or not todo:
        return Outcome(changed=bool(todo), msg="; ".join(steps), values={"packages": steps})
    verb = "remove" if state == "absent" else "install"
    done = system.run(["dnf", "-y", "-q", verb, *todo], timeout=INSTALL_SECONDS)
    shown = {"stdout": done.stdout, "stderr": done.stderr, "rc": done.rc, "packages": steps}
    if done.rc != 0:
        raise Failed(f"dnf {verb} {' '.join(todo)}: {done.stderr.strip()[-500:]}", **shown)
    left = pending(system, names, state)
    if left:
        raise Failed(f"dnf ended well, but these are still not as wished: {', '.join(left)}", **shown)
    return Outcome(changed=True, msg="; ".join(steps), values=shown)
