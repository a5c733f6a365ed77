"""Takes away what a lab has made: entry by entry of its state file, the last one first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from nodectl.lab import cgroups, disks, hosts, machine, network
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import STATE_FILE, Kind, LabState, Resource

Release = Callable[[LabState, str], None]


def _file(state: LabState, key: str) -> None:
    Path(key).unlink(missing_ok=True)


def _dir(state: LabState, key: str) -> None:
    """Only when empty: what a user has put there stays."""
    path = Path(key)
    if path.is_dir() and not os.listdir(path):
        path.rmdir()


RELEASE: dict[Kind, Release] = {
    "dir": _dir,
    "file": _file,
    "tree": lambda state, key: machine.remove_tree(Path(key)),
    "netns": lambda state, key: network.remove_namespace(key),
    "link": lambda state, key: network.remove_link(key),
    "process": lambda state, key: machine.stop(key),
    "host": hosts.power_off,
    "mount": lambda state, key: machine.unmount(Path(key)),
    "loop": lambda state, key: disks.detach(Path(key)),
    "cgroup": lambda state, key: cgroups.remove(key),
}


def take_down(state: LabState) -> None:
    """Removes everything of this lab. What cannot be removed stays in the state file and is named in the LabProblem."""
    state.phase = "stopping"
    state.save()
    # The folder that holds the state file, and those above it that `up` made, can only go after it.
    folders = [r for r in state.resources if r.kind == "dir" and state.dir.is_relative_to(r.key)]
    stuck: list[str] = []
    for resource in reversed([r for r in state.resources if r not in folders]):
        stuck += _release(state, resource)
    if stuck:
        raise LabProblem("some of the lab could not be removed:\n  " + "\n  ".join(stuck))
    (state.dir / STATE_FILE).unlink()
    (state.dir / f"{STATE_FILE}.part").unlink(missing_ok=True)
    for resource in reversed(folders):
        _dir(state, resource.key)


def _release(state: LabState, resource: Resource) -> list[str]:
    try:
        RELEASE[resource.kind](state, resource.key)
    except (LabProblem, OSError) as err:
        return [f"{resource.kind} {resource.key}: {err}"]
    state.drop(resource)
    return []
